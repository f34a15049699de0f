// swell logs: of a pod, of a job's master, of all of a job's pods, of an array, of a workload.
#include <algorithm>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/job_logs.h"
#include "cli/pods/pod_choice.h"
#include "cli/views/array_view.h"
#include "cli/views/job_view.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

class LogsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    options_.Declare(flags);
    flags.Switch("--all", &options_.all,
                 "all pods of the job; each line begins with the pod's name");
    flags.Text("-l,--selector", &selector_, "LABELS", "pods with these labels");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(options_.Check());
    if (words.empty() == selector_.empty()) {
      return Misuse(
          "expected a job, pod or workload: swell logs JOB, swell logs POD, swell logs deploy/NAME "
          "or "
          "swell logs -l LABELS");
    }
    if (words.size() == 2 && options_.logs.container.empty()) {
      options_.logs.container = words[1];
    } else if (words.size() > 1) {
      return Misuse(StrCat("unexpected ", Quote(words[1]), "; one job or pod at a time"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    if (!selector_.empty()) {
      SWELL_ASSIGN_OR_RETURN(auto pods, Selected(*api, session.Namespace()));
      SWELL_RETURN_IF_ERROR(PrintLogs(session, *api, pods, options_.logs));
      return 0;
    }
    SWELL_RETURN_IF_ERROR(PrintNamed(session, *api, words[0]));
    return 0;
  }

 private:
  Result<std::vector<json::SharedValue>> Selected(Api& api, const std::string& ns) const {
    SWELL_ASSIGN_OR_RETURN(auto pods,
                           api.List(client::resources::kPods, ns, {.label_selector = selector_}));
    if (pods.empty()) {
      return Status(Code::kNotFound,
                    StrCat("no pods with labels ", Quote(selector_), " in namespace ", ns));
    }
    return pods;
  }

  Status PrintNamed(Session& session, Api& api, std::string name) {
    const std::string ns = session.Namespace();
    const bool pod_wanted = name.starts_with("pod/") || name.starts_with("pods/");
    if (pod_wanted) name = name.substr(name.find('/') + 1);
    if (name.find('/') == std::string::npos && !options_.all) {
      auto pod = api.Get(client::resources::kPods, ns, name);
      if (pod.ok()) return PrintPod(session, api, *pod);
      if (pod.status().code() != Code::kNotFound) return pod.status();
    }
    auto job = pod_wanted ? Result<JobView>(Status(Code::kNotFound, "")) : FindJob(api, ns, name);
    if (job.ok()) return PrintJobLogs(session, api, std::move(*job), options_);
    if (job.status().code() != Code::kNotFound) return job.status();
    // A pod that is gone, whose job is not.
    SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListJobs(api, ns));
    for (JobView& one : jobs) {
      for (const json::Value& attempt : json::GetArray(*one.object, {"status", "attempts"})) {
        if (json::GetString(attempt, {"member"}) != name) continue;
        options_.member = name;
        return PrintJobLogs(session, api, std::move(one), options_);
      }
    }
    if (!pod_wanted) return PrintOther(session, api, name, job.status());
    return Status(Code::kNotFound,
                  StrCat("no pod named ", Quote(name), " in namespace ", Quote(ns)));
  }

  // Several pods: an array's or a workload's. `no_job`: the error if there are none.
  Status PrintOther(Session& session, Api& api, const std::string& name, const Status& no_job) {
    SWELL_ASSIGN_OR_RETURN(const ArrayView array, FindArray(api, session.Namespace(), name));
    std::vector<json::SharedValue> pods;
    for (const JobView& one : array.jobs) {
      const size_t count = options_.all ? one.pods.size() : std::min<size_t>(one.pods.size(), 1);
      pods.insert(pods.end(), one.pods.begin(),
                  one.pods.begin() + static_cast<std::ptrdiff_t>(count));
    }
    if (array.jobs.empty()) {
      auto found = PodsOfWorkload(api, session.Namespace(), name);
      if (!found.ok()) {
        const bool is_workload = name.find('/') != std::string::npos ||
                                 !WorkloadsNamed(api, session.Namespace(), name).empty();
        return is_workload ? found.status() : no_job;
      }
      pods = std::move(*found);
    } else if (pods.empty()) {
      return Status(Code::kNotFound,
                    StrCat("array ", Quote(name), " has no pods; it ", array.Sentence()));
    }
    if (options_.logs.previous || options_.attempt > 0) {
      return Misuse(StrCat(options_.attempt > 0 ? "--attempt" : "--previous", ": ", Quote(name),
                           " has several pods; name one of them"));
    }
    return PrintLogs(session, api, pods, options_.logs);
  }

  // What ran before belongs to the pod's job.
  Status PrintPod(Session& session, Api& api, const json::SharedValue& pod) {
    const bool restarted = options_.logs.previous && api::RestartCount(*pod) > 0;
    const auto owner = api::ControllerOf(*pod);
    if (owner && !restarted && (options_.logs.previous || options_.attempt > 0)) {
      auto job = FindJob(api, api::Namespace(*pod), StrCat(ToLower(owner->kind), "/", owner->name));
      if (job.ok()) {
        options_.member = api::Name(*pod);
        return PrintJobLogs(session, api, std::move(*job), options_);
      }
    }
    if (options_.attempt > 1) {
      return Misuse(StrCat("--attempt ", options_.attempt, ": ", api::Name(*pod),
                           " is not a member of a job, so it has one attempt only"));
    }
    return PrintLogs(session, api, {pod}, options_.logs);
  }

  JobLogOptions options_;
  std::string selector_;
};

}  // namespace

Command LogsCommandSpec() {
  return {
      .name = "logs",
      .aliases = {"log"},
      .group = "Jobs",
      .summary = "Print the logs of a job, an array, a pod, or another workload.",
      .usage = "JOB | ARRAY | POD [CONTAINER] | KIND/NAME",
      .examples = {{"Follow the log of a job's master", "swell logs mnist -f"},
                   {"The last 20 lines of each pod of a job", "swell logs mnist --all --tail 20"},
                   {"All pods of a Deployment, or of a JobSet", "swell logs deploy/server"},
                   {"A container before its last restart", "swell logs mnist-worker-1 --previous"},
                   {"What ran before the first preemption", "swell logs mnist --attempt 1"}},
      .completes = Completes::kJob,
      .make = Makes<LogsAction>(),
  };
}

}  // namespace swell::cli
