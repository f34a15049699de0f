// arena submit pytorch, tf, mpi.
#include <algorithm>
#include <array>
#include <optional>

#include "base/file.h"
#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/arena/tensorboard.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/pytorch_spec.h"
#include "cli/jobs/too_large.h"
#include "cli/views/project_view.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/net/tls/tls.h"

namespace swell::cli::arena {
namespace {

// What submissions of every kind have in common.
class SubmitAction : public Action {
 public:
  explicit SubmitAction(const Trainer& trainer) : trainer_(trainer) { spec_.working_dir = "/root"; }

  void Declare(Flags& flags) override {
    DeclareJob(flags);
    DeclarePlacement(flags);
    DeclareFiles(flags);
    DeclareRest(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(Fill(session, words));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    spec_.ns = session.Namespace();
    SWELL_RETURN_IF_ERROR(CheckPriorityClass(*api, spec_.priority));
    SWELL_RETURN_IF_ERROR(CheckQueue(*api));
    if (tensorboard_.wanted) SWELL_RETURN_IF_ERROR(ShareLogs(*api, tensorboard_, spec_));
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakeJob());
    SWELL_RETURN_IF_ERROR(CreateConfigMap(session, *api, job));
    Status created = CreateObjects(session, *api, job);
    if (!created.ok()) {
      // Else the name would stay taken by a job that does not exist.
      auto undone =
          api->Delete(client::resources::kConfigMaps, spec_.ns, trainer_.ConfigMapName(spec_.name));
      if (!undone.ok() && undone.status().code() != Code::kNotFound) {
        LogLine(session, "warn",
                StrCat("configmap ", trainer_.ConfigMapName(spec_.name),
                       " could not be removed: ", undone.status().message()));
      }
      return created;
    }
    if (std::string remark = Remark(); !remark.empty()) LogLine(session, "warn", remark);
    if (std::string text = TooLargeText(*api, job); !text.empty()) LogLine(session, "warn", text);
    LogLine(session, "info", StrCat("The Job ", spec_.name, " has been submitted successfully"));
    LogLine(session, "info",
            StrCat("You can run `arena get ", spec_.name, " --type ", trainer_.form.word(),
                   "` to check the job status"));
    return 0;
  }

 protected:
  // How many instances of which size.
  virtual void DeclareInstances(Flags& flags) = 0;
  virtual int64_t TotalGpus() const = 0;
  virtual Result<json::Value> MakeJob() = 0;
  // What the flags ask for that is otherwise here; empty: nothing.
  virtual std::string Remark() const { return ""; }

  const Trainer& trainer_;
  PyTorchSpec spec_;

 private:
  void DeclareJob(Flags& flags) {
    flags.Group("Job");
    flags.Text("--name", &spec_.name, "NAME", "name of the job");
    flags.Text("--image", &spec_.image, "IMAGE", "image of each instance");
    DeclareInstances(flags);
    flags.List("--device", &devices_, "NAME=N", "other devices per instance, repeatable");
    flags.Text("--share-memory", &spec_.share_memory, "AMOUNT", "size of /dev/shm (default 2Gi)");
    flags.Text("--shell", &shell_, "SHELL", "shell that runs the command (default sh)");
    flags.Text("--working-dir", &spec_.working_dir, "PATH", "working directory (default /root)")
        .also = {"--workingDir"};
    flags.List("-e,--env", &env_, "KEY=VALUE", "environment variable, repeatable");
    flags.List("-a,--annotation", &annotations_, "KEY=VALUE", "annotation, repeatable");
    flags.List("-l,--label", &labels_, "KEY=VALUE", "label, repeatable");
  }
  void DeclarePlacement(Flags& flags) {
    flags.Group("Scheduling");
    flags.Text("-p,--priority", &spec_.priority, "CLASS", "priority class, which must exist");
    flags.Text("--on-preemption", &on_preemption_, "fail|requeue",
               "after preemption: fail (default), or wait and resume");
    flags.Maybe(
        "--queue", &queue_, "NAME",
        "project whose quota it uses; without NAME it has no effect, because jobs always queue");
    flags.Switch("--gang", &spec_.gang_labels, "start all instances together; always on");
    flags.Text("--scheduler", &spec_.scheduler, "NAME", "name of another scheduler");
    flags.List("--selector", &selectors_, "KEY=VALUE", "only nodes with this label");
    flags.List("--toleration", &spec_.tolerations, "TAINT",
               "all, KEY or KEY=VALUE:EFFECT,OPERATOR");
    flags.Switch("--rdma", &spec_.rdma, "request an RDMA device");
    flags.Switch("--hostNetwork", &spec_.host_network, "use the network of the node");
    flags.Switch("--hostIPC", &spec_.host_ipc, "use the IPC namespace of the node");
    flags.Switch("--hostPID", &spec_.host_pid, "use the PID namespace of the node");
  }
  void DeclareFiles(Flags& flags) {
    flags.Group("Code and data");
    flags.Text("--sync-mode", &spec_.sync_mode, "git|rsync", "fetch code into WORKING_DIR/code")
        .also = {"--syncMode"};
    flags.Text("--sync-source", &spec_.sync_source, "URL", "source of the code").also = {
        "--syncSource"};
    flags.Text("--sync-image", &spec_.sync_image, "IMAGE", "image that fetches the code").also = {
        "--syncImage"};
    flags.List("-d,--data", &spec_.volumes, "CLAIM:PATH", "volume claim, repeatable");
    flags.List("--data-dir", &spec_.host_paths, "PATH", "directory of the node, repeatable")
        .also = {"--dataDir"};
    flags.List("--config-file", &config_files_, "FILE:PATH",
               "copy a local file into the container");
    flags
        .List("--image-pull-secret", &spec_.image_pull_secrets, "NAME",
              "pull secret of the registry")
        .also = {"--image-pull-secrets", "--imagePullSecrets"};
    flags.Text("--image-pull-policy", &spec_.image_pull_policy, "POLICY",
               "Always (default), IfNotPresent or Never");
  }
  void DeclareRest(Flags& flags) {
    flags.Group("TensorBoard");
    flags.Switch("--tensorboard", &tensorboard_.wanted, "run TensorBoard beside the job");
    flags
        .Text("--tensorboard-image", &tensorboard_.image, "IMAGE",
              "image of TensorBoard (default: the job's; where that has none, this machine's)")
        .also = {"--tensorboardImage"};
    flags.Text("--logdir", &tensorboard_.log_dir, "PATH",
               "directory of its event files (default /training_logs)");
    flags.Group("Completion");
    flags.Int("--retry", &spec_.retry, "N", "number of restarts before the job fails");
    flags
        .Text("--clean-task-policy", &spec_.clean_pod_policy, "None|Running|All",
              StrCat("which instances are deleted when the job ends (default ",
                     spec_.clean_pod_policy, ")"))
        .also = {"--cleanTaskPolicy"};
    flags.Text("--running-timeout", &running_timeout_, "DURATION", "maximum running time: 2h");
    flags.Text("--ttl-after-finished", &ttl_, "DURATION", "delete the job this long after its end");
    for (const char* name : {"--model-name", "--model-source"}) {
      flags.Refuse(name, "Swell has no model registry");
    }
  }

  Status Fill(Session& session, const std::vector<std::string>& words) {
    if (queue_ && !queue_->empty()) {
      if (!api::CheckDnsLabel(*queue_).empty()) {
        return Misuse(StrCat("--queue ", Quote(*queue_), ": the name of a project expected"));
      }
      spec_.project = *queue_;
    }
    if (words.empty()) {
      return Misuse(StrCat("no command; use: arena submit ", trainer_.words[0],
                           " [flags] \"python train.py\""));
    }
    spec_.command = {shell_, "-c", Join(words, " ")};
    SWELL_ASSIGN_OR_RETURN(spec_.env, ParsePairs(env_, "--env"));
    SWELL_ASSIGN_OR_RETURN(spec_.devices, ParsePairs(devices_, "--device"));
    SWELL_ASSIGN_OR_RETURN(spec_.labels, ParseLabels(labels_, "--label"));
    SWELL_ASSIGN_OR_RETURN(spec_.annotations, ParsePairs(annotations_, "--annotation"));
    SWELL_ASSIGN_OR_RETURN(spec_.selectors, ParseLabels(selectors_, "--selector"));
    SWELL_RETURN_IF_ERROR(FillEnd());
    spec_.arena_env = true;
    if (spec_.image_pull_policy.empty()) spec_.image_pull_policy = "Always";
    if (spec_.share_memory.empty()) spec_.share_memory = "2Gi";
    std::string user = session.env().getenv("USER");
    auto mark = [](KeyValues& pairs, std::string key, std::string value) {
      pairs.emplace_back(std::move(key), std::move(value));
    };
    mark(spec_.labels, "app", trainer_.form.word());
    mark(spec_.labels, "release", spec_.name);
    mark(spec_.labels, "chart", trainer_.form.word() + "-0.1.0");
    mark(spec_.labels, "heritage", "arena");
    mark(spec_.labels, "createdBy", std::string(trainer_.form.kind));
    if (!user.empty()) {
      mark(spec_.annotations, "arena.kubeflow.org/username", user);
      mark(spec_.labels, "arena.kubeflow.org/uid", net::Sha256Hex(user).substr(0, 32));
    }
    mark(spec_.annotations, "requestGPUsOfJobOwner", std::to_string(TotalGpus()));
    return ReadConfigFiles();
  }

  // A job whose project does not exist would wait without end.
  Status CheckQueue(Api& api) const {
    if (!queue_ || queue_->empty()) return Status::Ok();
    SWELL_ASSIGN_OR_RETURN(const ProjectTree tree, ReadProjects(api));
    const auto project = FindChargedProject(tree, *queue_, spec_.ns);
    return project.ok() ? Status::Ok() : project.status().WithContext("--queue");
  }

  Status FillEnd() {
    if (spec_.retry > 0) spec_.restart_policy = "OnFailure";
    std::string word = ToLower(on_preemption_);
    if (word != "requeue" && word != "fail") {
      return Misuse(
          StrCat("--on-preemption ", Quote(on_preemption_), ": fail or requeue expected"));
    }
    spec_.on_preemption = word == "fail" ? "Fail" : "Requeue";
    const std::string& policy = spec_.clean_pod_policy;
    if (policy != "None" && policy != "Running" && policy != "All") {
      return Misuse(
          StrCat("--clean-task-policy ", Quote(policy), ": None, Running or All expected"));
    }
    auto seconds = [](std::string_view flag, const std::string& text, int64_t& to) {
      if (text.empty()) return Status::Ok();
      SWELL_ASSIGN_OR_RETURN(Duration span, ParseDuration(text, flag));
      to = std::chrono::duration_cast<std::chrono::seconds>(span).count();
      return Status::Ok();
    };
    SWELL_RETURN_IF_ERROR(seconds("--running-timeout", running_timeout_, spec_.running_timeout_s));
    return seconds("--ttl-after-finished", ttl_, spec_.ttl_s);
  }

  // --config-file FILE:PATH; a PATH that ends in / keeps the file's name.
  Status ReadConfigFiles() {
    for (const std::string& text : config_files_) {
      size_t colon = text.find(':');
      std::string file = text.substr(0, colon);
      std::string path = colon == std::string::npos ? file : text.substr(colon + 1);
      if (!path.starts_with('/')) {
        return Misuse(StrCat("--config-file ", Quote(text), ": FILE:/PATH/IN/CONTAINER expected"));
      }
      std::string base = file.substr(file.rfind('/') + 1);
      if (path.ends_with('/')) path += base;
      SWELL_ASSIGN_OR_RETURN(std::string content, ReadFile(file, 1 << 20));
      std::string key = StrCat("file-", spec_.config_files.size());
      spec_.config_files.emplace_back(key, path);
      config_data_[key] = content;
    }
    if (!config_files_.empty()) spec_.config_map = StrCat(spec_.name, "-config-files");
    return Status::Ok();
  }

  // Whether the job was deleted by other hands (kubectl), which do not know of its ConfigMap. One
  // that is young may belong to a submission that is under way.
  bool IsLeftOver(Session& session, Api& api) const {
    auto job = api.Get(trainer_.form.resource(), spec_.ns, spec_.name);
    if (job.ok() || job.status().code() != Code::kNotFound) return false;
    auto map =
        api.Get(client::resources::kConfigMaps, spec_.ns, trainer_.ConfigMapName(spec_.name));
    constexpr Duration kYoung = std::chrono::seconds(60);
    return map.ok() && session.Now() - api::CreationTime(**map) > kYoung;
  }

  // Its presence is what says that the job exists.
  Status CreateConfigMap(Session& session, Api& api, const json::Value& job) {
    std::string name = trainer_.ConfigMapName(spec_.name);
    json::Value map = json::Object{
        {"apiVersion", "v1"},
        {"kind", "ConfigMap"},
        {"metadata",
         json::Object{{"name", name}, {"labels", json::Object{{"createdBy", "arena"}}}}},
        {"data",
         json::Object{{"app", StrCat(trainer_.form.word(), ".kubeflow.org/", spec_.name, "\n")},
                      {"values", json::PrintYaml(job)}}}};
    auto made = api.Create(client::resources::kConfigMaps, spec_.ns, map);
    if (!made.ok() && made.status().code() == Code::kAlreadyExists && IsLeftOver(session, api)) {
      for (const std::string& old : {name, spec_.name + "-config-files"}) {
        auto gone = api.Delete(client::resources::kConfigMaps, spec_.ns, old);
        if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
      }
      made = api.Create(client::resources::kConfigMaps, spec_.ns, map);
    }
    if (!made.ok() && made.status().code() == Code::kAlreadyExists) {
      return Status(Code::kAlreadyExists, StrCat("the job ", spec_.name,
                                                 " is already exist, please delete it first. use "
                                                 "'arena delete ",
                                                 spec_.name, "'"));
    }
    if (!made.ok()) return made.status();
    session.OutLine(StrCat("configmap/", name, " created"));
    session.OutLine(StrCat("configmap/", name, " labeled"));
    return Status::Ok();
  }

  Status CreateObjects(Session& session, Api& api, const json::Value& job) {
    if (!spec_.config_map.empty()) {
      json::Value files = json::Object{
          {"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", json::Object{{"name", spec_.config_map},
                                    {"labels", json::Object{{"release", spec_.name}}}}},
          {"data", config_data_}};
      auto made = api.Create(client::resources::kConfigMaps, spec_.ns, files);
      if (!made.ok()) return made.status();
      session.OutLine(StrCat("configmap/", spec_.config_map, " created"));
    }
    SWELL_RETURN_IF_ERROR(CreateLogs(api, spec_));
    auto made = api.Create(trainer_.form.resource(), spec_.ns, job, {.field_validation = "Strict"});
    if (!made.ok()) {
      RemoveLogs(api, spec_);
      return made.status();
    }
    session.OutLine(StrCat(trainer_.form.word(), ".kubeflow.org/", spec_.name, " created"));
    if (tensorboard_.wanted) StartTensorboard(session, api, tensorboard_, spec_, **made);
    return Status::Ok();
  }

  TensorboardSpec tensorboard_;
  std::vector<std::string> env_, devices_, labels_, annotations_, selectors_, config_files_;
  std::string shell_ = "sh", on_preemption_ = "fail", running_timeout_, ttl_;
  std::optional<std::string> queue_;
  json::Object config_data_;
};

class SubmitPyTorchAction final : public SubmitAction {
 public:
  SubmitPyTorchAction() : SubmitAction(Trainers()[0]) {}

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
  Result<JobRole> Make(const PyTorchSpec& job) const {
    SWELL_RETURN_IF_ERROR(CheckRequest(Name("cpu"), cpu, Name("cpu-limit"), cpu_limit));
    SWELL_RETURN_IF_ERROR(CheckRequest(Name("memory"), memory, Name("memory-limit"), memory_limit));
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
    return JobRole{role, replicas, std::move(made)};
  }
};

class SubmitTensorFlowAction final : public SubmitAction {
 public:
  SubmitTensorFlowAction() : SubmitAction(Trainers()[1]) {
    spec_.container = "tensorflow";
    spec_.clean_pod_policy = "Running";
    worker().replicas = 1;
  }

 private:
  void DeclareInstances(Flags& flags) override {
    flags.Int("--gpus", &worker().gpus, "N", "GPUs per worker");
    flags.Int("--workers", &worker().replicas, "N", "number of workers (default 1)");
    flags.Int("--ps", &ps().replicas, "N", "number of parameter servers");
    flags.Int("--ps-gpus", &ps().gpus, "N", "GPUs per parameter server");
    flags.Switch("--chief", &chief_, "add a chief; the job ends when the chief ends");
    flags.Switch("--evaluator", &evaluator_, "add an evaluator");
    flags.Text("--success-policy", &success_policy_, "POLICY",
               "AllWorkers: the job succeeds when all workers do, not when the first does");
    for (TensorFlowRole& role : roles_) role.Declare(flags);
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
    roles_[0].replicas = chief_ ? 1 : 0;
    roles_[3].replicas = evaluator_ ? 1 : 0;
    std::vector<JobRole> made;
    for (const TensorFlowRole& role : roles_) {
      if (role.replicas < 0) {
        return Misuse(StrCat("--", role.prefix, " ", role.replicas, ": 0 or more expected"));
      }
      SWELL_ASSIGN_OR_RETURN(JobRole one, role.Make(spec_));
      made.push_back(std::move(one));
    }
    json::Value job = MakeRoleJob(spec_, trainer_.form, std::move(made));
    if (!success_policy_.empty()) json::Set(job, {"spec", "successPolicy"}, success_policy_);
    return job;
  }

  TensorFlowRole& worker() { return roles_[1]; }
  TensorFlowRole& ps() { return roles_[2]; }

  std::array<TensorFlowRole, 4> roles_{{{.role = "Chief", .prefix = "chief"},
                                        {.role = "Worker", .prefix = "worker"},
                                        {.role = "PS", .prefix = "ps"},
                                        {.role = "Evaluator", .prefix = "evaluator"}}};
  std::string Remark() const override {
    if (role_sequence_.empty()) return "";
    return "--role-sequence has no effect: the instances start together";
  }

  std::string success_policy_, role_sequence_;
  bool chief_ = false, evaluator_ = false;
};

class SubmitMpiAction final : public SubmitAction {
 public:
  SubmitMpiAction() : SubmitAction(Trainers()[2]) {
    spec_.container = "mpi";
    // Workers wait for what is started in them, and would hold their GPUs for ever.
    spec_.clean_pod_policy = "Running";
  }

 private:
  void DeclareInstances(Flags& flags) override {
    flags.Int("--gpus", &spec_.gpus, "N", "GPUs per worker");
    flags.Int("--workers", &spec_.workers, "N",
              "number of workers, without the launcher (default 1)");
    flags.Text("--cpu", &spec_.cpu, "AMOUNT", "CPU per worker");
    flags.Text("--memory", &spec_.memory, "AMOUNT", "memory per worker");
    flags
        .Switch("--mounts-on-launcher", &mounts_on_launcher_,
                "mount the --data volumes in the launcher, too")
        .also = {"--mountsOnLauncher"};
    flags
        .Switch("--gputopology", &topology_,
                "accepted for compatibility; GPUs of an instance are on one node anyway")
        .hidden = true;
  }
  int64_t TotalGpus() const override { return spec_.workers * spec_.gpus; }
  std::string Remark() const override {
    return topology_ ? "--gputopology has no effect: all GPUs of a node count as equal" : "";
  }
  Result<json::Value> MakeJob() override {
    PyTorchSpec launcher = spec_;
    launcher.gpus = 0;
    launcher.devices.clear();
    launcher.cpu.clear();
    launcher.memory.clear();
    if (!mounts_on_launcher_) launcher.volumes.clear();
    return MakeMpiJob(launcher, spec_, spec_.workers, std::max<int64_t>(1, spec_.gpus));
  }

  bool mounts_on_launcher_ = false, topology_ = false;
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
      {{"etjob", "et"}, "use swell submit with --min and --max"},
      {{"horovodjob", "horovod", "hj"}, "use arena submit mpi, which also runs horovodrun"},
      {{"volcanojob", "vj"}, "use arena submit pytorch; its instances start together"},
      {{"rayjob", "rj"}, "create a RayJob of KubeRay with kubectl; Swell places its pods"},
      {{"deepspeedjob"}, "use arena submit mpi or arena submit pytorch"},
      {{"sparkjob"}, "the kinds are pytorch, tf and mpi"}};
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
  submit.children.push_back({
      .name = "mpijob",
      .aliases = {"mpi"},
      .summary = "Submit an MPI job: a launcher, and workers in which it starts processes.",
      .usage = "\"COMMAND\"",
      .examples = {{"Two workers with a GPU each, and a launcher",
                    "arena submit mpi --name=mnist --workers=2 --gpus=1 --image=horovod/horovod "
                    "\"mpirun python mnist.py\""}},
      .make = Makes<SubmitMpiAction>(),
  });
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

}  // namespace swell::cli::arena
