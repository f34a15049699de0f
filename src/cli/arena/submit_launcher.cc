// arena submit mpijob, etjob, horovodjob, deepspeedjob: MPIJobs, whose launcher alone runs the
// command.
#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "cli/arena/submit_action.h"

namespace swell::cli::arena {
namespace {

// Where et-operator, which runs Arena's etjob and deepspeedjob elsewhere, puts its files.
constexpr std::string_view kEtFolder = "/etc/edl";
constexpr std::string_view kDeepSpeedFolder = "/job";
// A folder with a program `ssh` that reaches workers by kubectl or swell, where the image has one,
// for programs that know SSH alone: horovodrun, deepspeed, pdsh.
constexpr std::string_view kShellFolder = "/etc/mpi/bin";
constexpr int64_t kMaxWorkers = 1000;  // Arena's

class SubmitLauncherAction : public SubmitInstancesAction {
 public:
  explicit SubmitLauncherAction(std::string_view word) : SubmitInstancesAction(TrainerNamed(word)) {
    // Workers wait for what is started in them, and would hold their GPUs for ever.
    spec_.clean_pod_policy = "Running";
  }

 protected:
  void DeclareInstances(Flags& flags) override {
    flags.Int("--gpus", &spec_.gpus, "N", "GPUs per worker");
    flags.Int("--workers", &spec_.workers, "N",
              "number of workers, without the launcher (default 1)");
    flags.Text("--cpu", &spec_.cpu, "AMOUNT", "CPU per worker");
    flags.Text("--memory", &spec_.memory, "AMOUNT", "memory per worker");
  }
  int64_t TotalGpus() const override { return spec_.workers * spec_.gpus; }

  // What runs the command and reaches the workers: it trains nothing itself.
  virtual PyTorchSpec Launcher() const {
    PyTorchSpec launcher = spec_;
    launcher.gpus = 0;
    launcher.devices.clear();
    launcher.cpu.clear();
    launcher.memory.clear();
    return launcher;
  }
  Result<json::Value> MakeJob() override {
    return MakeMpiJob(Launcher(), spec_, spec_.workers, std::max<int64_t>(1, spec_.gpus));
  }

  // The launcher's ssh is the one that reaches workers.
  static void ReachBySsh(PyTorchSpec& launcher) {
    std::string& command = launcher.command.back();
    command = StrCat("export PATH=", kShellFolder, ":$PATH\n", command);
  }
  // Files of the ConfigMap that the job's controller makes, and how they are called in the folder.
  void MountFiles(std::string_view folder,
                  const std::vector<std::pair<std::string_view, std::string_view>>& files,
                  PyTorchSpec& launcher) const {
    json::Array items;
    for (const auto& [key, path] : files) {
      items.push_back(json::Object{
          {"key", key}, {"path", path}, {"mode", path.ends_with(".sh") ? 0555 : 0444}});
    }
    json::Object source{{"name", StrCat(spec_.name, "-config")}, {"items", std::move(items)}};
    launcher.mounts.push_back({.source = {{"configMap", std::move(source)}},
                               .path = std::string(folder),
                               .read_only = true});
  }
};

class SubmitMpiAction final : public SubmitLauncherAction {
 public:
  SubmitMpiAction() : SubmitLauncherAction("mpijob") { spec_.container = "mpi"; }

 private:
  void DeclareInstances(Flags& flags) override {
    SubmitLauncherAction::DeclareInstances(flags);
    flags
        .Switch("--mounts-on-launcher", &mounts_on_launcher_,
                "mount the --data volumes in the launcher, too")
        .also = {"--mountsOnLauncher"};
    flags
        .Switch("--gputopology", &topology_,
                "accepted for compatibility; GPUs of an instance are on one node anyway")
        .hidden = true;
  }
  std::vector<std::string> Remarks() const override {
    if (!topology_) return {};
    return {"--gputopology has no effect: all GPUs of a node count as equal"};
  }
  PyTorchSpec Launcher() const override {
    PyTorchSpec launcher = SubmitLauncherAction::Launcher();
    if (!mounts_on_launcher_) launcher.volumes.clear();
    return launcher;
  }

  bool mounts_on_launcher_ = false, topology_ = false;
};

class SubmitHorovodAction final : public SubmitLauncherAction {
 public:
  SubmitHorovodAction() : SubmitLauncherAction("horovodjob") { spec_.container = "horovod"; }

 private:
  void DeclareInstances(Flags& flags) override {
    SubmitLauncherAction::DeclareInstances(flags);
    flags
        .Int("--ssh-port", &ssh_port_, "PORT",
             "accepted for compatibility; the image's own SSH settings say the port")
        .also = {"--sshPort"};
  }
  std::vector<std::string> Remarks() const override {
    if (ssh_port_ == 0) return {};
    return {"--ssh-port has no effect: the image's own SSH settings say the port"};
  }
  PyTorchSpec Launcher() const override {
    PyTorchSpec launcher = SubmitLauncherAction::Launcher();
    ReachBySsh(launcher);
    return launcher;
  }

  int64_t ssh_port_ = 0;
};

// What etjob and deepspeedjob have in common elsewhere: et-operator runs both.
class SubmitEtOperatorAction : public SubmitLauncherAction {
 public:
  using SubmitLauncherAction::SubmitLauncherAction;

 protected:
  void DeclareInstances(Flags& flags) override {
    SubmitLauncherAction::DeclareInstances(flags);
    flags.List("--launcher-selector", &launcher_selectors_, "KEY=VALUE",
               "the launcher only on nodes with this label; --selector is for workers");
    flags.List("--launcher-annotation", &launcher_annotations_, "KEY=VALUE",
               "annotation of the launcher, repeatable");
    flags.List("--worker-annotation", &worker_annotations_, "KEY=VALUE",
               "annotation of workers, repeatable");
    flags.Choice("--job-restart-policy", &restart_policy_, "POLICY", {"Never", "OnFailure"},
                 "whether a launcher that fails is started again (default Never)");
    flags.Int("--job-backoff-limit", &backoff_limit_, "N",
              StrCat("restarts that --job-restart-policy=OnFailure allows (default ", kBackoffLimit,
                     ")"));
    flags
        .Text("--ssh-secret", &ssh_secret_, "NAME",
              "accepted for compatibility; each job has keys of its own")
        .hidden = true;
  }
  Status Fill(Session& session, const std::vector<std::string>& words) override {
    SWELL_RETURN_IF_ERROR(SubmitLauncherAction::Fill(session, words));
    SWELL_ASSIGN_OR_RETURN(node_labels_, ParseLabels(launcher_selectors_, "--launcher-selector"));
    SWELL_ASSIGN_OR_RETURN(of_launcher_,
                           ParsePairs(launcher_annotations_, "--launcher-annotation"));
    SWELL_ASSIGN_OR_RETURN(of_workers_, ParsePairs(worker_annotations_, "--worker-annotation"));
    return Status::Ok();
  }
  PyTorchSpec Launcher() const override {
    PyTorchSpec launcher = SubmitLauncherAction::Launcher();
    launcher.selectors = node_labels_;
    ReachBySsh(launcher);
    return launcher;
  }
  Result<json::Value> MakeJob() override {
    SWELL_ASSIGN_OR_RETURN(json::Value job, SubmitLauncherAction::MakeJob());
    Annotate(job, "Launcher", of_launcher_);
    Annotate(job, "Worker", of_workers_);
    if (!restart_policy_.empty()) {
      json::Set(job, {"spec", "mpiReplicaSpecs", "Launcher", "restartPolicy"}, restart_policy_);
    }
    if (restart_policy_ == "OnFailure" && spec_.retry == 0) {
      json::Set(job, {"spec", "runPolicy", "backoffLimit"},
                backoff_limit_ == kNotGiven ? kBackoffLimit : backoff_limit_);
    }
    return job;
  }
  std::vector<std::string> Remarks() const override {
    std::vector<std::string> remarks;
    if (!ssh_secret_.empty()) {
      remarks.emplace_back("--ssh-secret has no effect: each job has keys of its own");
    }
    if (backoff_limit_ == kNotGiven) return remarks;
    if (spec_.retry > 0) {
      remarks.emplace_back("--job-backoff-limit has no effect: --retry sets the limit");
    } else if (restart_policy_ != "OnFailure") {
      remarks.emplace_back(
          "--job-backoff-limit has no effect without --job-restart-policy=OnFailure");
    }
    return remarks;
  }

 private:
  static void Annotate(json::Value& job, std::string_view role, const KeyValues& annotations) {
    for (const auto& [key, value] : annotations) {
      json::Set(job, {"spec", "mpiReplicaSpecs", role, "template", "metadata", "annotations", key},
                value);
    }
  }

  static constexpr int64_t kBackoffLimit = 6;  // Arena's
  static constexpr int64_t kNotGiven = std::numeric_limits<int64_t>::min();
  std::vector<std::string> launcher_selectors_, launcher_annotations_, worker_annotations_;
  KeyValues node_labels_, of_launcher_, of_workers_;
  std::string restart_policy_, ssh_secret_;
  int64_t backoff_limit_ = kNotGiven;
};

class SubmitEtAction final : public SubmitEtOperatorAction {
 public:
  SubmitEtAction() : SubmitEtOperatorAction("etjob") { spec_.container = "et"; }

 private:
  void DeclareInstances(Flags& flags) override {
    SubmitEtOperatorAction::DeclareInstances(flags);
    flags
        .Int("--min-workers", &min_workers_, "N",
             "the fewest workers with which the job keeps running (default 1)")
        .also = {"--minWorkers"};
    flags
        .Int("--max-workers", &max_workers_, "N",
             StrCat("the most workers that arena scaleout gives (default ", kMaxWorkers, ")"))
        .also = {"--maxWorkers"};
    flags.Choice("--worker-restart-policy", &worker_policy_, "POLICY",
                 {"Never", "OnFailure", "Always", "ExitCode"},
                 "when a worker that fails is started again (default Never)");
    flags.Switch("--spot-instance", &spot_, "accepted for compatibility; see --min-workers")
        .hidden = true;
    flags.Int("--max-wait-time", &max_wait_, "SECONDS", "accepted for compatibility").hidden = true;
  }
  std::vector<std::string> Remarks() const override {
    std::vector<std::string> remarks = SubmitEtOperatorAction::Remarks();
    if (spot_) {
      remarks.emplace_back(
          "--spot-instance has no effect: a job always runs on while --min-workers run");
    }
    if (max_wait_ != 0) {
      remarks.emplace_back("--max-wait-time has no effect: the job waits until it is deleted");
    }
    return remarks;
  }
  Status Fill(Session& session, const std::vector<std::string>& words) override {
    if (min_workers_ < 1) {
      return Misuse(StrCat("--min-workers ", min_workers_, ": expected 1 or more"));
    }
    if (max_workers_ < min_workers_) {
      return Misuse(
          StrCat("--max-workers ", max_workers_, ": fewer than --min-workers ", min_workers_));
    }
    if (spec_.workers < min_workers_) {
      return Misuse(
          StrCat("--workers ", spec_.workers, ": fewer than --min-workers ", min_workers_));
    }
    if (spec_.workers > max_workers_) {
      return Misuse(
          StrCat("--workers ", spec_.workers, ": more than --max-workers ", max_workers_));
    }
    SWELL_RETURN_IF_ERROR(SubmitEtOperatorAction::Fill(session, words));
    spec_.env.emplace_back("minWorkers", std::to_string(min_workers_));
    spec_.env.emplace_back("maxWorkers", std::to_string(max_workers_));
    return Status::Ok();
  }
  PyTorchSpec Launcher() const override {
    PyTorchSpec launcher = SubmitEtOperatorAction::Launcher();
    MountFiles(kEtFolder,
               {{"discover_hosts.sh", "discover_hosts.sh"}, {"horovod-hosts", "hostfile"}},
               launcher);
    return launcher;
  }
  Result<json::Value> MakeJob() override {
    SWELL_ASSIGN_OR_RETURN(json::Value job, SubmitEtOperatorAction::MakeJob());
    json::Set(job, {"spec", "elasticPolicy"},
              json::Object{{"minReplicas", min_workers_}, {"maxReplicas", max_workers_}});
    if (!worker_policy_.empty()) {
      json::Set(job, {"spec", "mpiReplicaSpecs", "Worker", "restartPolicy"}, worker_policy_);
    }
    return job;
  }

  int64_t min_workers_ = 1, max_workers_ = kMaxWorkers, max_wait_ = 0;
  std::string worker_policy_;
  bool spot_ = false;
};

class SubmitDeepSpeedAction final : public SubmitEtOperatorAction {
 public:
  SubmitDeepSpeedAction() : SubmitEtOperatorAction("deepspeedjob") {
    spec_.container = "deepspeed";
  }

 private:
  Status Fill(Session& session, const std::vector<std::string>& words) override {
    SWELL_RETURN_IF_ERROR(SubmitEtOperatorAction::Fill(session, words));
    const bool said = HasField(spec_.env, "NCCL_ASYNC_ERROR_HANDLING");
    // As Arena sets it: a rank that loses its peers ends, and does not hang.
    if (!said) spec_.env.emplace_back("NCCL_ASYNC_ERROR_HANDLING", "1");
    return Status::Ok();
  }
  PyTorchSpec Launcher() const override {
    PyTorchSpec launcher = SubmitEtOperatorAction::Launcher();
    MountFiles(kDeepSpeedFolder, {{"hostfile", "hostfile"}}, launcher);
    return launcher;
  }
};

}  // namespace

std::vector<Command> SubmitLauncherSpecs() {
  std::vector<Command> all;
  all.push_back({
      .name = "mpijob",
      .aliases = {"mpi", "mj"},
      .summary = "Submit an MPI job: a launcher, and workers in which it starts processes.",
      .usage = "\"COMMAND\"",
      .examples = {{"Two workers with a GPU each, and a launcher",
                    "arena submit mpi --name=mnist --workers=2 --gpus=1 --image=horovod/horovod "
                    "\"mpirun python mnist.py\""}},
      .make = Makes<SubmitMpiAction>(),
  });
  all.push_back({
      .name = "etjob",
      .aliases = {"et"},
      .summary = "Submit an elastic Horovod job: workers come and go while its launcher runs.",
      .usage = "\"COMMAND\"",
      .examples = {{"Two workers, which may become one to three",
                    "arena submit etjob --name=mnist --workers=2 --min-workers=1 --max-workers=3 "
                    "--gpus=1 --image=horovod/horovod \"horovodrun -np 2 --min-np 1 --max-np 3 "
                    "--host-discovery-script /etc/edl/discover_hosts.sh python mnist.py\""},
                   {"One worker more", "arena scaleout etjob --name mnist --count 1"}},
      .notes =
          "/etc/edl/discover_hosts.sh and /etc/mpi/discover_hosts.sh print the workers that "
          "run, as HOST:SLOTS. The image needs kubectl or swell, or SSH's client and server. The "
          "job is an MPIJob with spec.elasticPolicy.",
      .make = Makes<SubmitEtAction>(),
  });
  all.push_back({
      .name = "horovodjob",
      .aliases = {"horovod", "hj"},
      .summary = "Submit a Horovod job: a launcher, and workers in which it starts processes.",
      .usage = "\"COMMAND\"",
      .examples = {{"Two workers with a GPU each, and a launcher",
                    "arena submit horovod --name=mnist --workers=2 --gpus=1 "
                    "--image=horovod/horovod \"horovodrun -np 2 --hostfile /etc/mpi/hostfile "
                    "python mnist.py\""}},
      .notes =
          "The job is an MPIJob. The launcher's ssh reaches workers by kubectl or swell, or by "
          "SSH. The image needs one of the two, or SSH's client and server.",
      .make = Makes<SubmitHorovodAction>(),
  });
  all.push_back({
      .name = "deepspeedjob",
      .aliases = {"deepspeed", "dp"},
      .summary = "Submit a DeepSpeed job: a launcher, and workers in which it starts processes.",
      .usage = "\"COMMAND\"",
      .examples = {{"Two workers with eight GPUs each, and a launcher",
                    "arena submit deepspeedjob --name=bert --workers=2 --gpus=8 "
                    "--image=deepspeed/deepspeed \"deepspeed train.py\""}},
      .notes =
          "/job/hostfile, where deepspeed looks for it, lists the workers. The job is an "
          "MPIJob. The launcher's ssh reaches workers by kubectl or swell, or by SSH; the image "
          "needs one of the two, or SSH's client and server. deepspeed also needs pdsh there, "
          "or --launcher openmpi.",
      .make = Makes<SubmitDeepSpeedAction>(),
  });
  return all;
}

}  // namespace swell::cli::arena
