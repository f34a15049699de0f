// arena serve custom, tensorflow, triton: the Deployment of a server, and the Service of its ports.
#include <algorithm>
#include <array>
#include <tuple>

#include "base/strings.h"
#include "base/words.h"
#include "cli/arena/serve.h"
#include "cli/arena/server_flags.h"
#include "cli/arena/submit_action.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/restricted_pods.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::arena {
namespace {

namespace resources = client::resources;

constexpr int64_t kPortMax = 65535;

// liveness, readiness, startup: the action and its fields, as lines of YAML.
struct ProbeFlags {
  std::string_view name;
  std::string action;
  std::vector<std::string> action_options, options;

  void Declare(Flags& flags) {
    const std::string dashed = StrCat("--", name, "-probe");
    flags.Choice(dashed + "-action", &action, "ACTION", {"httpGet", "tcpSocket", "grpc", "exec"},
                 StrCat("how the ", name, " probe asks"));
    flags.List(dashed + "-action-option", &action_options, "KEY: VALUE",
               "what it asks, repeatable: \"port: 8080\"");
    flags.List(dashed + "-option", &options, "KEY: VALUE",
               "a field of the probe, repeatable: \"periodSeconds: 5\"");
  }
  // Null if there is none.
  Result<json::Value> Make() const {
    const std::string dashed = StrCat("--", name, "-probe");
    if (action.empty()) {
      if (action_options.empty() && options.empty()) return json::Value();
      return Misuse(StrCat(dashed, "-action is not set"));
    }
    SWELL_ASSIGN_OR_RETURN(json::Object probe, Read(options, dashed + "-option"));
    SWELL_ASSIGN_OR_RETURN(probe[action], Read(action_options, dashed + "-action-option"));
    return json::Value(std::move(probe));
  }

 private:
  static Result<json::Object> Read(const std::vector<std::string>& lines, std::string_view flag) {
    auto documents = json::ParseYaml(Join(lines, "\n"));
    if (documents.ok() && documents->empty()) return json::Object();
    if (documents.ok() && documents->size() == 1 && documents->front().is_object()) {
      return documents->front().get_object();
    }
    return Misuse(StrCat(flag, " ", Quote(Join(lines, ", ")), ": expected \"KEY: VALUE\""));
  }
};

class ServeStartAction : public Action {
 public:
  explicit ServeStartAction(std::string_view type) : type_(ServingTypeNamed(type)) {
    spec_.container = std::string(type_.chart);
    spec_.image_pull_policy = "IfNotPresent";
  }

  void Declare(Flags& flags) override {
    DeclareServer(flags);
    DeclareModel(flags);
    DeclareAmounts(flags);
    DeclareFiles(flags);
    DeclareRest(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(Fill(session, words));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    spec_.ns = session.Namespace();
    SWELL_RETURN_IF_ERROR(CheckPriorityClass(*api, spec_.priority));
    SWELL_ASSIGN_OR_RETURN(const json::Value deployment, MakeDeployment());
    std::string restricted;
    auto made =
        CreateDeployment(*api, spec_.ns, deployment, {.field_validation = "Strict"}, restricted);
    if (made.status().code() == Code::kAlreadyExists) return IsThere();
    if (!made.ok()) return made.status();
    if (Status rest = CreateRest(*api, **made); !rest.ok()) {
      auto undone = api->Delete(resources::kDeployments, spec_.ns, Name());
      if (!undone.ok()) LogLine(session, "warn", undone.status().message());
      return rest;
    }
    session.OutLine(StrCat(told_, "deployment.apps/", Name(), " created"));
    if (!restricted.empty()) LogLine(session, "warn", restricted);
    Tell(session);
    return 0;
  }

 protected:
  // Flags that say which model.
  virtual void DeclareModel(Flags& flags) = 0;
  // What the container runs, unless the user has said it.
  virtual Status FillCommand() = 0;
  // One more line for a file that the command reads.
  void AddFile(std::string path, std::string_view content) {
    const std::string key = StrCat("file-", spec_.config_files.size());
    spec_.config_files.emplace_back(key, std::move(path));
    config_data_[key] = content;
  }
  void DeclarePorts(Flags& flags, std::string_view grpc, std::string_view rest) {
    flags.Int(std::string(grpc), &grpc_port_, "PORT", PortHelp("gRPC", grpc_port_));
    flags.Int(std::string(rest), &rest_port_, "PORT", PortHelp("HTTP", rest_port_)).also = {
        "--restfulPort"};
    flags.Int("--metrics-port", &metrics_port_, "PORT", PortHelp("metrics", metrics_port_));
  }

  const ServingType& type_;
  PyTorchSpec spec_;  // of one replica
  ServerFlags server_{spec_};
  int64_t grpc_port_ = 0, rest_port_ = 0, metrics_port_ = 0;

 private:
  static std::string PortHelp(std::string_view what, int64_t usual) {
    return StrCat("port of its Service for ", what, " (",
                  usual == 0 ? std::string("default: none") : StrCat("default ", usual), ")");
  }

  void DeclareServer(Flags& flags) {
    flags.Group("Server");
    flags.Text("--version", &version_, "VERSION", "its version (default: the time)").also = {
        "--servingVersion"};
    server_.DeclareServer(flags);
  }
  void DeclareAmounts(Flags& flags) {
    server_.DeclareAmounts(flags);
    flags.Text("--share-memory", &spec_.share_memory, "AMOUNT", "size of /dev/shm");
    flags.Text("-p,--priority", &spec_.priority, "CLASS", "priority class, which must exist");
    flags.Text("--scheduler", &spec_.scheduler, "NAME", "name of another scheduler");
  }
  void DeclareFiles(Flags& flags) {
    flags.Group("Data");
    flags.List("-d,--data", &spec_.volumes, "CLAIM:PATH", "volume claim, repeatable");
    flags.List("--data-dir", &spec_.host_paths, "PATH", "directory of the node, repeatable")
        .also = {"--dataDir"};
    flags.List("--temp-dir", &temp_dirs_, "NAME:PATH", "empty directory, repeatable");
    flags.List("--config-file", &config_files_, "FILE:PATH",
               "copy a local file into the container");
    flags
        .List("--image-pull-secret", &spec_.image_pull_secrets, "NAME",
              "pull secret of the registry")
        .also = {"--image-pull-secrets", "--imagePullSecrets"};
    flags
        .Text("--image-pull-policy", &spec_.image_pull_policy, "POLICY",
              "Always, IfNotPresent (default) or Never")
        .also = {"--imagePullPolicy"};
  }
  void DeclareRest(Flags& flags) {
    flags.Group("Health and updates");
    for (ProbeFlags& probe : probes_) probe.Declare(flags);
    pace_.Declare(flags);
    for (const char* name :
         {"--enable-istio", "--enableIstio", "--expose-service", "--exposeService"}) {
      flags.Refuse(name, "Swell has no Istio; kubectl expose makes a Service of another type");
    }
    for (const char* name : {"--data-subpath-expr", "--temp-dir-subpath-expr"}) {
      flags.Refuse(name, "mount the whole volume with --data");
    }
    flags.Refuse("--model-source", "Swell has no model registry");
  }

  std::string Name() const { return type_.NameOf(spec_.name, version_); }
  std::string Release() const { return StrCat(spec_.name, "-", version_); }
  std::string ServiceName() const { return type_.bare_service ? Release() : Name(); }

  Status Fill(Session& session, const std::vector<std::string>& words) {
    SWELL_RETURN_IF_ERROR(server_.Fill(words));
    spec_.command = server_.Command();
    if (version_.empty()) version_ = VersionOf(session.Now());
    SWELL_RETURN_IF_ERROR(CheckJob(spec_));
    if (!api::CheckDnsLabel(version_).empty()) {
      return Misuse(StrCat("--version ", Quote(version_), ": ", api::CheckDnsLabel(version_)));
    }
    SWELL_RETURN_IF_ERROR(FillTempDirs());
    SWELL_RETURN_IF_ERROR(ReadConfigFiles(config_files_, spec_, config_data_));
    SWELL_RETURN_IF_ERROR(FillPorts());
    if (spec_.command.empty()) SWELL_RETURN_IF_ERROR(FillCommand());
    if (!config_data_.empty()) spec_.config_map = Name() + "-cm";
    spec_.annotations.insert(spec_.annotations.begin(),
                             {std::string(api::keys::kUser), LocalUser(session)});
    if (const std::string user = session.env().getenv("USER"); !user.empty()) {
      spec_.annotations.emplace_back("arena.kubeflow.org/username", user);
    }
    return Status::Ok();
  }
  // 202612312359
  static std::string VersionOf(WallTime now) {
    std::string digits = api::FormatTime(now);
    std::erase_if(digits, [](char c) { return c < '0' || c > '9'; });
    return digits.substr(0, 12);
  }
  Status FillTempDirs() {
    for (const std::string& text : temp_dirs_) {
      const size_t colon = text.find(':');
      if (colon == std::string::npos || !text.substr(colon + 1).starts_with('/')) {
        return Misuse(StrCat("--temp-dir ", Quote(text), ": expected NAME:/PATH"));
      }
      spec_.mounts.push_back(
          {.source = {{"emptyDir", json::Object{}}}, .path = text.substr(colon + 1)});
    }
    return Status::Ok();
  }
  Status FillPorts() {
    const std::tuple<std::string_view, int64_t> all[] = {
        {kGrpcPort, grpc_port_}, {kRestPort, rest_port_}, {kMetricsPort, metrics_port_}};
    for (const auto& [name, port] : all) {
      if (port < 0 || port > kPortMax) {
        return Misuse(StrCat("port ", port, " for ", name, ": expected 1 to ", kPortMax));
      }
      if (port == 0) continue;
      spec_.ports.push_back(port);
      ports_.push_back(json::Object{{"name", name}, {"port", port}, {"targetPort", port}});
    }
    return Status::Ok();
  }

  // The server's objects and its pods have these, and the user's own.
  json::Object Labels() const {
    json::Object labels;
    for (const auto& [key, value] : spec_.labels) labels[key] = value;
    const std::string own[] = {std::string(type_.chart),      Release(),  "arena",
                               StrCat(type_.chart, "-0.1.0"), spec_.name, spec_.name,
                               std::string(type_.word),       version_};
    static_assert(std::size(own) == std::size(kServerLabels));
    for (size_t i = 0; i < std::size(own); ++i) labels[kServerLabels[i]] = own[i];
    return labels;
  }
  json::Object Selector() const { return {{"app", type_.chart}, {"release", Release()}}; }

  Result<json::Value> MakeDeployment() const {
    SWELL_ASSIGN_OR_RETURN(json::Object pod, MakePodSpec(spec_));
    json::Object& container = pod["containers"].get_array()[0].get_object();
    for (const ProbeFlags& probe : probes_) {
      SWELL_ASSIGN_OR_RETURN(json::Value made, probe.Make());
      if (!made.is_null()) container[StrCat(probe.name, "Probe")] = std::move(made);
    }
    json::Object annotations;
    for (const auto& [key, value] : spec_.annotations) annotations[key] = value;
    json::Object pod_annotations = annotations;
    for (const auto& [key, value] : GpuShareAnnotations(spec_)) pod_annotations[key] = value;
    json::Value deployment = json::Object{
        {"apiVersion", "apps/v1"},
        {"kind", "Deployment"},
        {"metadata",
         json::Object{
             {"name", Name()}, {"labels", Labels()}, {"annotations", std::move(annotations)}}},
        {"spec",
         json::Object{
             {"replicas", server_.replicas},
             {"selector", json::Object{{"matchLabels", Selector()}}},
             {"template",
              json::Object{{"metadata", json::Object{{"labels", Labels()},
                                                     {"annotations", std::move(pod_annotations)}}},
                           {"spec", std::move(pod)}}}}}};
    pace_.Set(deployment);
    return deployment;
  }

  // What goes with the Deployment.
  Status CreateRest(Api& api, const json::Value& deployment) {
    const auto create = [&](const client::Resource& resource, std::string_view kind,
                            const std::string& name, std::string_view field, json::Object content) {
      json::Value object = json::Object{
          {"apiVersion", "v1"},
          {"kind", kind},
          {"metadata", json::Object{{"name", name},
                                    {"labels", Labels()},
                                    {"ownerReferences",
                                     json::Array{api::MakeOwnerReference(deployment, false)}}}},
          {field, std::move(content)}};
      auto made = api.Create(resource, spec_.ns, object);
      if (made.ok()) told_ += StrCat(ToLower(kind), "/", name, " created\n");
      return made.status();
    };
    if (!config_data_.empty()) {
      SWELL_RETURN_IF_ERROR(
          create(resources::kConfigMaps, "ConfigMap", spec_.config_map, "data", config_data_));
    }
    if (ports_.empty()) return Status::Ok();
    return create(resources::kServices, "Service", ServiceName(), "spec",
                  {{"type", "ClusterIP"}, {"selector", Selector()}, {"ports", ports_}});
  }

  Status IsThere() const {
    return Status(Code::kAlreadyExists,
                  StrCat("the serving job ", spec_.name, " with version ", version_,
                         " is already exist, please delete it first. use 'arena serve delete ",
                         spec_.name, " --version ", version_, "'"));
  }
  void Tell(Session& session) const {
    LogLine(session, "info", StrCat("The Job ", spec_.name, " has been submitted successfully"));
    LogLine(session, "info",
            StrCat("You can run `arena serve get ", spec_.name, " --type ", type_.word,
                   "` to check the job status"));
    if (ports_.empty()) return;
    const int64_t port = rest_port_ != 0 ? rest_port_ : spec_.ports.front();
    LogLine(session, "info",
            StrCat("You can run `swell port-forward svc/", ServiceName(), " ", port,
                   "` to reach it from any machine with your rights"));
  }

  std::vector<std::string> temp_dirs_, config_files_;
  std::string version_;
  UpdatePace pace_;
  std::array<ProbeFlags, 3> probes_{{{"liveness"}, {"readiness"}, {"startup"}}};
  json::Object config_data_;  // of spec_.config_map
  json::Array ports_;         // of the Service
  std::string told_;          // what was made
};

class ServeCustomAction final : public ServeStartAction {
 public:
  ServeCustomAction() : ServeStartAction("custom-serving") {}

 private:
  void DeclareModel(Flags& flags) override {
    DeclarePorts(flags, "--port", "--restful-port");
    flags.Refuse("--model-name", "Swell has no model registry");
  }
  Status FillCommand() override { return Status::Ok(); }
};

class ServeTensorFlowAction final : public ServeStartAction {
 public:
  ServeTensorFlowAction() : ServeStartAction("tf-serving") {
    spec_.image = "tensorflow/serving:latest";
    grpc_port_ = 8500;
    rest_port_ = 8501;
  }

 private:
  void DeclareModel(Flags& flags) override {
    DeclarePorts(flags, "--port", "--restful-port");
    flags.Text("--model-name", &model_, "NAME", "name of the model").also = {"--modelName"};
    flags.Text("--model-path", &path_, "PATH", "where it is in the container").also = {
        "--modelPath"};
    flags
        .Text("--version-policy", &policy_, "POLICY",
              "versions of the model: latest, latest:N, specific:N or all")
        .also = {"--versionPolicy"};
    flags
        .Text("--model-config-file", &models_file_, "PATH",
              "file in the container that names the models, in place of one by the flags above")
        .also = {"--modelConfigFile"};
    flags.Text("--monitoring-config-file", &monitoring_file_, "PATH",
               "file in the container that says what is monitored");
  }
  Status FillCommand() override {
    spec_.command = {"tensorflow_model_server", StrCat("--port=", grpc_port_),
                     StrCat("--rest_api_port=", rest_port_)};
    if (!monitoring_file_.empty()) {
      spec_.command.push_back(StrCat("--monitoring_config_file=", monitoring_file_));
    }
    if (!models_file_.empty()) {
      spec_.command.push_back(StrCat("--model_config_file=", models_file_));
      return Status::Ok();
    }
    if (model_.empty()) return Misuse("--model-name is not set");
    if (path_.empty()) return Misuse("--model-path is not set");
    if (policy_.empty()) {
      spec_.command.push_back(StrCat("--model_name=", model_));
      spec_.command.push_back(StrCat("--model_base_path=", path_));
      return Status::Ok();
    }
    SWELL_ASSIGN_OR_RETURN(const std::string policy, Policy());
    constexpr std::string_view kModels = "/etc/tf-serving/models.config";
    AddFile(std::string(kModels),
            StrCat("model_config_list: {\n  config: {\n    name: ", Quote(model_),
                   "\n    base_path: ", Quote(path_),
                   "\n    model_platform: \"tensorflow\"\n    model_version_policy: { ", policy,
                   " }\n  }\n}\n"));
    spec_.command.push_back(StrCat("--model_config_file=", kModels));
    return Status::Ok();
  }
  // As TensorFlow Serving's configuration says it.
  Result<std::string> Policy() const {
    const size_t colon = policy_.find(':');
    const std::string word = policy_.substr(0, colon);
    const std::optional<int64_t> number =
        colon == std::string::npos ? std::nullopt : ParseInt(policy_.substr(colon + 1));
    const bool bare = colon == std::string::npos;
    if (word == "all" && bare) return std::string("all: {}");
    if (word == "latest" && (bare || number)) {
      return StrCat("latest: { num_versions: ", number.value_or(1), " }");
    }
    if (word == "specific" && number) return StrCat("specific: { versions: ", *number, " }");
    return Misuse(StrCat("--version-policy ", Quote(policy_),
                         ": expected latest, latest:N, specific:N or all"));
  }

  std::string model_, path_, policy_, models_file_, monitoring_file_;
};

class ServeTritonAction final : public ServeStartAction {
 public:
  ServeTritonAction() : ServeStartAction("triton-serving") {
    spec_.image = "nvcr.io/nvidia/tritonserver:20.12-py3";
    rest_port_ = 8000;
    grpc_port_ = 8001;
    metrics_port_ = 8002;
  }

 private:
  void DeclareModel(Flags& flags) override {
    DeclarePorts(flags, "--grpc-port", "--http-port");
    flags.Text("--model-repository", &repository_, "PATH", "where the models are in the container");
    flags.List("--load-model", &models_, "NAME", "load only these models, repeatable");
    flags.Switch("--allow-metrics", &metrics_, "serve metrics");
    flags.Text("--extend-command", &more_, "ARGUMENTS", "further arguments of tritonserver");
  }
  Status FillCommand() override {
    if (repository_.empty()) return Misuse("--model-repository is not set");
    spec_.command = {"tritonserver",
                     StrCat("--model-repository=", repository_),
                     StrCat("--http-port=", rest_port_),
                     StrCat("--grpc-port=", grpc_port_),
                     StrCat("--metrics-port=", metrics_port_),
                     StrCat("--allow-metrics=", metrics_ ? "true" : "false")};
    if (!models_.empty()) spec_.command.emplace_back("--model-control-mode=explicit");
    for (const std::string& model : models_) {
      spec_.command.push_back(StrCat("--load-model=", model));
    }
    for (std::string_view word : SplitWords(more_)) spec_.command.emplace_back(word);
    return Status::Ok();
  }

  std::string repository_, more_;
  std::vector<std::string> models_;
  bool metrics_ = false;
};

}  // namespace

std::vector<Command> ServeStartSpecs() {
  Command custom{
      .name = "custom",
      .summary = "Start a server of your own.",
      .usage = "[\"COMMAND\"]",
      .examples = {{"Two replicas with a GPU each",
                    "arena serve custom --name=bert --version=v1 --gpus=1 --replicas=2 "
                    "--restful-port=5000 --image=python:3 \"python app.py\""}},
      .notes = "Replicas are pods of the namespace, and use its project's quota.",
      .make = Makes<ServeCustomAction>(),
  };
  Command tensorflow{
      .name = "tensorflow",
      .aliases = {"tf"},
      .summary = "Start TensorFlow Serving.",
      .examples = {{"A model on a volume claim",
                    "arena serve tensorflow --name=mnist --model-name=mnist --gpus=1 "
                    "--data=models:/models --model-path=/models/mnist"}},
      .make = Makes<ServeTensorFlowAction>(),
  };
  Command triton{
      .name = "triton",
      .summary = "Start NVIDIA's Triton.",
      .examples = {{"All models on a volume claim",
                    "arena serve triton --name=models --gpus=1 --data=models:/models "
                    "--model-repository=/models"}},
      .make = Makes<ServeTritonAction>(),
  };
  return {std::move(custom), std::move(tensorflow), std::move(triton)};
}

}  // namespace swell::cli::arena
