// runai logs, exec, attach, bash, port-forward: the commands of `swell`, for a workload of a
// project.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/exec_in.h"
#include "cli/pods/job_logs.h"
#include "cli/runai/runai.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::runai {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(500);

// Which pod of a workload, and how long to wait until it runs.
class PodChoice {
 public:
  void Declare(Flags& flags) {
    flags.Text("--pod", &pod_, "POD", "pod (default: the first)");
    flags.Text("--wait-timeout", &wait_, "DURATION",
               "how long to wait until the pod runs (default: not at all)");
    flags.AddName("--wait-timeout", "--pod-running-timeout");
  }
  const std::string& pod() const { return pod_; }
  // Null: the workload has none of this name.
  json::SharedValue In(const JobView& job) const {
    for (const json::SharedValue& one : job.pods) {
      if (pod_.empty() || api::Name(*one) == pod_) return one;
    }
    return nullptr;
  }
  // The workload when its pod has started, when it is over, or when the time is.
  Result<JobView> Await(Session& session, Scope& scope, const std::string& name) const {
    Duration wait{0};
    if (!wait_.empty()) {
      SWELL_ASSIGN_OR_RETURN(wait, ParseDuration(wait_, "--wait-timeout"));
    }
    const WallTime began = session.Now();
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindWorkload(session, scope, name));
      const json::SharedValue pod = In(job);
      if ((pod && api::Phase(*pod) != "Pending") || job.over()) return job;
      if (session.Now() - began >= wait || !scope.api->Pause(kPollInterval)) return job;
    }
  }

 private:
  std::string pod_, wait_;
};

class LogsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    options_.Declare(flags, "--previous");
    choice_.Declare(flags);
    flags.Switch("--all-pods", &options_.all, "all pods; each line begins with the pod's name");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(options_.Check());
    options_.member = choice_.pod();
    if (words.size() != 1) return Misuse("expected one name: runai logs WORKLOAD");
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
    SWELL_ASSIGN_OR_RETURN(JobView job, choice_.Await(session, scope, words[0]));
    const bool none =
        job.pods.empty() && json::GetArray(*job.object, {"status", "attempts"}).empty();
    if (none) {
      return Status(
          Code::kNotFound,
          StrCat("the workload ", Quote(job.name), " has no pod", job.over() ? " any more" : " yet",
                 ": it is ", StatusWord(job), job.waits.empty() ? "" : "; ", job.waits));
    }
    SWELL_RETURN_IF_ERROR(PrintJobLogs(session, *scope.api, std::move(job), options_));
    return 0;
  }

 private:
  JobLogOptions options_;
  PodChoice choice_;
};

struct FoundPod {
  std::string pod;  // "pod/NAME"
  std::string workload;
};

// Finds the workload's pod and makes the session one of its namespace.
Result<FoundPod> PodOf(Session& session, const std::string& name, const PodChoice& choice) {
  SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
  SWELL_ASSIGN_OR_RETURN(JobView job, choice.Await(session, scope, name));
  session.UseNamespace(job.ns);
  if (const json::SharedValue pod = choice.In(job)) {
    return FoundPod{StrCat("pod/", api::Name(*pod)), job.name};
  }
  return Status(Code::kNotFound,
                StrCat("the workload ", Quote(job.name), " has no pod",
                       choice.pod().empty() ? "" : " " + Quote(choice.pod()), ": it is ",
                       StatusWord(job), job.waits.empty() ? "" : "; ", job.waits));
}

// A command of `swell` whose first word is a pod, for a workload's.
class PodAction final : public Action {
 public:
  PodAction(Command (*command)(), size_t words_min, std::string expected)
      : inner_(command().make()), words_min_(words_min), expected_(std::move(expected)) {}
  void Declare(Flags& flags) override {
    inner_->Declare(flags);
    choice_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() < words_min_) return Misuse(expected_);
    SWELL_ASSIGN_OR_RETURN(FoundPod found, PodOf(session, words[0], choice_));
    words[0] = std::move(found.pod);
    return inner_->Run(session, std::move(words));
  }

 private:
  std::unique_ptr<Action> inner_;
  size_t words_min_;
  std::string expected_;
  PodChoice choice_;
};

class BashAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-c,--container", &container_, "NAME", "container (default: the first)");
    choice_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return Misuse("expected one workload: runai bash WORKLOAD");
    SWELL_ASSIGN_OR_RETURN(const FoundPod found, PodOf(session, words[0], choice_));
    return Exec(session, {.ns = session.Namespace(),
                          .pod = found.pod.substr(found.pod.find('/') + 1),
                          .container = container_,
                          .command = {"bash"},
                          .interactive = true});
  }

 private:
  std::string container_;
  PodChoice choice_;
};

class PortForwardAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    inner_ = PortForwardCommandSpec().make();
    inner_->Declare(flags);
    flags.List("--port", &ports_, "LOCAL:REMOTE",
               "port to forward, repeatable (default: the workload's own ports)");
    choice_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    words.insert(words.end(), ports_.begin(), ports_.end());
    if (words.empty()) {
      return Misuse("expected a workload: runai port-forward WORKLOAD --port 8888:8888");
    }
    SWELL_ASSIGN_OR_RETURN(FoundPod found, PodOf(session, words[0], choice_));
    words[0] = std::move(found.pod);
    if (words.size() == 1 && choice_.pod().empty()) {
      SWELL_ASSIGN_OR_RETURN(const bool exposed, IsExposed(session, found.workload));
      if (exposed) words[0] = StrCat("service/", found.workload);
    }
    return inner_->Run(session, std::move(words));
  }

 private:
  // Whether it was submitted with --port OUTSIDE:INSIDE, of which a Service has both numbers.
  static Result<bool> IsExposed(Session& session, const std::string& workload) {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    const auto service = api->Get(client::resources::kServices, session.Namespace(), workload);
    if (service.status().code() == Code::kNotFound) return false;
    if (!service.ok()) return service.status();
    // One without an address only gives the pods their names.
    return json::GetString(**service, {"spec", "clusterIP"}) != "None";
  }

  std::unique_ptr<Action> inner_;
  std::vector<std::string> ports_;
  PodChoice choice_;
};

}  // namespace

Result<int> AttachWhenRunning(Session& session,
                              Scope& scope,
                              const std::string& name,
                              std::optional<Duration> limit) {
  const WallTime began = session.Now();
  for (;;) {
    SWELL_ASSIGN_OR_RETURN(const JobView job, FindWorkload(session, scope, name));
    if (!job.pods.empty() && api::Phase(*job.pods.front()) == "Running") break;
    const std::string is = StrCat(StatusWord(job), job.waits.empty() ? "" : "; ", job.waits);
    if (job.over()) {
      return Status(Code::kNotFound,
                    StrCat("--attach: the workload ", Quote(name), " has ended: it is ", is,
                           "; runai logs ", name, " prints its output"));
    }
    if (limit && session.Now() - began >= *limit) {
      return Status(Code::kTimeout,
                    StrCat("--attach: the workload ", Quote(name), " does not run yet: it is ", is,
                           "; runai attach ", name, " attaches to it when it does"));
    }
    if (!scope.api->Pause(kPollInterval)) return 1;
  }
  return AttachSpec().make()->Run(session, {name});
}

Command LogsSpec() {
  return {
      .name = "logs",
      .aliases = {"log"},
      .summary = "Print the logs of a workload.",
      .usage = "WORKLOAD",
      .examples = {{"Follow the log", "runai logs train1 -p team-a -f"}},
      .completes = Completes::kJob,
      .make = Makes<LogsAction>(),
  };
}

Command ExecSpec() {
  return {
      .name = "exec",
      .summary = "Run a command in a workload.",
      .usage = "WORKLOAD -- COMMAND [ARGUMENT...]",
      .examples = {{"Show its GPUs", "runai exec train1 -p team-a -- nvidia-smi"}},
      .completes = Completes::kJob,
      .make =
          [] {
            return std::make_unique<PodAction>(
                &ExecCommandSpec, 2,
                "expected a workload and a command: runai exec WORKLOAD -- ls");
          },
  };
}

Command AttachSpec() {
  return {
      .name = "attach",
      .summary = "Attach to the running process of a workload.",
      .usage = "WORKLOAD",
      .examples = {{"Watch its output", "runai attach train1 -p team-a"}},
      .notes =
          "A workspace that keeps a terminal (submitted with --stdin --tty, or without a "
          "command) gets yours. Its program then gets Ctrl-C, too.",
      .completes = Completes::kJob,
      .make =
          [] {
            return std::make_unique<PodAction>([] { return AttachCommandSpec(true); }, 1,
                                               "expected one workload: runai attach WORKLOAD");
          },
  };
}

Command BashSpec() {
  return {
      .name = "bash",
      .summary = "Open a shell in a workload.",
      .usage = "WORKLOAD",
      .examples = {{"A shell in the first pod", "runai bash train1 -p team-a"}},
      .completes = Completes::kJob,
      .make = Makes<BashAction>(),
  };
}

Command PortForwardSpec() {
  return {
      .name = "port-forward",
      .summary = "Forward local ports to a workload.",
      .usage = "WORKLOAD [--port LOCAL:REMOTE]",
      .examples = {{"A notebook at localhost:8888",
                    "runai port-forward notebook -p team-a --port 8888:8888"}},
      .completes = Completes::kJob,
      .make = Makes<PortForwardAction>(),
  };
}

}  // namespace swell::cli::runai
