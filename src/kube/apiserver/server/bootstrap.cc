#include "kube/apiserver/server/bootstrap.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/crd/crds.h"
#include "kube/api/meta/local_storage.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/rbac_defaults.h"
#include "kube/apiserver/kinds/service_ips.h"
#include "kube/apiserver/writing/prepare.h"

namespace swell::apiserver {
namespace {

json::Value Named(std::string_view api_version,
                  std::string_view kind,
                  std::string_view name,
                  std::string_view ns = {}) {
  json::Object metadata;
  metadata["name"] = name;
  if (!ns.empty()) metadata["namespace"] = ns;
  json::Object object;
  object["apiVersion"] = api_version;
  object["kind"] = kind;
  object["metadata"] = std::move(metadata);
  return object;
}

json::Value PriorityClass(std::string_view name, int64_t value, std::string_view description) {
  json::Value object = Named("scheduling.k8s.io/v1", "PriorityClass", name);
  object.get_object()["value"] = value;
  object.get_object()["description"] = description;
  return object;
}

struct Step {
  // What becomes of an object that an earlier start has stored.
  enum class Stored {
    kKept,
    kRenewed,   // made like this, as far as nobody has said otherwise
    kReplaced,  // made like this
  };
  std::string group;
  std::string plural;
  json::Value object;
  Stored stored = Stored::kKept;
};

void AddServices(const Options& options, const std::string& ip, std::vector<Step>& steps) {
  if (options.advertise_address.empty()) return;
  json::Value service = Named("v1", "Service", "kubernetes", "default");
  json::Set(service, {"metadata", "labels"},
            json::Object{{"component", "apiserver"}, {"provider", "kubernetes"}});
  json::Object port{{"name", "https"}, {"port", 443}, {"protocol", "TCP"}};
  port["targetPort"] = options.advertise_port;
  json::Set(service, {"spec", "ports"}, json::Array{std::move(port)});
  json::Set(service, {"spec", "clusterIP"}, json::Value(ip));
  steps.push_back({"", "services", std::move(service)});
  json::Value endpoints = Named("v1", "Endpoints", "kubernetes", "default");
  json::Object subset;
  json::Object address;
  address["ip"] = options.advertise_address;
  json::Object endpoint_port{{"name", "https"}, {"protocol", "TCP"}};
  endpoint_port["port"] = options.advertise_port;
  subset["addresses"] = json::Array{std::move(address)};
  subset["ports"] = json::Array{std::move(endpoint_port)};
  json::Set(endpoints, {"subsets"}, json::Array{std::move(subset)});
  json::Set(endpoints, {"metadata", "labels"},
            json::Object{{"endpointslice.kubernetes.io/skip-mirror", "true"}});
  steps.push_back({"", "endpoints", std::move(endpoints), Step::Stored::kReplaced});
  json::Value slice = Named("discovery.k8s.io/v1", "EndpointSlice", "kubernetes", "default");
  json::Set(slice, {"metadata", "labels"},
            json::Object{{"kubernetes.io/service-name", "kubernetes"}});
  const bool v6 = options.advertise_address.find(':') != std::string::npos;
  json::Set(slice, {"addressType"}, v6 ? "IPv6" : "IPv4");
  json::Set(slice, {"endpoints"},
            json::Array{json::Object{{"addresses", json::Array{options.advertise_address}},
                                     {"conditions", json::Object{{"ready", true}}}}});
  json::Set(slice, {"ports"},
            json::Array{json::Object{
                {"name", "https"}, {"protocol", "TCP"}, {"port", options.advertise_port}}});
  steps.push_back(
      {"discovery.k8s.io", "endpointslices", std::move(slice), Step::Stored::kReplaced});
}

// The range of services' addresses, as it is.
void AddServiceRange(const Core& core, std::vector<Step>& steps) {
  json::Value range = Named("networking.k8s.io/v1", "ServiceCIDR", "kubernetes");
  json::Set(range, {"spec", "cidrs"}, json::Array{core.Get<ServiceIps>().Cidr()});
  steps.push_back({"networking.k8s.io", "servicecidrs", std::move(range), Step::Stored::kReplaced});
}

void AddRbac(std::vector<Step>& steps) {
  DefaultRbac defaults = MakeDefaultRbac();
  auto add = [&steps](const char* plural, std::vector<json::Value>& objects) {
    for (json::Value& object : objects) {
      steps.push_back(
          {"rbac.authorization.k8s.io", plural, std::move(object), Step::Stored::kRenewed});
    }
  };
  add("clusterroles", defaults.cluster_roles);
  add("clusterrolebindings", defaults.cluster_role_bindings);
  add("roles", defaults.roles);
  add("rolebindings", defaults.role_bindings);
}

std::vector<Step> Steps(const Core& core) {
  std::vector<Step> steps;
  const std::vector<std::string> namespaces = {"kube-system", "default", "kube-public",
                                               "kube-node-lease"};
  for (const std::string& name : namespaces) {
    steps.push_back({"", "namespaces", Named("v1", "Namespace", name)});
  }
  for (const std::string& name : namespaces) {
    steps.push_back({"", "serviceaccounts", Named("v1", "ServiceAccount", "default", name)});
  }
  const std::tuple<const char*, int64_t, const char*> classes[] = {
      {"system-node-critical", 2'000'001'000,
       "Used for system critical pods that must not be moved from their current node."},
      {"system-cluster-critical", 2'000'000'000,
       "Used for system critical pods that must run in the cluster, but can be moved to another "
       "node if necessary."}};
  for (const auto& [name, value, description] : classes) {
    steps.push_back(
        {"scheduling.k8s.io", "priorityclasses", PriorityClass(name, value, description)});
  }
  for (json::Value& object : api::SwellPriorityClasses()) {
    steps.push_back({"scheduling.k8s.io", "priorityclasses", std::move(object)});
  }
  json::Value storage = Named("storage.k8s.io/v1", "StorageClass", "standard");
  json::Set(storage, {"metadata", "annotations", "storageclass.kubernetes.io/is-default-class"},
            "true");
  json::Set(storage, {"provisioner"}, api::kLocalStorage);
  json::Set(storage, {"volumeBindingMode"}, "WaitForFirstConsumer");
  steps.push_back({"storage.k8s.io", "storageclasses", std::move(storage)});
  for (json::Value& crd : api::SwellCrds()) {
    // An earlier version of this program may have made it.
    steps.push_back({"apiextensions.k8s.io", "customresourcedefinitions", std::move(crd),
                     Step::Stored::kRenewed});
  }
  AddRbac(steps);
  AddServiceRange(core, steps);
  AddServices(core.options, core.Get<ServiceIps>().first(), steps);
  return steps;
}

// All are accepted at once and committed together: a first start costs a few disk writes, not one
// per object.
struct Progress {
  std::function<void(const Status&)> ready;
  size_t pending = 1;  // one for the loop that starts the writes
  Status first_error;

  void Finish(const Status& status) {
    if (!status.ok() && first_error.ok()) first_error = status.WithContext("bootstrap");
    if (--pending == 0) ready(first_error);
  }
};

// False when there is nothing to replace.
bool Replace(Core& core, const Step& step, const std::shared_ptr<Progress>& progress) {
  const api::KindPtr kind = core.scheme->StorageKind(step.group, step.plural);
  if (!kind) return false;
  auto object = LatestObject(core, *kind, api::Namespace(step.object), api::Name(step.object));
  if (!object) return false;
  for (const auto& [field, value] : step.object.get_object()) {
    if (field != "metadata") object->get_object()[field] = value;
  }
  WriteObject(
      core, *kind, store::EventType::kModified, std::move(*object),
      [progress](const Status& status, const store::EntryPtr&) { progress->Finish(status); });
  return true;
}

// A change of the spec by somebody else moves the generation, which stays 1 here. Nearly every
// start finds the versions that it would write, and does nothing of what a write takes.
bool IsOutdated(const Step& step, const json::Value& crd) {
  if (json::GetInt(crd, {"metadata", "generation"}) != 1) return false;
  const json::Value* stored = json::Find(crd, {"spec", "versions"});
  const json::Value* wanted = json::Find(step.object, {"spec", "versions"});
  return stored == nullptr || !json::Equal(*stored, *wanted);
}

// As Kubernetes does with its default roles: rules that are missing are added, and those of others
// stay, unless the role's annotation says that it shall stay as it is.
void RenewRole(const Step& step, json::Value& role) {
  if (api::Annotation(role, "rbac.authorization.kubernetes.io/autoupdate") != "true") return;
  json::Array rules;
  for (const json::Value& rule : json::GetArray(role, {"rules"})) {
    if (!IsRetiredRule(api::Name(role), rule)) rules.push_back(rule);
  }
  for (const json::Value& rule : json::GetArray(step.object, {"rules"})) {
    const bool there = std::any_of(rules.begin(), rules.end(), [&rule](const json::Value& one) {
      return json::Equal(one, rule);
    });
    if (!there) rules.push_back(rule);
  }
  if (!rules.empty()) json::Set(role, {"rules"}, std::move(rules));
}

// False when there is nothing to renew.
bool Renew(Core& core, const Step& step, const std::shared_ptr<Progress>& progress) {
  // Only definitions and roles of RBAC, of which bindings stay as they are.
  const bool definition = step.plural == "customresourcedefinitions";
  const api::KindPtr kind = core.scheme->StorageKind(step.group, step.plural);
  if (!kind || step.plural.ends_with("bindings")) return false;
  const std::string ns(api::Namespace(step.object)), name(api::Name(step.object));
  const auto stored = LatestObject(core, *kind, ns, name);
  if (!stored || (definition && !IsOutdated(step, *stored))) return false;
  json::Value renewed = *stored;
  if (definition) {
    renewed.get_object()["spec"] = *json::Find(step.object, {"spec"});
  } else {
    RenewRole(step, renewed);
    if (json::Equal(renewed, *stored)) return false;
  }
  Admission admission{core, nullptr, *kind, ns, name, "", false};
  const Status prepared = PrepareUpdate(admission, renewed, *stored);
  if (!prepared.ok()) {
    core.executor.Post(
        [progress, status = prepared.WithContext(name)] { progress->Finish(status); });
    return true;
  }
  if (definition) json::Set(renewed, {"metadata", "generation"}, 1);
  if (json::Equal(renewed, *stored)) return false;
  WriteObject(
      core, *kind, store::EventType::kModified, std::move(renewed),
      [progress](const Status& status, const store::EntryPtr&) { progress->Finish(status); });
  return true;
}

// Objects of Swell's own kinds. Their definitions are there first. A kind whose definition somebody
// has taken away has none.
void CreateOfOwnKinds(Core& core, const std::function<void(const Status&)>& ready) {
  json::Value runtime = api::TorchTrainingRuntime();
  constexpr char kGroup[] = "trainer.kubeflow.org", kPlural[] = "clustertrainingruntimes";
  if (!core.scheme->StorageKind(kGroup, kPlural)) return ready(Status::Ok());
  CreateInternally(core, kGroup, kPlural, std::move(runtime), [ready](const Status& status) {
    ready(status.ok() ? status : status.WithContext("bootstrap"));
  });
}

}  // namespace

void RunBootstrap(Core& core, std::function<void(const Status&)> ready) {
  auto progress = std::make_shared<Progress>();
  progress->ready = [weak = core.weak_from_this(), ready = std::move(ready)](const Status& status) {
    const auto alive = weak.lock();
    if (!alive || !status.ok()) return ready(status);
    // Definitions are served from the moment they are written, which the last answer may precede.
    alive->executor.Post([weak, ready] {
      if (const auto core = weak.lock()) CreateOfOwnKinds(*core, ready);
    });
  };
  for (Step& step : Steps(core)) {
    ++progress->pending;
    if (step.stored == Step::Stored::kReplaced && Replace(core, step, progress)) continue;
    if (step.stored == Step::Stored::kRenewed && Renew(core, step, progress)) continue;
    CreateInternally(core, step.group, step.plural, std::move(step.object),
                     [progress](const Status& status) { progress->Finish(status); });
  }
  core.executor.Post([progress] { progress->Finish(Status::Ok()); });
}

}  // namespace swell::apiserver
