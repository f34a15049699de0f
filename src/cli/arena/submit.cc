// arena submit pytorchjob, tfjob, and what is submitted otherwise; arena cron tfjob, pytorchjob.
#include <array>

#include "base/strings.h"
#include "cli/arena/submit_action.h"

namespace swell::cli::arena {
namespace {

class SubmitPyTorchAction final : public SubmitInstancesAction {
 public:
  explicit SubmitPyTorchAction(bool cron = false)
      : SubmitInstancesAction(TrainerNamed("pytorchjob"), cron) {}

 private:
  void DeclareInstances(Flags& flags) override {
    flags.Int("--gpus", &spec_.gpus, "N", "GPUs per instance");
    flags.Int("--workers", &spec_.workers, "N", "number of instances, master included (default 1)");
    flags.Text("--cpu", &spec_.cpu, "AMOUNT", "CPU per instance");
    flags.Text("--memory", &spec_.memory, "AMOUNT", "memory per instance");
    flags.Text("--nproc-per-node", &spec_.nproc_per_node, "N",
               "processes per instance: a number, auto, cpu or gpu");
  }
  int64_t TotalGpus() const override { return spec_.workers * spec_.gpus; }
  Result<json::Value> MakeJob() override { return MakePyTorchJob(spec_); }
};

// One role of a TFJob, as its flags say it.
struct TensorFlowRole {
  std::string_view role, prefix;
  int64_t replicas = 0, gpus = 0, port = 0;
  std::string image, cpu, cpu_limit, memory, memory_limit;
  std::vector<std::string> selectors;

  void Declare(Flags& flags) {
    flags.Group(StrCat("Each ", role));
    WithOldName(flags.Text(Name("cpu"), &cpu, "AMOUNT", "CPU"));
    WithOldName(flags.Text(Name("cpu-limit"), &cpu_limit, "AMOUNT", "CPU limit"));
    WithOldName(flags.Text(Name("memory"), &memory, "AMOUNT", "memory"));
    WithOldName(flags.Text(Name("memory-limit"), &memory_limit, "AMOUNT", "memory limit"));
    WithOldName(flags.Text(Name("image"), &image, "IMAGE", "image, if it differs from --image"));
    WithOldName(flags.Int(Name("port"), &port, "PORT", "port (default 2222)"));
    WithOldName(
        flags.List(Name("selector"), &selectors, "KEY=VALUE", "only nodes with this label"));
  }
  std::string Name(std::string_view what) const { return StrCat("--", prefix, "-", what); }
  // Older versions of Arena wrote --workerImage.
  static void WithOldName(Flag& flag) {
    std::string older = "--";
    bool capital = false;
    for (char c : flag.Long()) {
      if (c != '-') older += capital ? ToUpper(std::string(1, c)) : std::string(1, c);
      capital = c == '-';
    }
    flag.also = {older};
  }
  // What this role does not say is as the other one's.
  void TakeMissing(const TensorFlowRole& other) {
    for (auto field : {&TensorFlowRole::image, &TensorFlowRole::cpu, &TensorFlowRole::cpu_limit,
                       &TensorFlowRole::memory, &TensorFlowRole::memory_limit}) {
      if ((this->*field).empty()) this->*field = other.*field;
    }
    if (port == 0) port = other.port;
    if (selectors.empty()) selectors = other.selectors;
  }
  Status Check() const {
    SWELL_RETURN_IF_ERROR(CheckRequest(Name("cpu"), cpu, Name("cpu-limit"), cpu_limit));
    return CheckRequest(Name("memory"), memory, Name("memory-limit"), memory_limit);
  }
  Result<JobRole> Make(const PyTorchSpec& job) const {
    SWELL_RETURN_IF_ERROR(Check());
    PyTorchSpec pod = job;
    pod.gpus = gpus;
    pod.cpu = cpu;
    pod.cpu_limit = cpu_limit;
    pod.memory = memory;
    pod.memory_limit = memory_limit;
    if (!image.empty()) pod.image = image;
    if (!selectors.empty()) {
      SWELL_ASSIGN_OR_RETURN(pod.selectors,
                             ParseLabels(selectors, StrCat("--", prefix, "-selector")));
    }
    SWELL_ASSIGN_OR_RETURN(json::Object made, MakePodSpec(pod));
    if (port != 0) {
      made["containers"].get_array()[0].get_object()["ports"] =
          json::Array{json::Object{{"name", "tfjob-port"}, {"containerPort", port}}};
    }
    return JobRole{role, replicas, std::move(made), GpuShareAnnotations(pod)};
  }
};

class SubmitTensorFlowAction final : public SubmitInstancesAction {
 public:
  explicit SubmitTensorFlowAction(bool cron = false)
      : SubmitInstancesAction(TrainerNamed("tfjob"), cron) {
    spec_.container = "tensorflow";
    spec_.clean_pod_policy = "Running";
    worker().replicas = 1;
  }

 private:
  void DeclareInstances(Flags& flags) override {
    flags.Int("--gpus", &worker().gpus, "N", "GPUs of each worker, of the chief and the evaluator");
    flags.Int("--workers", &worker().replicas, "N",
              "number of workers (default 1); without parameter servers a single one is the chief");
    flags.Int("--ps", &ps().replicas, "N", "number of parameter servers");
    flags.Int("--ps-gpus", &ps().gpus, "N", "GPUs per parameter server");
    flags.Switch("--chief", &chief_, "add a chief; the job ends when the chief ends");
    flags.Switch("--evaluator", &evaluator_, "add an evaluator");
    flags.Text("--success-policy", &success_policy_, "POLICY",
               "AllWorkers: the job succeeds when all workers do, not when the first does "
               "(default ChiefWorker)");
    for (TensorFlowRole& role : roles_) role.Declare(flags);
    for (const char* role : {"ps", "worker"}) {
      const std::string why = StrCat("the scheduler chooses the nodes; --", role,
                                     "-selector names those that are allowed");
      flags.Refuse(StrCat("--", role, "-affinity-policy"), why);
      flags.Refuse(StrCat("--", role, "-affinity-constraint"), why);
    }
    flags.Refuse("--starting-timeout",
                 "a job waits until there is room for it; arena delete ends one that waits");
    flags.Group("Job");
    flags
        .Text("--role-sequence", &role_sequence_, "ROLES",
              "accepted for compatibility; a job's instances start together")
        .hidden = true;
  }
  int64_t TotalGpus() const override {
    int64_t total = 0;
    for (const TensorFlowRole& role : roles_) total += role.replicas * role.gpus;
    return total;
  }
  Result<json::Value> MakeJob() override {
    if (spec_.image.empty()) spec_.image = worker().image;
    SWELL_RETURN_IF_ERROR(CheckJob(spec_));
    // First: a chief may have its amounts, and an error names the flags that were given.
    SWELL_RETURN_IF_ERROR(worker().Check());
    std::vector<JobRole> made;
    for (const TensorFlowRole& role : roles_) {
      if (role.replicas < 0) {
        return Misuse(StrCat("--", role.prefix, " ", role.replicas, ": expected 0 or more"));
      }
      SWELL_ASSIGN_OR_RETURN(JobRole one, role.Make(spec_));
      made.push_back(std::move(one));
    }
    json::Value job = MakeRoleJob(spec_, kTensorFlowForm, std::move(made));
    // The operator calls the usual policy by no name.
    if (!success_policy_.empty() && success_policy_ != "ChiefWorker") {
      json::Set(job, {"spec", "successPolicy"}, success_policy_);
    }
    return job;
  }
  std::pair<int64_t, int64_t> WorkersAndGpus() const override {
    return {workers_said_, roles_[1].gpus};
  }
  Status Fill(Session& session, const std::vector<std::string>& words) override {
    workers_said_ = worker().replicas;
    FillRoles();
    return SubmitInstancesAction::Fill(session, words);
  }
  // As Arena makes them: the worker of a job with nothing else is its chief.
  void FillRoles() {
    if (worker().replicas == 1 && ps().replicas < 1) {
      chief_ = true;
      worker().replicas = 0;
      chief().TakeMissing(worker());
    }
    chief().replicas = chief_ ? 1 : 0;
    evaluator().replicas = evaluator_ ? 1 : 0;
    for (TensorFlowRole* alike : {&chief(), &evaluator()}) {
      alike->gpus = worker().gpus;
      if (alike->image.empty()) alike->image = worker().image;
    }
  }

  TensorFlowRole& chief() { return roles_[0]; }
  TensorFlowRole& worker() { return roles_[1]; }
  TensorFlowRole& ps() { return roles_[2]; }
  TensorFlowRole& evaluator() { return roles_[3]; }

  std::array<TensorFlowRole, 4> roles_{{{.role = "Chief", .prefix = "chief"},
                                        {.role = "Worker", .prefix = "worker"},
                                        {.role = "PS", .prefix = "ps"},
                                        {.role = "Evaluator", .prefix = "evaluator"}}};
  std::vector<std::string> Remarks() const override {
    std::vector<std::string> remarks = SubmitInstancesAction::Remarks();
    if (!role_sequence_.empty()) {
      remarks.emplace_back("--role-sequence has no effect: the instances start together");
    }
    return remarks;
  }

  std::string success_policy_, role_sequence_;
  int64_t workers_said_ = 1;
  bool chief_ = false, evaluator_ = false;
};

// A kind that Arena knows and Swell does not train, and what does its work here.
struct OtherTrainer {
  std::vector<std::string> names;
  std::string_view instead;
};

class OtherKind final : public Action {
 public:
  explicit OtherKind(const OtherTrainer& trainer) : trainer_(trainer) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    session.ErrLine(
        StrCat("arena submit ", trainer_.names[0], " is not supported: ", trainer_.instead));
    return 2;
  }

 private:
  const OtherTrainer& trainer_;
};

const std::vector<OtherTrainer>& OtherTrainers() {
  static const std::vector<OtherTrainer>* trainers = new std::vector<OtherTrainer>{
      {{"rayjob", "ray", "rj"}, "create a RayJob of KubeRay with kubectl; Swell places its pods"},
      {{"sparkjob", "spark", "sj"},
       "with Spark's operator in the cluster, kubectl apply a SparkApplication"}};
  return *trainers;
}

}  // namespace

Command SubmitSpec() {
  Command submit{
      .name = "submit",
      .summary = "Submit a training job.",
  };
  Command pytorch{
      .name = "pytorchjob",
      .aliases = {"pytorch"},
      .summary = "Submit a PyTorch training job.",
      .usage = "\"COMMAND\"",
      .examples =
          {{"Three instances with four GPUs each",
            "arena submit pytorch --name=mnist --gpus=4 --workers=3 --image=pytorch:2 "
            "--sync-mode=git --sync-source=https://host/mnist.git \"python code/mnist/mnist.py\""},
           {"A job that resumes after preemption",
            "arena submit pytorch --name=mnist --image=pytorch:2 --priority=low "
            "--on-preemption=requeue \"python mnist.py\""}},
      .make = Makes<SubmitPyTorchAction>(),
  };
  submit.children.push_back(std::move(pytorch));
  submit.children.push_back({
      .name = "tfjob",
      .aliases = {"tf"},
      .summary = "Submit a TensorFlow training job.",
      .usage = "\"COMMAND\"",
      .examples = {{"Two workers with a GPU each, and a parameter server",
                    "arena submit tf --name=mnist --workers=2 --gpus=1 --ps=1 "
                    "--image=tensorflow/tensorflow:2 \"python mnist.py\""}},
      .make = Makes<SubmitTensorFlowAction>(),
  });
  for (Command& launched : SubmitLauncherSpecs()) submit.children.push_back(std::move(launched));
  submit.children.push_back(SubmitVolcanoSpec());
  for (const OtherTrainer& trainer : OtherTrainers()) {
    Command other;
    other.name = trainer.names[0];
    other.aliases.assign(trainer.names.begin() + 1, trainer.names.end());
    other.summary = "Not supported.";
    other.hidden = true;
    other.raw = true;
    other.make = [&trainer] { return std::make_unique<OtherKind>(trainer); };
    submit.children.push_back(std::move(other));
  }
  return submit;
}

std::vector<Command> CronJobSpecs() {
  Command tensorflow{
      .name = "tfjob",
      .aliases = {"tf"},
      .summary = "Start a TensorFlow training job at each time.",
      .usage = "\"COMMAND\"",
      .examples = {{"Each night at ten, one at a time",
                    "arena cron tfjob --schedule=\"0 22 * * *\" --concurrency-policy=Forbid "
                    "--name=nightly --image=tensorflow/tensorflow:2 \"python mnist.py\""}},
      .make = [] { return std::make_unique<SubmitTensorFlowAction>(true); },
  };
  Command pytorch{
      .name = "pytorchjob",
      .aliases = {"pytorch"},
      .summary = "Start a PyTorch training job at each time.",
      .usage = "\"COMMAND\"",
      .examples = {{"Every hour until the end of January",
                    "arena cron pytorchjob --schedule=@hourly --deadline=2027-01-31T23:59:59Z "
                    "--name=hourly --gpus=1 --image=pytorch:2 \"python mnist.py\""}},
      .make = [] { return std::make_unique<SubmitPyTorchAction>(true); },
  };
  return {std::move(tensorflow), std::move(pytorch)};
}

}  // namespace swell::cli::arena
