// What the smaller built-in kinds do beyond the ordinary: namespaces, secrets, services, volumes,
// priority classes.
#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/apiserver/access/handlers.h"
#include "kube/apiserver/admission/limit_range.h"
#include "kube/apiserver/admission/machine_ports.h"
#include "kube/apiserver/admission/pod_security.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/kinds/service_ips.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/prepare.h"
#include "kube/apiserver/writing/write.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kNamespaceFinalizer = "kubernetes";
constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

bool IsProtectedNamespace(std::string_view name) {
  return name == "default" || name == "kube-system" || name == "kube-public";
}

Status CreateNamespace(Admission& admission, json::Value& object) {
  // An invalid name is reported once, as the name and not as a label's value as well.
  if (api::CheckDnsLabel(admission.name).empty()) {
    json::Set(object, {"metadata", "labels", kNameLabel}, json::Value(admission.name));
  }
  json::Array finalizers = json::GetArray(object, {"spec", "finalizers"});
  if (std::find(finalizers.begin(), finalizers.end(), json::Value(kNamespaceFinalizer)) ==
      finalizers.end()) {
    finalizers.emplace_back(kNamespaceFinalizer);
  }
  json::Set(object, {"spec", "finalizers"}, std::move(finalizers));
  json::Set(object, {"status"}, json::Object());
  json::Set(object, {"status", "phase"}, json::Value("Active"));
  return CheckPodSecurityLabels(admission, object, nullptr);
}

Status UpdateNamespace(Admission& admission, json::Value& object, const json::Value& old) {
  json::Set(object, {"metadata", "labels", kNameLabel}, json::Value(admission.name));
  if (admission.subresource == "finalize") return Status::Ok();
  // Only /finalize takes these away.
  json::Set(object, {"spec", "finalizers"}, json::GetArray(old, {"spec", "finalizers"}));
  return admission.subresource.empty() ? CheckPodSecurityLabels(admission, object, &old)
                                       : Status::Ok();
}

Status RemoveNamespace(Admission& admission, const json::Value&) {
  if (!IsProtectedNamespace(admission.name)) return Status::Ok();
  return ForbiddenError(admission.kind, admission.name, "this namespace may not be deleted");
}

void NamespaceWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  if (!ok || type != store::EventType::kAdded) return;
  json::Object account;
  account["apiVersion"] = "v1";
  account["kind"] = "ServiceAccount";
  account["metadata"] = json::Object{{"name", "default"}, {"namespace", entry->key.name}};
  CreateInternally(core, "", "serviceaccounts", std::move(account),
                   [ns = entry->key.name](const Status& status) {
                     if (status.ok()) return;
                     SWELL_LOG_WARNING("apiserver", "no default service account", {"namespace", ns},
                                       {"error", status.ToString()});
                   });
}

}  // namespace

// PUT namespaces/x/finalize: spec.finalizers alone.
void HandleNamespaceFinalize(Core& core, const CallPtr& call) {
  auto object = DecodeObject(*call, *call->kind, core.options.body_limit_bytes);
  if (!object.ok()) {
    call->Fail(object.status());
    return;
  }
  const auto old = core.store.Latest(KeyFor(*call->storage, "", call->info.name));
  if (!old) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  json::Value next = *old->Parsed();
  json::Set(next, {"spec", "finalizers"}, json::GetArray(*object, {"spec", "finalizers"}));
  const json::Value* version = json::Find(*object, {"metadata", "resourceVersion"});
  if (version != nullptr) json::Set(next, {"metadata", "resourceVersion"}, *version);
  Admission admission = AdmissionOf(core, *call);
  UpdateObject(core, admission, std::move(next), old, AnswerUpdate(core, call));
}

namespace {

Status CreatePriorityClass(Admission& admission, json::Value& object) {
  if (!json::GetBool(object, {"globalDefault"})) return Status::Ok();
  // There is one global default at most.
  const auto classes = admission.core.store.List(admission.kind.StoreResource(), "");
  if (!classes.ok()) return classes.status();
  for (const store::EntryPtr& entry : classes->entries) {
    if (entry->key.name == admission.name || FieldOf(*entry, "globalDefault") != "true") {
      continue;
    }
    return ForbiddenError(admission.kind, admission.name,
                          StrCat("PriorityClass ", entry->key.name,
                                 " is already marked as default. Only one default can exist"));
  }
  return Status::Ok();
}

Status RemovePriorityClass(Admission& admission, const json::Value&) {
  if (admission.name.rfind("system-", 0) != 0) return Status::Ok();
  return ForbiddenError(admission.kind, admission.name, "this is a system priority class");
}

// stringData is written, never read back.
Status CreateSecret(Admission& admission, json::Value& object) {
  const json::Value* plain = json::Find(object, {"stringData"});
  if (plain != nullptr && plain->is_object()) {
    const json::Object texts = plain->get_object();
    for (const auto& [key, value] : texts) {
      if (!value.is_string()) continue;
      json::Set(object, {"data", std::string_view(key.data(), key.size())},
                json::Value(Base64Encode(json::View(value.get_string()))));
    }
  }
  json::Remove(object, {"stringData"});
  for (const auto& [key, value] : json::GetObject(object, {"data"})) {
    if (value.is_string() && Base64Decode(json::View(value.get_string()))) continue;
    return BadRequestError(StrCat("Secret in version \"v1\" cannot be handled as a Secret: data[",
                                  std::string_view(key.data(), key.size()),
                                  "]: illegal base64 data"));
  }
  if (json::GetString(object, {"type"}).empty()) {
    json::Set(object, {"type"}, json::Value("Opaque"));
  }
  FillAccountSecret(admission, object);
  return Status::Ok();
}

Status UpdateSecret(Admission& admission, json::Value& object, const json::Value&) {
  return CreateSecret(admission, object);
}

std::set<int64_t> NodePortsOf(const json::Value& service) {
  std::set<int64_t> numbers;
  for (const json::Value& port : json::GetArray(service, {"spec", "ports"})) {
    if (const int64_t number = json::GetInt(port, {"nodePort"}); number != 0) {
      numbers.insert(number);
    }
  }
  return numbers;
}

std::set<int64_t> TakenNodePorts(const Admission& admission) {
  std::set<int64_t> taken;
  const auto services = admission.core.store.List("services", "");
  if (!services.ok()) return taken;
  for (const store::EntryPtr& entry : services->entries) {
    if (entry->key.name == admission.name && entry->key.ns == admission.ns) continue;
    taken.merge(NodePortsOf(*entry->Parsed()));
  }
  return taken;
}

std::string_view TypeOf(const json::Value& service) {
  return json::GetString(service, {"spec", "type"});
}

bool IsReachedFromOutside(const json::Value& service) {
  return TypeOf(service) == "NodePort" || TypeOf(service) == "LoadBalancer";
}

bool NeedsNodePorts(const json::Value& service) {
  return TypeOf(service) == "NodePort" ||
         (TypeOf(service) == "LoadBalancer" &&
          json::GetBool(service, {"spec", "allocateLoadBalancerNodePorts"}, true));
}

// The ports of the nodes that one write of a service asks for or is given.
class NodePorts {
 public:
  // `had` are those that the service has already. Unless `gives`, only what is asked for is
  // checked.
  NodePorts(Admission& admission, std::set<int64_t> had, bool gives)
      : admission_(admission),
        taken_(TakenNodePorts(admission)),
        had_(std::move(had)),
        gives_(gives) {}

  // Ports of one number, TCP and UDP, share a node port.
  Status Allocate(json::Value& service) {
    json::Value* list = json::FindMutable(service, {"spec", "ports"});
    if (list == nullptr || !list->is_array()) return Status::Ok();
    const bool all = NeedsNodePorts(service);
    json::Array& ports = list->get_array();
    std::map<int64_t, int64_t> of_port;
    for (size_t i = 0; i < ports.size(); ++i) {
      const int64_t number = json::GetInt(ports[i], {"nodePort"});
      if (number == 0 && !all) continue;
      int64_t& given = of_port[json::GetInt(ports[i], {"port"})];
      if (given == 0) {
        given = Requested(ports, json::GetInt(ports[i], {"port"}));
        if (given != 0) {
          SWELL_RETURN_IF_ERROR(Take(i, given));
        } else if (gives_) {
          SWELL_ASSIGN_OR_RETURN(given, Next());
        }
      } else if (number != 0 && number != given) {
        SWELL_RETURN_IF_ERROR(Take(i, number));
      }
      if (number == 0 && gives_) json::Set(ports[i], {"nodePort"}, json::Value(given));
    }
    return Status::Ok();
  }

 private:
  // The first that is asked for one of the ports of this number.
  static int64_t Requested(const json::Array& ports, int64_t port) {
    for (const json::Value& one : ports) {
      const int64_t number = json::GetInt(one, {"nodePort"});
      if (number != 0 && json::GetInt(one, {"port"}) == port) return number;
    }
    return 0;
  }

  Status Take(size_t index, int64_t number) {
    std::string why;
    if (number < kFirstNodePort || number >= kFirstNodePort + kNodePorts) {
      why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
    } else if (taken_.contains(number)) {
      why = "provided port is already allocated";
    }
    if (had_.contains(number) || why.empty()) {
      taken_.insert(number);
      return Status::Ok();
    }
    return InvalidError(admission_.kind, admission_.name,
                        {{"FieldValueInvalid", StrCat("spec.ports[", index, "].nodePort"),
                          StrCat("Invalid value: ", number, ": ", why)}});
  }

  Result<int64_t> Next() {
    if (taken_.size() >= static_cast<size_t>(kNodePorts)) {
      return Status(Code::kInternal, "failed to allocate a nodePort: range is full");
    }
    const auto start = static_cast<int64_t>(admission_.core.random.Below(kNodePorts));
    int64_t number = 0;
    for (int64_t step = 0; number == 0 || taken_.contains(number); ++step) {
      number = kFirstNodePort + (start + step) % kNodePorts;
    }
    taken_.insert(number);
    return number;
  }

  Admission& admission_;
  std::set<int64_t> taken_;
  std::set<int64_t> had_;
  bool gives_;
};

// Whether the service may have the address that it asks for.
Status CheckServiceIp(const Admission& admission, const json::Value& object) {
  const std::string ip(json::GetString(object, {"spec", "clusterIP"}));
  // Text that is not an address is left to the rules of services.
  if (!ParseIpv4(ip) || TypeOf(object) == "ExternalName") return Status::Ok();
  const ServiceIps& ips = admission.core.Get<ServiceIps>();
  std::string why;
  if (!ips.InRange(ip)) {
    why = StrCat("the provided IP (", ip, ") is not in the valid range. The range of valid IPs is ",
                 ips.Cidr());
  } else if (ips.Taken(ip) && admission.call != nullptr) {
    why = "provided IP is already allocated";
  }
  if (why.empty()) return Status::Ok();
  return InvalidError(
      admission.kind, admission.name,
      {{"FieldValueInvalid", "spec.clusterIPs",
        StrCat("Invalid value: [", Quote(ip), "]: failed to allocate IP ", ip, ": ", why)}});
}

Status AllocateServiceIp(Admission& admission, json::Value& object) {
  ServiceIps& ips = admission.core.Get<ServiceIps>();
  std::string ip(json::GetString(object, {"spec", "clusterIP"}));
  if (ip == "None" || TypeOf(object) == "ExternalName") {
    if (ip == "None") json::Set(object, {"spec", "clusterIPs"}, json::Array{json::Value(ip)});
    return Status::Ok();
  }
  if (ip.empty()) {
    const auto allocated = ips.Allocate();
    if (!allocated) {
      return Status(Code::kInternal, StrCat("failed to allocate IP for service ",
                                            Quote(admission.name), ": range is full"));
    }
    ip = *allocated;
    if (admission.dry_run) ips.Release(ip);
  } else {
    SWELL_RETURN_IF_ERROR(CheckServiceIp(admission, object));
    if (!admission.dry_run) ips.Take(ip);
  }
  json::Set(object, {"spec", "clusterIP"}, json::Value(ip));
  json::Set(object, {"spec", "clusterIPs"}, json::Array{json::Value(ip)});
  return Status::Ok();
}

// What a service has and does not use, and what it had better not use.
void WarnOfUnused(const Admission& admission, const json::Value& service) {
  const bool by_name = TypeOf(service) == "ExternalName";
  const bool headless =
      TypeOf(service) == "ClusterIP" && json::GetString(service, {"spec", "clusterIP"}) == "None";
  const bool has_ips = !json::GetArray(service, {"spec", "externalIPs"}).empty();
  const std::string_view balancer = json::GetString(service, {"spec", "loadBalancerIP"});
  const std::string_view affinity = json::GetString(service, {"spec", "sessionAffinity"});
  auto warn = [&admission](bool holds, const char* text) {
    if (holds) admission.Warn(text);
  };
  warn(headless && !balancer.empty(), "spec.loadBalancerIP is ignored for headless services");
  warn(headless && has_ips, "spec.externalIPs is ignored for headless services");
  warn(headless && !affinity.empty() && affinity != "None",
       "spec.SessionAffinity is ignored for headless services");
  warn(has_ips && !headless && !by_name,
       "spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  warn(has_ips && by_name, "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  warn(!by_name && !json::GetString(service, {"spec", "externalName"}).empty(),
       "spec.externalName is ignored when spec.type is not \"ExternalName\"");
}

// Addresses and ports that cannot be had are told before anything else that is wrong.
Status CreateService(Admission& admission, json::Value& object) {
  json::Set(object, {"status"}, json::Object{{"loadBalancer", json::Object()}});
  SWELL_RETURN_IF_ERROR(CheckServiceIp(admission, object));
  if (!IsReachedFromOutside(object)) return Status::Ok();
  return NodePorts(admission, {}, /*gives=*/false).Allocate(object);
}

Status ReserveService(Admission& admission, json::Value& object, const json::Value* old) {
  if (admission.subresource.empty()) WarnOfUnused(admission, object);
  const std::string_view before =
      old == nullptr ? "" : json::GetString(*old, {"spec", "clusterIP"});
  if (!before.empty()) {
    const bool given_back = json::GetString(object, {"spec", "clusterIP"}).empty();
    if (given_back && !admission.dry_run) admission.core.Get<ServiceIps>().Release(before);
    return Status::Ok();
  }
  if (old == nullptr && IsReachedFromOutside(object)) {
    SWELL_RETURN_IF_ERROR(NodePorts(admission, {}, /*gives=*/true).Allocate(object));
  }
  return AllocateServiceIp(admission, object);
}

// A port that the update leaves out keeps the node's port that it had.
void KeepNodePorts(json::Value& object, const json::Value& old) {
  json::Value* ports = json::FindMutable(object, {"spec", "ports"});
  if (ports == nullptr || !ports->is_array()) return;
  for (json::Value& port : ports->get_array()) {
    if (json::GetInt(port, {"nodePort"}) != 0) continue;
    for (const json::Value& before : json::GetArray(old, {"spec", "ports"})) {
      const bool same =
          json::GetInt(before, {"port"}) == json::GetInt(port, {"port"}) &&
          json::GetString(before, {"protocol"}) == json::GetString(port, {"protocol"});
      if (!same || json::GetInt(before, {"nodePort"}) == 0) continue;
      json::Set(port, {"nodePort"}, json::Value(json::GetInt(before, {"nodePort"})));
      break;
    }
  }
}

void RemoveUnlessChanged(json::Value& object, const json::Value& old, const char* field) {
  const json::Value* now = json::Find(object, {"spec", field});
  const json::Value* before = json::Find(old, {"spec", field});
  if (now != nullptr && before != nullptr && *now == *before) json::Remove(object, {"spec", field});
}

void RemoveNodePortsUnlessNew(json::Value& object, const json::Value& old) {
  const std::set<int64_t> had = NodePortsOf(old);
  json::Value* ports = json::FindMutable(object, {"spec", "ports"});
  if (ports == nullptr || !ports->is_array()) return;
  for (json::Value& port : ports->get_array()) {
    if (had.count(json::GetInt(port, {"nodePort"})) > 0) json::Remove(port, {"nodePort"});
  }
}

// What was given to a service goes with the type that needed it, when the update says nothing else
// about it. What people wrote themselves, such as the external name, stays.
void DropWhatTheNewTypeLacks(json::Value& object, const json::Value& old) {
  if (TypeOf(object) == "ExternalName" && TypeOf(old) != "ExternalName") {
    for (const char* field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      RemoveUnlessChanged(object, old, field);
    }
    RemoveUnlessChanged(object, old, "internalTrafficPolicy");
  }
  if (NeedsNodePorts(old) && !NeedsNodePorts(object)) RemoveNodePortsUnlessNew(object, old);
  if (IsReachedFromOutside(old) && !IsReachedFromOutside(object)) {
    RemoveUnlessChanged(object, old, "externalTrafficPolicy");
  }
  if (TypeOf(old) == "LoadBalancer" && TypeOf(object) != "LoadBalancer") {
    RemoveUnlessChanged(object, old, "allocateLoadBalancerNodePorts");
    RemoveUnlessChanged(object, old, "healthCheckNodePort");
  }
}

Status UpdateService(Admission& admission, json::Value& object, const json::Value& old) {
  if (admission.subresource.empty()) {
    DropWhatTheNewTypeLacks(object, old);
    if (IsReachedFromOutside(object)) {
      KeepNodePorts(object, old);
      // An ExternalName may name any port, since no node serves it. The service does not get the
      // port.
      std::set<int64_t> had = IsReachedFromOutside(old) ? NodePortsOf(old) : std::set<int64_t>();
      NodePorts ports(admission, std::move(had), /*gives=*/true);
      SWELL_RETURN_IF_ERROR(ports.Allocate(object));
    }
  }
  const std::string before(json::GetString(old, {"spec", "clusterIP"}));
  const std::string_view after = json::GetString(object, {"spec", "clusterIP"});
  if (after.empty() && TypeOf(object) == "ExternalName") return Status::Ok();
  if (after.empty() && !before.empty()) {
    // Left out: it stays.
    json::Set(object, {"spec", "clusterIP"}, json::Value(before));
    json::Set(object, {"spec", "clusterIPs"}, json::GetArray(old, {"spec", "clusterIPs"}));
    return Status::Ok();
  }
  if (!before.empty() && after != before) {
    return InvalidError(
        admission.kind, admission.name,
        {{"FieldValueInvalid", "spec.clusterIPs[0]",
          StrCat("Invalid value: []string{", Quote(after), "}: may not change once set")}});
  }
  return Status::Ok();
}

void ServiceWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  const bool gone = ok ? type == store::EventType::kDeleted : type == store::EventType::kAdded;
  if (gone)
    core.Get<ServiceIps>().Release(json::GetString(*entry->Parsed(), {"spec", "clusterIP"}));
}

// What is in use stays until the controller takes this away again.
void Protect(json::Value& object, std::string_view finalizer) {
  json::Array finalizers = json::GetArray(object, {"metadata", "finalizers"});
  if (std::find(finalizers.begin(), finalizers.end(), json::Value(finalizer)) != finalizers.end()) {
    return;
  }
  finalizers.emplace_back(finalizer);
  json::Set(object, {"metadata", "finalizers"}, std::move(finalizers));
}

Status CreatePvc(Admission& admission, json::Value& object) {
  SWELL_RETURN_IF_ERROR(LimitClaim(admission, object));
  json::Set(object, {"status"}, json::Object{{"phase", "Pending"}});
  Protect(object, "kubernetes.io/pvc-protection");
  return Status::Ok();
}

// A claim may grow where it is bound and its class says so.
Status UpdatePvc(Admission& admission, json::Value& object, const json::Value& old) {
  if (!admission.subresource.empty()) return Status::Ok();
  auto requested = [](const json::Value& claim) {
    const json::Value* size = json::Find(claim, {"spec", "resources", "requests", "storage"});
    return api::Quantity::FromJson(size == nullptr ? json::Value("0") : *size);
  };
  const auto now = requested(object);
  const auto before = requested(old);
  if (!now.ok() || !before.ok() || *now <= *before) return Status::Ok();
  auto refuse = [&admission](std::string_view why) {
    return ForbiddenError(admission.kind, admission.name, why);
  };
  // What is not bound stays as it is: the rules of claims say so.
  if (api::StatusPhase(old) != "Bound") return Status::Ok();
  const std::string_view name = json::GetString(old, {"spec", "storageClassName"});
  const auto kind = admission.core.scheme->StorageKind("storage.k8s.io", "storageclasses");
  const auto entry = !name.empty() && kind
                         ? admission.core.store.Latest(KeyFor(*kind, "", std::string(name)))
                         : nullptr;
  if (entry && json::GetBool(*entry->Parsed(), {"allowVolumeExpansion"})) return Status::Ok();
  return refuse(
      "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
      "pvc must support resize");
}

// Counts changes of the template; clients used it before metadata.generation.
constexpr char kTemplateGeneration[] = "deprecated.daemonset.template.generation";

void SetTemplateGeneration(json::Value& object, int64_t generation) {
  json::Set(object, {"metadata", "annotations", kTemplateGeneration},
            json::Value(std::to_string(generation)));
}

Status CreateDaemonSet(Admission&, json::Value& object) {
  SetTemplateGeneration(object, 1);
  return Status::Ok();
}

Status UpdateDaemonSet(Admission&, json::Value& object, const json::Value& old) {
  const int64_t generation = ParseInt(api::Annotation(old, kTemplateGeneration)).value_or(1);
  const json::Value* now = json::Find(object, {"spec", "template"});
  const json::Value* before = json::Find(old, {"spec", "template"});
  const bool same = now != nullptr && before != nullptr && json::Equal(*now, *before);
  SetTemplateGeneration(object, same ? generation : generation + 1);
  return Status::Ok();
}

Status CreatePv(Admission&, json::Value& object) {
  json::Set(object, {"status"}, json::Object{{"phase", "Pending"}});
  Protect(object, "kubernetes.io/pv-protection");
  return Status::Ok();
}

void AddServiceIps(Core& core) {
  auto& ips = core.Add(
      std::make_unique<ServiceIps>(core.options.service_ip_base, core.options.service_ip_count));
  ips.Take(ips.first());
  const auto services = core.store.List("services", "");
  if (!services.ok()) return;
  for (const store::EntryPtr& entry : services->entries) {
    ips.Take(json::GetString(*entry->Parsed(), {"spec", "clusterIP"}));
  }
}

}  // namespace

void RegisterBuiltInKinds(Core& core) {
  AddServiceIps(core);
  HookTable& hooks = core.hooks;
  hooks.Add("namespaces", {.create = CreateNamespace,
                           .update = UpdateNamespace,
                           .remove = RemoveNamespace,
                           .written = NamespaceWritten});
  hooks.Add("secrets", {.create = CreateSecret, .update = UpdateSecret});
  hooks.Add("services", {.create = CreateService,
                         .update = UpdateService,
                         .written = ServiceWritten,
                         .reserve = ReserveService,
                         .answers_deleted = true});
  hooks.Add("priorityclasses.scheduling.k8s.io",
            {.create = CreatePriorityClass, .remove = RemovePriorityClass, .generation = true});
  hooks.Add("persistentvolumeclaims",
            {.create = CreatePvc, .update = UpdatePvc, .answers_deleted = true});
  hooks.Add("persistentvolumes", {.create = CreatePv, .answers_deleted = true});
  hooks.Add("daemonsets.apps",
            {.create = CreateDaemonSet, .update = UpdateDaemonSet, .generation = true});
  hooks.Add("serviceaccounts", {.answers_deleted = true});
  hooks.Add("poddisruptionbudgets.policy", {.generation = true, .needs_version = true});
  hooks.Add("endpoints", {.create_on_update = true});
  hooks.Add("leases.coordination.k8s.io", {.create_on_update = true});
  for (const char* resource :
       {"cronjobs.batch", "deployments.apps", "endpointslices.discovery.k8s.io",
        "ingressclasses.networking.k8s.io", "ingresses.networking.k8s.io", "jobs.batch",
        "networkpolicies.networking.k8s.io", "replicasets.apps", "replicationcontrollers",
        "statefulsets.apps"}) {
    hooks.Add(resource, {.generation = true});
  }
}

}  // namespace swell::apiserver
