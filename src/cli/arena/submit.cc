// arena submit pytorch.
#include <algorithm>
#include <optional>

#include "api/meta.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/arena/tensorboard.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/pytorch_spec.h"
#include "json/yaml.h"
#include "net/tls/tls.h"

namespace swell::cli::arena {
namespace {

class SubmitAction final : public Action {
 public:
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
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakePyTorchJob(spec_));
    SWELL_RETURN_IF_ERROR(CreateConfigMap(session, *api, job));
    Status created = CreateObjects(session, *api, job);
    if (!created.ok()) {
      // Else the name would stay taken by a job that does not exist.
      auto undone =
          api->Delete(client::resources::kConfigMaps, spec_.ns, ConfigMapName(spec_.name));
      if (!undone.ok() && undone.status().code() != Code::kNotFound) {
        LogLine(session, "warn",
                StrCat("configmap ", ConfigMapName(spec_.name),
                       " could not be removed: ", undone.status().message()));
      }
      return created;
    }
    LogLine(session, "info", StrCat("The Job ", spec_.name, " has been submitted successfully"));
    LogLine(session, "info",
            StrCat("You can run `arena get ", spec_.name,
                   " --type pytorchjob` to check the job status"));
    return 0;
  }

 private:
  void DeclareJob(Flags& flags) {
    flags.Group("The job");
    flags.Text("--name", &spec_.name, "NAME", "its name");
    flags.Text("--image", &spec_.image, "IMAGE", "what each instance runs in");
    flags.Int("--gpus", &spec_.gpus, "N", "GPUs of each instance");
    flags.List("--device", &devices_, "NAME=N", "other devices of each instance");
    flags.Int("--workers", &spec_.workers, "N", "instances, the master among them (default 1)");
    flags.Text("--cpu", &spec_.cpu, "AMOUNT", "CPU of each instance");
    flags.Text("--memory", &spec_.memory, "AMOUNT", "memory of each instance");
    flags.Text("--share-memory", &spec_.share_memory, "AMOUNT", "size of /dev/shm (default 2Gi)");
    flags.Text("--nproc-per-node", &spec_.nproc_per_node, "N",
               "processes of each instance: a number, auto, cpu or gpu");
    flags.Text("--shell", &shell_, "SHELL", "what reads the command (default sh)");
    flags.Text("--working-dir", &spec_.working_dir, "PATH", "where it starts (default /root)")
        .also = {"--workingDir"};
    flags.List("-e,--env", &env_, "KEY=VALUE", "environment, repeatable");
    flags.List("-a,--annotation", &annotations_, "KEY=VALUE", "annotations, repeatable");
    flags.List("-l,--label", &labels_, "KEY=VALUE", "labels, repeatable");
  }
  void DeclarePlacement(Flags& flags) {
    flags.Group("Where and before whom");
    flags.Text("-p,--priority", &spec_.priority, "CLASS", "a PriorityClass that exists");
    flags.Text("--on-preemption", &on_preemption_, "fail|requeue",
               "when its place is taken: end as FAILED (default), or come back by itself");
    flags.Maybe("--queue", &queue_, "NAME",
                "the project whose quota it uses; alone, as Arena has it: jobs always queue");
    flags.Switch("--gang", &spec_.gang_labels, "all instances or none; Swell always does that");
    flags.Text("--scheduler", &spec_.scheduler, "NAME", "another scheduler");
    flags.List("--selector", &selectors_, "KEY=VALUE", "only on nodes with this label");
    flags.List("--toleration", &spec_.tolerations, "TAINT",
               "all, KEY or KEY=VALUE:EFFECT,OPERATOR");
    flags.Switch("--rdma", &spec_.rdma, "with an RDMA device");
    flags.Switch("--hostNetwork", &spec_.host_network, "in the host's network");
    flags.Switch("--hostIPC", &spec_.host_ipc, "with the host's IPC");
    flags.Switch("--hostPID", &spec_.host_pid, "with the host's processes");
  }
  void DeclareFiles(Flags& flags) {
    flags.Group("Code and data");
    flags.Text("--sync-mode", &spec_.sync_mode, "git|rsync", "fetch code into WORKING_DIR/code")
        .also = {"--syncMode"};
    flags.Text("--sync-source", &spec_.sync_source, "URL", "where the code is").also = {
        "--syncSource"};
    flags.Text("--sync-image", &spec_.sync_image, "IMAGE", "what fetches it").also = {
        "--syncImage"};
    flags.List("-d,--data", &spec_.volumes, "CLAIM:PATH", "a volume claim, repeatable");
    flags.List("--data-dir", &spec_.host_paths, "PATH", "a directory of the host, repeatable")
        .also = {"--dataDir"};
    flags.List("--config-file", &config_files_, "FILE:PATH", "a local file into the container");
    flags.List("--image-pull-secret", &spec_.image_pull_secrets, "NAME", "for the registry");
    flags.Text("--image-pull-policy", &spec_.image_pull_policy, "POLICY",
               "Always (default), IfNotPresent or Never");
  }
  void DeclareRest(Flags& flags) {
    flags.Group("Watching it");
    flags.Switch("--tensorboard", &tensorboard_.wanted, "with a TensorBoard");
    flags.Text("--tensorboard-image", &tensorboard_.image, "IMAGE", "what TensorBoard runs in")
        .also = {"--tensorboardImage"};
    flags.Text("--logdir", &tensorboard_.log_dir, "PATH",
               "where it reads (default /training_logs)");
    flags.Group("Its end");
    flags.Int("--retry", &spec_.retry, "N", "restarts before it has failed");
    flags.Text("--clean-task-policy", &spec_.clean_pod_policy, "None|Running|All",
               "which instances go when it is over (default None)");
    flags.Text("--running-timeout", &running_timeout_, "DURATION", "it has failed after: 2h");
    flags.Text("--ttl-after-finished", &ttl_, "DURATION", "it is deleted so long after its end");
    for (const char* name : {"--model-name", "--model-source"}) {
      flags.Refuse(name, "there is no model registry here to record the result in");
    }
  }

  Status Fill(Session& session, const std::vector<std::string>& words) {
    if (queue_ && !queue_->empty()) {
      if (!api::CheckDnsLabel(*queue_).empty()) {
        return Misuse(StrCat("--queue ", Quote(*queue_), ": the name of a project expected"));
      }
      spec_.project = *queue_;
    }
    std::string command = Join(words, " ");
    if (!command.empty()) spec_.command = {shell_, "-c", command};
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
    mark(spec_.labels, "app", "pytorchjob");
    mark(spec_.labels, "release", spec_.name);
    mark(spec_.labels, "chart", "pytorchjob-0.1.0");
    mark(spec_.labels, "heritage", "arena");
    mark(spec_.labels, "createdBy", "PyTorchJob");
    if (!user.empty()) {
      mark(spec_.annotations, "arena.kubeflow.org/username", user);
      mark(spec_.labels, "arena.kubeflow.org/uid", net::Sha256Hex(user).substr(0, 32));
    }
    mark(spec_.annotations, "requestGPUsOfJobOwner", std::to_string(spec_.workers * spec_.gpus));
    return ReadConfigFiles();
  }

  Status FillEnd() {
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
    auto job = api.Get(client::resources::kPyTorchJobs, spec_.ns, spec_.name);
    if (job.ok() || job.status().code() != Code::kNotFound) return false;
    auto map = api.Get(client::resources::kConfigMaps, spec_.ns, ConfigMapName(spec_.name));
    constexpr Duration kYoung = std::chrono::seconds(60);
    return map.ok() && session.Now() - api::CreationTime(**map) > kYoung;
  }

  // Its presence is what says that the job exists.
  Status CreateConfigMap(Session& session, Api& api, const json::Value& job) {
    std::string name = ConfigMapName(spec_.name);
    json::Value map = json::Object{
        {"apiVersion", "v1"},
        {"kind", "ConfigMap"},
        {"metadata",
         json::Object{{"name", name}, {"labels", json::Object{{"createdBy", "arena"}}}}},
        {"data", json::Object{{"app", StrCat("pytorchjob.kubeflow.org/", spec_.name, "\n")},
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
    if (tensorboard_.wanted) {
      SWELL_RETURN_IF_ERROR(CreateTensorboard(session, api, spec_, tensorboard_));
    }
    auto made =
        api.Create(client::resources::kPyTorchJobs, spec_.ns, job, {.field_validation = "Strict"});
    if (!made.ok()) return made.status();
    session.OutLine(StrCat("pytorchjob.kubeflow.org/", spec_.name, " created"));
    return Status::Ok();
  }

  static PyTorchSpec Defaults() {
    PyTorchSpec spec;
    spec.working_dir = "/root";
    return spec;
  }

  PyTorchSpec spec_ = Defaults();
  TensorboardSpec tensorboard_;
  std::vector<std::string> env_, devices_, labels_, annotations_, selectors_, config_files_;
  std::string shell_ = "sh", on_preemption_ = "fail", running_timeout_, ttl_;
  std::optional<std::string> queue_;
  json::Object config_data_;
};

// Kinds that Arena knows and Swell does not train yet.
class OtherKind final : public Action {
 public:
  explicit OtherKind(std::string name) : name_(std::move(name)) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session&, std::vector<std::string>) override {
    return Misuse(StrCat(name_, " is not supported; pytorchjob (arena submit pytorch) is"));
  }

 private:
  std::string name_;
};

}  // namespace

Command SubmitSpec() {
  Command submit{
      .name = "submit",
      .summary = "Submits a training job.",
  };
  Command pytorch{
      .name = "pytorchjob",
      .aliases = {"pytorch"},
      .summary = "Submits a PyTorch training job.",
      .usage = "\"COMMAND\"",
      .examples =
          {{"Three instances with four GPUs each",
            "arena submit pytorch --name=mnist --gpus=4 --workers=3 --image=pytorch:2 "
            "--sync-mode=git --sync-source=https://host/mnist.git \"python code/mnist/mnist.py\""},
           {"One that comes back by itself when it is preempted",
            "arena submit pytorch --name=mnist --image=pytorch:2 --priority=low "
            "--on-preemption=requeue \"python mnist.py\""}},
      .make = Makes<SubmitAction>(),
  };
  submit.children.push_back(std::move(pytorch));
  static const std::vector<std::vector<std::string>> kOthers = {
      {"tfjob", "tf"},      {"mpijob", "mpi"}, {"etjob", "et"},  {"horovodjob", "horovod", "hj"},
      {"volcanojob", "vj"}, {"rayjob", "rj"},  {"deepspeedjob"}, {"sparkjob"}};
  for (const auto& names : kOthers) {
    Command other;
    other.name = names[0];
    other.aliases.assign(names.begin() + 1, names.end());
    other.summary = "Not supported.";
    other.hidden = true;
    other.raw = true;
    other.make = [name = names[0]] { return std::make_unique<OtherKind>(name); };
    submit.children.push_back(std::move(other));
  }
  return submit;
}

}  // namespace swell::cli::arena
