// swell logs: of a pod, of a job's master, of all of a job's pods.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/pod_logs.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

class LogsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    options_.Declare(flags);
    flags.Switch("-p,--previous", &options_.previous,
                 "log of the container before its last restart");
    flags.Switch("--all", &all_, "all pods of the job; each line begins with the pod's name");
    flags.Text("-l,--selector", &selector_, "LABELS", "pods with these labels");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(options_.Check());
    if (words.empty() == selector_.empty()) {
      return Misuse(
          "a job or pod expected: swell logs JOB, swell logs POD or swell logs -l LABELS");
    }
    if (words.size() == 2 && options_.container.empty()) {
      options_.container = words[1];
    } else if (words.size() > 1) {
      return Misuse(StrCat("unexpected ", Quote(words[1]), "; one job or pod at a time"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<json::SharedValue> pods, Pods(session, *api, words));
    SWELL_RETURN_IF_ERROR(PrintLogs(session, *api, pods, options_));
    return 0;
  }

 private:
  Result<std::vector<json::SharedValue>> Pods(Session& session,
                                              Api& api,
                                              const std::vector<std::string>& words) {
    std::string ns = session.Namespace();
    if (!selector_.empty()) {
      SWELL_ASSIGN_OR_RETURN(auto pods,
                             api.List(client::resources::kPods, ns, {.label_selector = selector_}));
      if (pods.empty()) {
        return Status(Code::kNotFound,
                      StrCat("no pods with labels ", Quote(selector_), " in namespace ", ns));
      }
      return pods;
    }
    std::string name = words[0];
    bool pod_wanted = name.starts_with("pod/") || name.starts_with("pods/");
    if (pod_wanted) name = name.substr(name.find('/') + 1);
    if (name.find('/') == std::string::npos && !all_) {
      auto pod = api.Get(client::resources::kPods, ns, name);
      if (pod.ok()) return std::vector<json::SharedValue>{*pod};
      if (pod_wanted || pod.status().code() != Code::kNotFound) return pod.status();
    }
    auto job = FindJob(api, ns, name);
    if (!job.ok()) {
      if (job.status().code() != Code::kNotFound) return job.status();
      return Status(Code::kNotFound,
                    StrCat("no job and no pod named ", Quote(name), " in namespace ", Quote(ns)));
    }
    if (job->pods.empty()) {
      std::string_view why = job->waits.empty() ? job->message : job->waits;
      return Status(Code::kNotFound, StrCat("job ", Quote(name), " has no pods; it is ",
                                            ToLower(job->status), why.empty() ? "" : ": ", why));
    }
    if (!all_) job->pods.resize(1);
    return job->pods;
  }

  LogOptions options_;
  bool all_ = false;
  std::string selector_;
};

}  // namespace

Command LogsCommandSpec() {
  return {
      .name = "logs",
      .aliases = {"log"},
      .group = "Jobs",
      .summary = "Print the logs of a job or a pod.",
      .usage = "JOB | POD [CONTAINER]",
      .examples = {{"Follow the log of a job's master", "swell logs mnist -f"},
                   {"The last 20 lines of each pod of a job", "swell logs mnist --all --tail 20"},
                   {"A container before its last restart", "swell logs mnist-worker-1 --previous"}},
      .completes = Completes::kJob,
      .make = Makes<LogsAction>(),
  };
}

}  // namespace swell::cli
