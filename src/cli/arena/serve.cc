// arena serve list, get, logs, attach, delete: servers that are there.
#include "cli/arena/serve.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "cli/pods/exec_in.h"
#include "cli/pods/pod_logs.h"
#include "cli/print/text_table.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::arena {
namespace {

namespace resources = client::resources;

std::string TypeNames() {
  std::vector<std::string> names;
  for (const ServingType& type : ServingTypes()) names.emplace_back(type.word);
  return Join(names, ", ");
}

// Kubernetes' objects of one version share these labels.
bool IsSameVersion(const json::Value& a, const json::Value& b) {
  constexpr std::string_view kShared[] = {kServingName, kServingType, kServingVersion};
  return api::Namespace(a) == api::Namespace(b) &&
         std::all_of(std::begin(kShared), std::end(kShared), [&](std::string_view key) {
           return api::Label(a, key) == api::Label(b, key);
         });
}

std::string ShownType(const Serving& serving) {
  for (const ServingType& type : ServingTypes()) {
    if (type.word == serving.type()) return std::string(type.shown);
  }
  return std::string(serving.type());
}

int64_t Desired(const Serving& serving) {
  return json::GetInt(*serving.deployment, {"spec", "replicas"}, 1);
}

int64_t Available(const Serving& serving) {
  return json::GetInt(*serving.deployment, {"status", "availableReplicas"});
}

// MiB of GPUs' memory that a pod asks for; 0 for one that asks for GPUs, or none.
int64_t GpuMemory(const json::Value& pod) {
  return ParseInt(api::Annotation(pod, api::keys::kGpuMemory)).value_or(0);
}

// "2", "0.5", or "8192Mi" of memory where that was asked for.
std::string Gpus(const json::Value& pod, int64_t replicas) {
  const int64_t mib = GpuMemory(pod);
  return mib > 0 ? StrCat(mib * replicas, "Mi") : GpuText(MilliGpus(pod) * replicas);
}

const json::Value& Template(const Serving& serving) {
  static const json::Value none;
  const json::Value* found = json::Find(*serving.deployment, {"spec", "template"});
  return found == nullptr ? none : *found;
}

std::string AllGpus(const Serving& serving) { return Gpus(Template(serving), Desired(serving)); }

std::string Address(const Serving& serving) {
  const std::string_view address =
      serving.service ? json::GetString(*serving.service, {"spec", "clusterIP"}) : "";
  return address.empty() ? "N/A" : std::string(address);
}

// GRPC, RESTFUL, or the port's own name.
std::string PortWord(std::string_view name) {
  if (name == kGrpcPort) return "GRPC";
  if (name == kRestPort) return "RESTFUL";
  return ToUpper(name);
}

// "GRPC:8500,RESTFUL:8501"
std::string Ports(const Serving& serving) {
  if (!serving.service) return "N/A";
  std::vector<std::string> ports;
  for (const json::Value& port : json::GetArray(*serving.service, {"spec", "ports"})) {
    ports.push_back(
        StrCat(PortWord(json::GetString(port, {"name"})), ":", json::GetInt(port, {"port"})));
  }
  return Join(ports, ",");
}

std::string AgeOf(const json::Value& object, WallTime now) {
  return ShortDuration(now - api::CreationTime(object));
}

// Why it has fewer replicas than it should; empty if nothing is known to be wrong.
std::string Reason(const Serving& serving,
                   const std::vector<json::SharedValue>& pods,
                   WallTime now) {
  for (const json::SharedValue& pod : pods) {
    if (api::ConditionIsTrue(*pod, "Ready")) continue;
    if (const auto failure = api::FailureOf(*pod, now)) return OneLine(failure->Sentence());
    const auto placed = api::FindCondition(*pod, "PodScheduled");
    if (placed && placed->IsFalse()) return OneLine(placed->message);
  }
  const auto refused = api::FindCondition(*serving.deployment, "ReplicaFailure");
  return refused && refused->IsTrue() ? OneLine(refused->message) : "";
}

json::Value Describe(const Serving& serving,
                     const std::vector<json::SharedValue>* pods,
                     WallTime now) {
  json::Array endpoints, instances;
  if (serving.service) {
    for (const json::Value& port : json::GetArray(*serving.service, {"spec", "ports"})) {
      endpoints.push_back(json::Object{{"name", PortWord(json::GetString(port, {"name"}))},
                                       {"port", json::GetInt(port, {"port"})},
                                       {"nodePort", json::GetInt(port, {"nodePort"})}});
    }
  }
  json::Object out{{"uuid", api::Uid(*serving.deployment)},
                   {"name", serving.name()},
                   {"namespace", serving.ns()},
                   {"type", ShownType(serving)},
                   {"version", serving.version()},
                   {"age", AgeOf(*serving.deployment, now)},
                   {"desiredInstances", Desired(serving)},
                   {"availableInstances", Available(serving)},
                   {"creationTimestamp", api::FormatTime(api::CreationTime(*serving.deployment))},
                   {"ip", Address(serving)},
                   {"endpoints", std::move(endpoints)},
                   {"requestGPUs", MilliGpus(Template(serving)) * Desired(serving) / 1000},
                   {"requestGPUMemory", GpuMemory(Template(serving)) * Desired(serving) / 1024}};
  if (pods == nullptr) return out;
  for (const json::SharedValue& pod : *pods) {
    instances.push_back(json::Object{{"name", api::Name(*pod)},
                                     {"status", PodStatusWord(*pod)},
                                     {"age", AgeOf(*pod, now)},
                                     {"ip", api::PodIp(*pod)},
                                     {"readyContainers", PodReady(*pod)},
                                     {"restartCount", api::RestartCount(*pod)},
                                     {"nodeIP", HostOf(*pod)},
                                     {"nodeName", api::NodeName(*pod)},
                                     {"requestGPUs", MilliGpus(*pod) / 1000}});
  }
  out["instances"] = std::move(instances);
  out["reason"] = Reason(serving, *pods, now);
  return out;
}

Result<std::string> OneName(const std::vector<std::string>& words, std::string_view command) {
  if (words.size() == 1) return words[0];
  return Misuse(StrCat("expected the name of one server: arena serve ", command, " NAME"));
}

class ServeListAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    filter_.Declare(flags, false);
    flags.Switch("-A,--all-namespaces", &all_, "all namespaces").also = {"--allNamespaces"};
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(filter_.Check());
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(
        const std::vector<Serving> servings,
        ListServings(session, *api, all_ ? "" : session.Namespace(), filter_.Selector("")));
    if (IsData(output_)) {
      json::Array all;
      for (const Serving& one : servings) all.push_back(Describe(one, nullptr, session.Now()));
      session.Out(Serialise(output_, all));
      return 0;
    }
    std::vector<std::string> header{"NAME",      "TYPE",    "VERSION", "DESIRED",
                                    "AVAILABLE", "ADDRESS", "PORTS",   "GPU"};
    if (all_) header.insert(header.begin(), "NAMESPACE");
    TextTable table(header, 2);
    for (const Serving& one : servings) {
      std::vector<std::string> row{std::string(one.name()),
                                   ShownType(one),
                                   std::string(one.version()),
                                   std::to_string(Desired(one)),
                                   std::to_string(Available(one)),
                                   Address(one),
                                   Ports(one),
                                   AllGpus(one)};
      if (all_) row.insert(row.begin(), std::string(one.ns()));
      table.Add(std::move(row));
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  ServingFilter filter_;
  std::string output_;
  bool all_ = false;
};

class ServeGetAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    filter_.Declare(flags);
    flags.Text("-o,--output", &output_, "json|yaml|wide", "output format");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(filter_.Check());
    SWELL_RETURN_IF_ERROR(CheckOutput(output_));
    SWELL_ASSIGN_OR_RETURN(const std::string name, OneName(words, "get"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const Serving serving, FindServing(session, *api, name, filter_));
    SWELL_ASSIGN_OR_RETURN(const auto pods, PodsOf(*api, serving));
    if (IsData(output_)) {
      session.Out(Serialise(output_, Describe(serving, &pods, session.Now())));
    } else {
      Print(session, serving, pods);
    }
    return 0;
  }

 private:
  static void Print(Session& session,
                    const Serving& serving,
                    const std::vector<json::SharedValue>& pods) {
    const WallTime now = session.Now();
    TextTable facts({}, 2);
    facts.Add({"Name:", std::string(serving.name())});
    facts.Add({"Namespace:", std::string(serving.ns())});
    facts.Add({"Type:", ShownType(serving)});
    facts.Add({"Version:", std::string(serving.version())});
    facts.Add({"Desired:", std::to_string(Desired(serving))});
    facts.Add({"Available:", std::to_string(Available(serving))});
    facts.Add({"Age:", AgeOf(*serving.deployment, now)});
    facts.Add({"Address:", Address(serving)});
    facts.Add({"Port:", Ports(serving)});
    facts.Add({"GPU:", AllGpus(serving)});
    TextTable table({"NAME", "STATUS", "AGE", "READY", "RESTARTS", "GPU", "NODE"}, 2);
    table.Add({"----", "------", "---", "-----", "--------", "---", "----"});
    for (const json::SharedValue& pod : pods) {
      const std::string_view node = api::NodeName(*pod);
      table.Add({std::string(api::Name(*pod)), PodStatusWord(*pod), AgeOf(*pod, now),
                 PodReady(*pod), std::to_string(api::RestartCount(*pod)), Gpus(*pod, 1),
                 node.empty() ? "N/A" : std::string(node)});
    }
    session.Out(StrCat(facts.ToString(), "\nInstances:\n", table.ToString("  ")));
    // Arena has no such line.
    const std::string reason = Reason(serving, pods, now);
    if (!reason.empty()) session.Out(StrCat("\nREASON: ", reason, "\n"));
  }

  ServingFilter filter_;
  std::string output_;
};

// One of its pods, by name; without a name the first that runs.
Result<json::SharedValue> Instance(Api& api, const Serving& serving, const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(const auto pods, PodsOf(api, serving));
  json::SharedValue found;
  for (const json::SharedValue& pod : pods) {
    if (name.empty() ? !found || (!HasStarted(*found) && HasStarted(*pod))
                     : api::Name(*pod) == name) {
      found = pod;
    }
  }
  if (found) return found;
  return Status(Code::kNotFound, StrCat("the serving job ", serving.Shown(), " has no instance",
                                        name.empty() ? " yet" : StrCat(" ", Quote(name)),
                                        "; arena serve get ", serving.name(), " shows them"));
}

class ServeLogsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    options_.Declare(flags);
    flags.Text("-i,--instance", &instance_, "POD", "instance (default: the first that runs)");
    filter_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(filter_.Check());
    SWELL_RETURN_IF_ERROR(options_.Check());
    SWELL_ASSIGN_OR_RETURN(const std::string name, OneName(words, "logs"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const Serving serving, FindServing(session, *api, name, filter_));
    SWELL_ASSIGN_OR_RETURN(json::SharedValue pod, Instance(*api, serving, instance_));
    SWELL_RETURN_IF_ERROR(PrintLogs(session, *api, {std::move(pod)}, options_));
    return 0;
  }

 private:
  LogOptions options_;
  ServingFilter filter_;
  std::string instance_;
};

class ServeAttachAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-i,--instance", &instance_, "POD", "instance (default: the first that runs)");
    flags.Text("-c,--container", &container_, "NAME", "container");
    filter_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(filter_.Check());
    if (words.empty()) {
      return Misuse("expected the name of one server: arena serve attach NAME [COMMAND]");
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const Serving serving, FindServing(session, *api, words[0], filter_));
    SWELL_ASSIGN_OR_RETURN(json::SharedValue pod, Instance(*api, serving, instance_));
    std::vector<std::string> command(words.begin() + 1, words.end());
    if (command.empty()) command.emplace_back("/bin/bash");
    return Exec(session, {.ns = std::string(serving.ns()),
                          .pod = std::string(api::Name(*pod)),
                          .container = container_,
                          .command = std::move(command),
                          .interactive = true});
  }

 private:
  ServingFilter filter_;
  std::string instance_, container_;
};

class ServeDeleteAction final : public Action {
 public:
  void Declare(Flags& flags) override { filter_.Declare(flags); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(filter_.Check());
    if (words.empty()) return Misuse("expected the names of servers: arena serve delete NAME...");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    int failed = 0;
    for (const std::string& name : words) {
      auto serving = FindServing(session, *api, name, filter_);
      if (!serving.ok() && serving.status().code() == Code::kNotFound) {
        LogLine(session, "error", serving.status().message());
        ++failed;
        continue;
      }
      if (!serving.ok()) return serving.status();
      SWELL_RETURN_IF_ERROR(Delete(session, *api, *serving));
    }
    return failed > 0 ? 1 : 0;
  }

 private:
  // What else Swell made goes with the Deployment; a Service of Arena's own does not.
  static Status Delete(Session& session, Api& api, const Serving& serving) {
    const auto remove = [&](const client::Resource& resource, std::string_view word,
                            const json::Value& object) {
      auto gone = api.Delete(resource, serving.ns(), api::Name(object));
      if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
      if (gone.ok()) session.OutLine(StrCat(word, " ", Quote(api::Name(object)), " deleted"));
      return Status::Ok();
    };
    if (serving.service) {
      SWELL_RETURN_IF_ERROR(remove(resources::kServices, "service", *serving.service));
    }
    SWELL_RETURN_IF_ERROR(remove(resources::kDeployments, "deployment.apps", *serving.deployment));
    LogLine(session, "info",
            StrCat("The serving job ", serving.Shown(), " has been deleted successfully"));
    return Status::Ok();
  }

  ServingFilter filter_;
};

// A type that Arena serves and Swell does not, and what does its work here.
struct OtherType {
  std::vector<std::string> names;
  std::string_view instead;
};

class OtherServing final : public Action {
 public:
  explicit OtherServing(const OtherType& type) : type_(type) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    session.ErrLine(StrCat("arena serve ", type_.names[0], " is not supported: ", type_.instead));
    return 2;
  }

 private:
  const OtherType& type_;
};

const std::vector<OtherType>& OtherTypes() {
  static const std::vector<OtherType>* types = new std::vector<OtherType>{
      {{"kserve"}, "with KServe in the cluster, kubectl apply an InferenceService"},
      {{"kfserving", "kfs"}, "with KServe in the cluster, kubectl apply an InferenceService"},
      {{"seldon"}, "with Seldon in the cluster, kubectl apply a SeldonDeployment"},
      {{"tensorrt", "trt"}, "it is called Triton now: arena serve triton"},
      {{"distributed"}, "a server of several pods is a LeaderWorkerSet: kubectl apply it"},
      {{"traffic-split", "traffic-router-split"},
       "it needs Istio; a Service that selects servingName=NAME spreads requests over all "
       "versions"}};
  return *types;
}

}  // namespace

const std::vector<ServingType>& ServingTypes() {
  static const std::vector<ServingType>* types = new std::vector<ServingType>{
      {"custom-serving", "Custom", {"custom"}, "custom-serving", true},
      {"tf-serving", "Tensorflow", {"tensorflow", "tf"}, "tensorflow-serving"},
      {"triton-serving", "Triton", {"triton"}, "tritoninferenceserver"}};
  return *types;
}

const ServingType& ServingTypeNamed(std::string_view word) {
  const auto& all = ServingTypes();
  auto found = std::ranges::find(all, word, &ServingType::word);
  SWELL_CHECK(found != all.end());
  return *found;
}

std::string ServingType::NameOf(const std::string& server, const std::string& version) const {
  return StrCat(server, "-", version, "-", chart);
}

std::string_view Serving::name() const { return api::Label(*deployment, kServingName); }
std::string_view Serving::version() const { return api::Label(*deployment, kServingVersion); }
std::string_view Serving::type() const { return api::Label(*deployment, kServingType); }
std::string_view Serving::ns() const { return api::Namespace(*deployment); }

std::string Serving::Shown() const { return StrCat(name(), " with version ", version()); }

void ServingFilter::Declare(Flags& flags, bool version) {
  flags.Text("-T,--type", &type_said_, "TYPE", StrCat("the type of server: ", TypeNames()));
  if (version) flags.Text("-v,--version", &version_, "VERSION", "version of the server");
}

Status ServingFilter::Check() {
  if (type_said_.empty()) return Status::Ok();
  for (const ServingType& type : ServingTypes()) {
    if (type.word == type_said_ || std::ranges::find(type.names, type_said_) != type.names.end()) {
      type_ = &type;
      return Status::Ok();
    }
  }
  return Misuse(StrCat("--type ", Quote(type_said_), ": expected one of ", TypeNames()));
}

std::string ServingFilter::Selector(std::string_view name) const {
  std::string selector(kServingName);
  if (!name.empty()) selector += StrCat("=", name);
  selector += StrCat(",", kServingType);
  if (type_ != nullptr) selector += StrCat("=", type_->word);
  if (!version_.empty()) selector += StrCat(",", kServingVersion, "=", version_);
  return selector;
}

Result<std::vector<Serving>> ListServings(Session& session,
                                          Api& api,
                                          const std::string& ns,
                                          const std::string& selector) {
  const auto list =
      [&](const client::Resource& resource) -> Result<std::vector<json::SharedValue>> {
    const auto in = [&](const std::string& one) {
      return api.List(resource, one, {.label_selector = selector});
    };
    auto found = in(ns);
    if (!ns.empty() || found.status().code() != Code::kForbidden) return found;
    std::vector<json::SharedValue> own;
    SWELL_RETURN_IF_ERROR(ListEach(OwnNamespaces(session, api), own, in));
    return own;
  };
  SWELL_ASSIGN_OR_RETURN(const auto deployments, list(resources::kDeployments));
  SWELL_ASSIGN_OR_RETURN(const auto services, list(resources::kServices));
  std::vector<Serving> servings;
  for (const json::SharedValue& deployment : deployments) {
    const auto service = std::ranges::find_if(
        services, [&](const json::SharedValue& one) { return IsSameVersion(*one, *deployment); });
    servings.push_back({deployment, service == services.end() ? nullptr : *service});
  }
  return servings;
}

Result<Serving> FindServing(Session& session,
                            Api& api,
                            const std::string& name,
                            const ServingFilter& filter) {
  if (!api::CheckDnsLabel(name).empty()) {
    return Misuse(StrCat(Quote(name), " is not the name of a server"));
  }
  SWELL_ASSIGN_OR_RETURN(std::vector<Serving> found,
                         ListServings(session, api, session.Namespace(), filter.Selector(name)));
  if (found.size() == 1) return std::move(found[0]);
  if (found.empty()) {
    return Status(Code::kNotFound,
                  StrCat("The serving job ", name, " doesn't exist in namespace ",
                         session.Namespace(), "; arena serve list shows what is there"));
  }
  std::vector<std::string> versions;
  for (const Serving& one : found) {
    versions.push_back(StrCat(one.version(), " (", one.type(), ")"));
  }
  return Misuse(StrCat("the serving job ", name, " has ", versions.size(), " versions: ",
                       Join(versions, ", "), "; choose one with --version or --type"));
}

Result<std::vector<json::SharedValue>> PodsOf(Api& api, const Serving& serving) {
  SWELL_ASSIGN_OR_RETURN(
      const api::LabelSelector selector,
      api::LabelSelector::FromJson(json::Find(*serving.deployment, {"spec", "selector"})));
  return api.List(resources::kPods, serving.ns(), {.label_selector = selector.ToString()});
}

Command ServeSpec() {
  Command serve{.name = "serve", .summary = "Serve trained models."};
  for (Command& start : ServeStartSpecs()) serve.children.push_back(std::move(start));
  serve.children.push_back({.name = "list",
                            .aliases = {"ls"},
                            .summary = "List servers.",
                            .examples = {{"All namespaces", "arena serve list -A"}},
                            .make = Makes<ServeListAction>()});
  serve.children.push_back(
      {.name = "get",
       .summary = "Show a server and its instances.",
       .usage = "NAME",
       .examples = {{"One of several versions", "arena serve get bert --version v2"}},
       .make = Makes<ServeGetAction>()});
  serve.children.push_back({.name = "logs",
                            .aliases = {"log"},
                            .summary = "Print the log of a server's instance.",
                            .usage = "NAME",
                            .examples = {{"Follow it", "arena serve logs bert -f"}},
                            .make = Makes<ServeLogsAction>()});
  serve.children.push_back({.name = "attach",
                            .summary = "Run a command, or a shell, in an instance.",
                            .usage = "NAME [-- COMMAND]",
                            .examples = {{"A shell", "arena serve attach bert"}},
                            .make = Makes<ServeAttachAction>()});
  serve.children.push_back(ServeUpdateSpec());
  serve.children.push_back({.name = "delete",
                            .aliases = {"del"},
                            .summary = "Delete servers and their instances.",
                            .usage = "NAME...",
                            .examples = {{"One version", "arena serve delete bert --version v1"}},
                            .make = Makes<ServeDeleteAction>()});
  for (const OtherType& type : OtherTypes()) {
    Command other;
    other.name = type.names[0];
    other.aliases.assign(type.names.begin() + 1, type.names.end());
    other.summary = "Not supported.";
    other.hidden = true;
    other.raw = true;
    other.make = [&type] { return std::make_unique<OtherServing>(type); };
    serve.children.push_back(std::move(other));
  }
  return serve;
}

}  // namespace swell::cli::arena
