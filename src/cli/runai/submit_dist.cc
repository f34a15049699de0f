// runai submit-dist FRAMEWORK, runai training FRAMEWORK submit: training in several pods, as jobs
// of Kubeflow, which the same commands make elsewhere.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/restricted_pods.h"
#include "cli/jobs/submit_warnings.h"
#include "cli/print/output.h"
#include "cli/runai/flag_names.h"
#include "cli/runai/pod_flags.h"
#include "cli/runai/runai.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::runai {
namespace {

struct Framework {
  std::string_view word, also;
  std::string_view title;
  JobForm form;
  std::string_view leader;     // its role; empty: the first worker leads
  std::string_view container;  // where its operator looks for ports
  bool needs_leader = false;
  bool elastic = false;
  bool launches = false;  // the leader alone runs the command, and starts processes in the workers
};

constexpr int64_t kRetries = 6;  // as Run:ai has it

constexpr std::array<Framework, 5> kFrameworks = {
    {{.word = "pytorch",
      .also = "PyTorch",
      .title = "PyTorch",
      .form = kPyTorchForm,
      .leader = "Master",
      .container = "pytorch",
      .elastic = true},
     {.word = "tensorflow",
      .also = "tf",
      .title = "TensorFlow",
      .form = kTensorFlowForm,
      .leader = "Chief",
      .container = "tensorflow"},
     {.word = "xgboost",
      .also = "XGBoost",
      .title = "XGBoost",
      .form = kXgboostForm,
      .leader = "Master",
      .container = "xgboost",
      .needs_leader = true},
     {.word = "mpi",
      .also = "MPI",
      .title = "MPI",
      .form = kMpiForm,
      .leader = "Launcher",
      .container = "mpi",
      .needs_leader = true,
      .launches = true},
     {.word = "jax", .also = "JAX", .title = "JAX", .form = kJaxForm, .container = "jax"}}};

const Framework* FindFramework(std::string_view word) {
  for (const Framework& one : kFrameworks) {
    if (ToLower(word) == one.word || ToLower(word) == ToLower(one.also)) return &one;
  }
  return nullptr;
}

// What version 2 lets the leader have otherwise than the workers.
class LeaderFlags {
 public:
  // `leads`: Master, Chief or Launcher.
  void Declare(Flags& flags, std::string_view leads) {
    flags.Group(StrCat(leads, ", if it differs"));
    flags.Text("--master-command", &command_, "COMMAND", "shell command line");
    flags.Text("--master-args", &args_, "ARGUMENTS", "arguments, separated by blanks");
    flags.List("--master-environment", &env_, "KEY=VALUE", "environment variable, repeatable");
    flags.Int("--master-gpu-devices-request", &gpus_, "N", StrCat("GPUs of the ", ToLower(leads)));
    flags.Text("--master-gpu-portion-request", &portion_, "PART",
               "fraction of each of those GPUs (of one without --master-gpu-devices-request)");
    flags.Refuse("--master-gpu-portion-limit", "the limit is always the request");
    flags.Choice("--master-restart-policy", &restart_policy_, "POLICY",
                 {"Always", "OnFailure", "Never"}, "Always, OnFailure or Never");
    flags.Text("--master-cpu-core-request", &cpu_, "AMOUNT", "CPU request");
    flags.Text("--master-cpu-core-limit", &cpu_limit_, "AMOUNT", "CPU limit");
    flags.Text("--master-cpu-memory-request", &memory_, "AMOUNT", "memory request");
    flags.Text("--master-cpu-memory-limit", &memory_limit_, "AMOUNT", "memory limit");
    flags.List("--master-extended-resource", &devices_, "NAME=N", "other resource, repeatable");
    flags.Switch("--master-no-pvcs", &no_claims_, "without volume claims");
  }
  Result<PyTorchSpec> Of(const PyTorchSpec& worker) const {
    PyTorchSpec leader = worker;
    if (!command_.empty()) {
      leader.command = {"sh", "-c", command_};
      leader.args.clear();
    }
    if (!args_.empty()) {
      leader.args.clear();
      for (std::string_view word : Split(args_, ' ')) {
        if (!word.empty()) leader.args.emplace_back(word);
      }
    }
    PodFlags::PutVariables(leader);
    SWELL_ASSIGN_OR_RETURN(KeyValues env, ParsePairs(env_, "--master-environment"));
    leader.env.insert(leader.env.end(), env.begin(), env.end());
    SWELL_RETURN_IF_ERROR(FillGpus(leader));
    SWELL_RETURN_IF_ERROR(FillAmounts(leader));
    SWELL_ASSIGN_OR_RETURN(KeyValues devices, ParsePairs(devices_, "--master-extended-resource"));
    if (!devices.empty()) leader.devices = std::move(devices);
    if (no_claims_) {
      leader.volumes.clear();
      std::erase_if(leader.mounts, [](const PodMount& mount) {
        return mount.source.contains("persistentVolumeClaim");
      });
    }
    return leader;
  }

  const std::string& restart_policy() const { return restart_policy_; }

 private:
  Status FillAmounts(PyTorchSpec& leader) const {
    const auto put = [](const std::string& own, std::string& amount) {
      if (!own.empty()) amount = own;
    };
    put(cpu_, leader.cpu);
    put(cpu_limit_, leader.cpu_limit);
    put(memory_, leader.memory);
    put(memory_limit_, leader.memory_limit);
    SWELL_RETURN_IF_ERROR(CheckRequest("--master-cpu-core-request", leader.cpu,
                                       "--master-cpu-core-limit", leader.cpu_limit));
    return CheckRequest("--master-cpu-memory-request", leader.memory, "--master-cpu-memory-limit",
                        leader.memory_limit);
  }
  // What it asks for takes the place of all that workers have.
  Status FillGpus(PyTorchSpec& leader) const {
    if (gpus_ < 0 && portion_.empty()) return Status::Ok();
    leader.gpus = std::max<int64_t>(0, gpus_);
    leader.gpu_fraction = 0;
    leader.gpu_memory_mib = 0;
    if (portion_.empty()) return Status::Ok();
    constexpr std::string_view kPortion = "--master-gpu-portion-request";
    SWELL_ASSIGN_OR_RETURN(const double part, ParseGpus(kPortion, portion_));
    if (part <= 0 || part > 1 || gpus_ == 0) {
      return Misuse(StrCat(kPortion, " ", portion_, gpus_ == 0 ? " of 0 GPUs" : "",
                           ": expected a part of a GPU, like 0.5"));
    }
    leader.gpu_devices = std::max<int64_t>(1, gpus_);
    leader.gpus = part == 1 ? leader.gpu_devices : 0;
    if (part < 1) leader.gpu_fraction = part;
    return Status::Ok();
  }

  std::string command_, args_, portion_, restart_policy_, cpu_, cpu_limit_, memory_, memory_limit_;
  std::vector<std::string> env_, devices_;
  int64_t gpus_ = -1;
  bool no_claims_ = false;
};

class SubmitDistAction final : public Action {
 public:
  // Without a framework the flag --framework says it.
  SubmitDistAction(const Framework* framework, int version)
      : framework_(framework), pod_flags_(version) {
    spec_.clean_pod_policy.clear();
    spec_.retry = kRetries;
  }

  void Declare(Flags& flags) override {
    flags.CountWordsBeforeDashes(&words_before_dashes_);
    flags.Group("Workload");
    flags.Text("--name", &spec_.name, "NAME", "name of the workload (or the first argument)");
    flags.Text("--job-name-prefix", &spec_.name_prefix, "TEXT", "generate a name with this prefix");
    if (framework_ == nullptr) {
      flags.Text("-f,--framework", &word_, "FRAMEWORK", "PyTorch, TF, XGBoost, MPI or JAX");
    }
    pod_flags_.DeclareContainer(flags, spec_);
    flags.Group("Resources");
    DeclareInstances(flags);
    flags.Group("Placement");
    pod_flags_.DeclarePlace(flags, spec_);
    flags.Group("Completion");
    flags.Text("--priority", &spec_.priority, "CLASS", "priority class (default train)");
    flags.Int("--backoff-limit", &spec_.retry, "N",
              StrCat("number of restarts before the workload fails (default ", kRetries, ")"));
    flags.Text("--auto-deletion-time-after-completion", &ttl_, "DURATION",
               "delete the workload this long after its end");
    flags.Choice("--preemptibility", &preemptibility_, "WORD", {"preemptible", "non-preemptible"},
                 "preemptible, as all distributed training is");
    flags.Choice("--restart-policy", &restart_policy_, "POLICY", {"Always", "OnFailure", "Never"},
                 "when containers start again (default OnFailure; with --backoff-limit 0 Never)");
    flags.Choice("--clean-pod-policy", &spec_.clean_pod_policy, "POLICY",
                 {"None", "Running", "All"},
                 StrCat("which pods are deleted when it ends (default ",
                        framework_ == nullptr  ? "None; MPI: Running"
                        : framework_->launches ? "Running"
                                               : "None",
                        ")"));
    pod_flags_.DeclareAttach(flags);
    flags.Text("--dry-run", &dry_run_, "none|client", "print the workload instead of creating it")
        .implied = "client";
    flags.Text("-o,--output", &output_, "FORMAT", "output format: yaml, json or name");
    AddOtherNames(flags);
    PodFlags::RefuseOthers(flags);
    for (const char* key : {"--required-pod-topology-key", "--preferred-pod-topology-key"}) {
      flags.Refuse(key, "use runai submit --workers N");
    }
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(Fill(session, std::move(words)));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kIsRefused));
    SWELL_RETURN_IF_ERROR(CheckTakesWork(scope.project));
    spec_.ns = scope.project.ns;
    spec_.project = scope.project.name;
    facts_.uid = NewUid(session);
    if (framework_->launches) facts_.mpi_workers = workers_;
    SWELL_RETURN_IF_ERROR(pod_flags_.ChoosePools(*scope.api, spec_));
    SWELL_RETURN_IF_ERROR(CheckPriorityClass(*scope.api, spec_.priority));
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakeJob());
    for (const std::string& remark : pod_flags_.Remarks()) {
      session.ErrLine(StrCat("runai: ", remark));
    }
    if (dry_run_ == "client") {
      if (form.table()) form.kind = OutputForm::Kind::kYaml;
      session.Out(FormatObject(form, job, ResourceNameOf(job)));
      return 0;
    }
    SWELL_RETURN_IF_ERROR(pod_flags_.MakeClaims(*scope.api, spec_.ns));
    std::string restricted;
    auto made = CreateJob(*scope.api, framework_->form.resource(), spec_.ns, job,
                          {.field_validation = "Strict"}, restricted);
    if (!made.ok()) return made.status();
    if (!restricted.empty()) session.ErrLine(StrCat("runai: ", restricted));
    SWELL_RETURN_IF_ERROR(pod_flags_.MakeOwnClaims(*scope.api, **made));
    const std::string name(api::Name(**made));
    if (!form.table()) {
      session.Out(FormatObject(form, **made, ResourceNameOf(**made)));
      return pod_flags_.Attach(session, scope, name);
    }
    session.OutLine(StrCat("The job '", name, "' has been submitted successfully"));
    PrintSubmitWarnings(session, "runai", *scope.api, **made);
    session.OutLine(StrCat("You can run `runai describe job ", name, " -p ", scope.project.name,
                           "` to check the job status"));
    return pod_flags_.Attach(session, scope, name);
  }

 private:
  // Flags that only other frameworks have are refused by their names.
  void DeclareInstances(Flags& flags) {
    const std::string_view leads = framework_ != nullptr ? framework_->leader : "Master";
    const std::string of = StrCat("jobs of ", framework_ != nullptr ? framework_->word : "");
    flags.Int("--workers", &workers_, "N",
              leads.empty() ? "number of workers (default 1)"
                            : StrCat("number of workers in addition to the ", ToLower(leads),
                                     " (default 1)"));
    if (framework_ != nullptr && framework_->launches) {
      flags.Int("--processes", &workers_, "N", "older name of --workers").hidden = true;
    }
    if (framework_ == nullptr || (!leads.empty() && !framework_->needs_leader)) {
      flags.Switch("--no-master", &no_leader_,
                   StrCat("no ", ToLower(leads), ": the first worker takes its role"));
    } else {
      flags.Refuse("--no-master", leads.empty() ? StrCat(of, " have no master")
                                                : StrCat(of, " need their ", ToLower(leads)));
    }
    pod_flags_.DeclareAmounts(flags, spec_);
    if (framework_ == nullptr || framework_->elastic) {
      flags.Text("--nproc-per-node", &spec_.nproc_per_node, "N",
                 "processes per instance: a number, auto, cpu or gpu");
      flags.Int("--min-workers", &min_, "N", "minimum number of workers of elastic training");
      flags.Int("--max-replicas", &max_, "N", "maximum number of workers of elastic training");
    } else {
      flags.Refuse("--nproc-per-node", StrCat(of, " do not start processes with torchrun"));
      for (const char* name : {"--min-workers", "--max-replicas"}) {
        flags.Refuse(name, StrCat(of, " cannot change size"));
      }
    }
    if (framework_ == nullptr || framework_->launches) {
      flags.Int("--slots-per-worker", &slots_, "N", "processes per MPI worker (default 1)");
    } else {
      flags.Refuse("--slots-per-worker", StrCat(of, " have no launcher"));
    }
    if (!leads.empty()) leader_.Declare(flags, leads);
  }

  Status Fill(Session& session, std::vector<std::string> words) {
    if (framework_ == nullptr) framework_ = FindFramework(word_);
    if (framework_ == nullptr) {
      return Misuse(
          StrCat("--framework ", Quote(word_), ": expected PyTorch, TF, XGBoost, MPI or JAX"));
    }
    SWELL_RETURN_IF_ERROR(PodFlags::TakeName(spec_, words_before_dashes_, words));
    if (spec_.name.empty() && spec_.name_prefix.empty()) spec_.name_prefix = framework_->word;
    pod_flags_.FillCommand(spec_, std::move(words));
    SWELL_RETURN_IF_ERROR(pod_flags_.Fill(spec_));
    if (workers_ < 1) return Misuse(StrCat("--workers ", workers_, ": expected 1 or more"));
    no_leader_ = no_leader_ || framework_->leader.empty();
    if (no_leader_ && framework_->needs_leader) {
      return Misuse(StrCat("--no-master: ", framework_->word, " needs its master"));
    }
    if ((min_ > 0 || max_ > 0) && !framework_->elastic) {
      return Misuse(StrCat("--min-workers: jobs of ", framework_->word, " cannot change size"));
    }
    spec_.restart_policy = !restart_policy_.empty() ? restart_policy_
                           : spec_.retry > 0        ? "OnFailure"
                                                    : "Never";
    if (!ttl_.empty()) {
      SWELL_ASSIGN_OR_RETURN(Duration span,
                             ParseDuration(ttl_, "--auto-deletion-time-after-completion"));
      spec_.ttl_s = std::chrono::duration_cast<std::chrono::seconds>(span).count();
    }
    if (slots_ > 0 && !framework_->launches) {
      return Misuse(StrCat("--slots-per-worker: ", framework_->word, " has no launcher"));
    }
    if (spec_.clean_pod_policy.empty()) {
      spec_.clean_pod_policy = framework_->launches ? "Running" : "None";
    }
    spec_.container = framework_->container;
    spec_.workers = workers_ + (no_leader_ ? 0 : 1);
    if (spec_.priority.empty()) spec_.priority = "train";
    auto mark = [](KeyValues& pairs, std::string_view key, std::string value) {
      if (!value.empty()) pairs.emplace_back(std::string(key), std::move(value));
    };
    mark(spec_.annotations, api::keys::kUser, LocalUser(session));
    mark(spec_.annotations, api::keys::kCommandLine, session.global().command_line);
    mark(spec_.labels, api::keys::kWorkload, "train");
    if (preemptibility_ == "non-preemptible") {
      return Misuse(
          "--preemptibility non-preemptible: use --priority build, whose jobs are not "
          "preempted");
    }
    return Status::Ok();
  }

  Result<json::Value> MakeJob() const {
    SWELL_RETURN_IF_ERROR(CheckJob(spec_));
    PyTorchSpec worker_spec = spec_;
    PodFlags::AddVariables(facts_, worker_spec);
    PyTorchSpec like_worker = spec_;
    if (framework_->launches) {
      like_worker.gpus = 0;
      like_worker.gpu_fraction = 0;
      like_worker.gpu_memory_mib = 0;
      like_worker.devices.clear();
    }
    SWELL_ASSIGN_OR_RETURN(PyTorchSpec leader_spec, leader_.Of(like_worker));
    PodFlags::AddVariables(facts_, leader_spec);
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakeJobOf(leader_spec, worker_spec));
    if (!no_leader_ && !leader_.restart_policy().empty()) {
      json::Set(job, {"spec", framework_->form.replica_specs, framework_->leader, "restartPolicy"},
                leader_.restart_policy());
    }
    return job;
  }

  Result<json::Value> MakeJobOf(const PyTorchSpec& leader_spec,
                                const PyTorchSpec& worker_spec) const {
    if (framework_->launches) {
      return MakeMpiJob(leader_spec, worker_spec, workers_, std::max<int64_t>(1, slots_));
    }
    SWELL_ASSIGN_OR_RETURN(json::Object worker, MakePodSpec(worker_spec));
    SWELL_ASSIGN_OR_RETURN(json::Object leader, MakePodSpec(leader_spec));
    json::Value job =
        MakeRoleJob(spec_, framework_->form,
                    {{framework_->leader, no_leader_ ? 0 : 1, std::move(leader),
                      GpuShareAnnotations(leader_spec)},
                     {"Worker", workers_, std::move(worker), GpuShareAnnotations(spec_)}});
    if (min_ > 0 || max_ > 0) {
      const int64_t most = max_ > 0 ? max_ : workers_;
      json::Set(job, {"spec", "elasticPolicy"},
                json::Object{{"minReplicas", min_ > 0 ? min_ : workers_}, {"maxReplicas", most}});
    }
    return job;
  }

  const Framework* framework_;
  PyTorchSpec spec_;
  PodFlags pod_flags_;
  LeaderFlags leader_;
  PodFacts facts_{.name = "metadata.labels['training.kubeflow.org/job-name']",
                  .index = "metadata.labels['training.kubeflow.org/replica-index']"};
  std::string word_, dry_run_, ttl_, output_, restart_policy_, preemptibility_;
  int64_t workers_ = 1, min_ = 0, max_ = 0, slots_ = 0;
  size_t words_before_dashes_ = 0;
  bool no_leader_ = false;
};

Command Submission(std::string name, const Framework* framework, int version) {
  const std::string word(framework != nullptr ? framework->word : "distributed");
  const std::string leads = framework != nullptr ? ToLower(framework->leader) : "master";
  const std::string_view title = framework != nullptr ? framework->title : "distributed";
  return {
      .name = std::move(name),
      .summary = StrCat("Submit ", title, " training with ",
                        leads.empty() ? "" : StrCat("a ", leads, " and "), "workers."),
      .usage = "NAME --image IMAGE [flags] [-- COMMAND...]",
      .examples = {{StrCat(leads.empty() ? "Three" : StrCat("A ", leads, " and three"),
                           " workers with two GPUs each"),
                    StrCat(version == 2 ? StrCat("runai training ", word, " submit")
                                        : StrCat("runai submit-dist ", word),
                           " dist1 -p team-a -i IMAGE --workers 3 -g 2 --command -- ",
                           framework != nullptr && framework->launches ? "mpirun python a.py"
                                                                       : "python a.py")}},
      .make = [framework,
               version] { return std::make_unique<SubmitDistAction>(framework, version); },
  };
}

}  // namespace

Command SubmitDistSpec() {
  Command command{
      .name = "submit-dist",
      .summary = "Submit distributed training.",
  };
  for (const Framework& framework : kFrameworks) {
    Command one = Submission(std::string(framework.word), &framework, 1);
    if (ToLower(framework.also) != framework.word) one.aliases = {std::string(framework.also)};
    command.children.push_back(std::move(one));
  }
  return command;
}

Command TrainingPart(const Command& training, const std::string& name) {
  Command part = training;
  part.name = name;
  for (Command& child : part.children) {
    if (child.name == "list") child = ListSpec(name, StrCat("training ", name));
  }
  return part;
}

std::vector<Command> FrameworkSpecs(const Command& training) {
  std::vector<Command> commands;
  for (const Framework& framework : kFrameworks) {
    Command one = TrainingPart(training, std::string(framework.word));
    if (ToLower(framework.also) != framework.word) one.aliases = {std::string(framework.also)};
    one.children.push_back(Submission("submit", &framework, 2));
    commands.push_back(std::move(one));
  }
  Command distributed = TrainingPart(training, "distributed");
  distributed.children.push_back(Submission("submit", nullptr, 2));
  commands.push_back(std::move(distributed));
  return commands;
}

}  // namespace swell::cli::runai
