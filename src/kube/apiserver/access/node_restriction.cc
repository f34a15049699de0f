#include "kube/apiserver/access/node_restriction.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kPrefix = "system:node:";
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kRestrictedLabel = "node-restriction.kubernetes.io/";

// Empty: the call is not a node's.
std::string NodeOf(const Call& call) {
  const bool own = !call.request.user.name.empty();
  if (own || IsMaster(call.user) || !IsNode(call.user)) return "";
  return call.user.name.substr(kPrefix.size());
}

Status Refuse(const std::string& node, std::string_view what) {
  return Status(Code::kForbidden, StrCat("node ", Quote(node), " ", what));
}

// Fields whose `name` is that of a Secret or a ConfigMap.
bool IsReference(std::string_view key) {
  static constexpr std::string_view kReferences[] = {"secret",
                                                     "configMap",
                                                     "secretRef",
                                                     "configMapRef",
                                                     "secretKeyRef",
                                                     "configMapKeyRef",
                                                     "imagePullSecrets",
                                                     "nodePublishSecretRef",
                                                     "nodeStageSecretRef"};
  return std::find(std::begin(kReferences), std::end(kReferences), key) != std::end(kReferences);
}

// Whether the pod's spec refers to a Secret or a ConfigMap of that name.
bool RefersTo(const json::Value& value, std::string_view name, bool reference, int depth) {
  constexpr int kDepthMax = 12;
  if (depth > kDepthMax) return false;
  if (value.is_array()) {
    return std::any_of(value.get_array().begin(), value.get_array().end(), [&](const auto& item) {
      return RefersTo(item, name, reference, depth + 1);
    });
  }
  if (!value.is_object()) return false;
  for (const auto& [key, item] : value.get_object()) {
    const std::string_view field(key.data(), key.size());
    const bool names = field == "secretName" || (reference && field == "name");
    if (names && item.is_string() && json::View(item.get_string()) == name) return true;
    if (RefersTo(item, name, IsReference(field), depth + 1)) return true;
  }
  return false;
}

bool IsNeeded(const Core& core, const Call& call, const std::string& node) {
  const auto pods = core.store.List("pods", call.info.ns, [&node](const store::Entry& entry) {
    return FieldOf(entry, "spec.nodeName") == node;
  });
  if (!pods.ok()) return false;
  return std::any_of(pods->entries.begin(), pods->entries.end(), [&](const auto& entry) {
    const json::SharedValue pod = entry->Parsed();
    const json::Value* spec = json::Find(*pod, {"spec"});
    return spec != nullptr && RefersTo(*spec, call.info.name, false, 0);
  });
}

// What the agent of a node asks of a pod that is there.
Status CheckPodRequest(const Core& core, const Call& call, const std::string& node) {
  const auto entry = core.store.Latest({"pods", call.info.ns, call.info.name});
  if (!entry || FieldOf(*entry, "spec.nodeName") == node) return Status::Ok();
  return Refuse(
      node, StrCat("can only change pods that are bound to it, not pod ", Quote(call.info.name)));
}

}  // namespace

Status CheckNodeToken(const Core& core, const Call& call, const std::string& pod) {
  const std::string node = NodeOf(call);
  if (node.empty()) return Status::Ok();
  const auto entry = pod.empty() ? nullptr : core.store.Latest({"pods", call.info.ns, pod});
  if (entry && FieldOf(*entry, "spec.nodeName") == node) return Status::Ok();
  return Refuse(node, "can only request tokens that are bound to a pod on it");
}

Status CheckNodeRequest(const Core& core, const Call& call, std::string_view verb) {
  const std::string node = NodeOf(call);
  const RequestInfo& info = call.info;
  if (node.empty() || !info.is_resource) return Status::Ok();
  const bool reads = verb == "get" || verb == "list" || verb == "watch";
  if (info.group.empty() && (info.resource == "secrets" || info.resource == "configmaps")) {
    // A list by name is a question about that name, which AttributesOf() reads.
    const std::string name = AttributesOf(call, verb).name;
    if (reads && !name.empty() && name == info.name && IsNeeded(core, call, node)) {
      return Status::Ok();
    }
    return Refuse(node,
                  StrCat("can only get a ", info.resource == "secrets" ? "secret" : "configmap",
                         " that a pod bound to it refers to"));
  }
  if (reads) return Status::Ok();
  if (info.group.empty() && info.resource == "nodes" && !info.name.empty() && info.name != node) {
    return Refuse(node, StrCat("is not allowed to modify node ", Quote(info.name)));
  }
  if (info.group == "coordination.k8s.io" && !info.name.empty() &&
      (info.ns != "kube-node-lease" || info.name != node)) {
    return Refuse(node, "can only modify the Lease of its own name in kube-node-lease");
  }
  if (info.group.empty() && info.resource == "pods" && !info.name.empty()) {
    return CheckPodRequest(core, call, node);
  }
  return Status::Ok();
}

namespace {

Status CheckNode(const std::string& node, const json::Value& object, const json::Value* old) {
  if (api::Name(object) != node) {
    return Refuse(node, StrCat("is not allowed to modify node ", Quote(api::Name(object))));
  }
  const json::Value none;
  const json::Value& before = old != nullptr ? *old : none;
  for (const auto& [key, value] : api::Labels(object)) {
    const std::string_view label(key.data(), key.size());
    if (!label.starts_with(kRestrictedLabel)) continue;
    const json::Value* was = json::Find(before, {"metadata", "labels", label});
    if (was != nullptr && *was == value) continue;
    return Refuse(node, StrCat("is not allowed to set label ", Quote(label)));
  }
  if (old != nullptr &&
      json::GetArray(object, {"spec", "taints"}) != json::GetArray(*old, {"spec", "taints"})) {
    return Refuse(node, "is not allowed to modify taints");
  }
  return Status::Ok();
}

Status CheckMirrorPod(const std::string& node, const json::Value& pod) {
  if (api::Annotation(pod, kMirror).empty()) {
    return Refuse(node, "can only create mirror pods");
  }
  if (api::NodeName(pod) != node) {
    return Refuse(node, "can only create pods with spec.nodeName set to itself");
  }
  for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
    for (const char* kind : {"secret", "configMap", "persistentVolumeClaim", "projected"}) {
      if (json::Find(volume, {kind}) == nullptr) continue;
      return Refuse(node, StrCat("can not create pods with volumes of type ", kind));
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckNodeWrite(const Admission& admission,
                      const json::Value& object,
                      const json::Value* old) {
  if (admission.call == nullptr || !admission.core.Get<AccessControl>().rbac) return Status::Ok();
  const std::string node = NodeOf(*admission.call);
  if (node.empty()) return Status::Ok();
  const bool core_group = admission.kind.gvk.group.empty();
  if (core_group && admission.kind.plural == "nodes") return CheckNode(node, object, old);
  if (core_group && admission.kind.plural == "pods" && old == nullptr) {
    return CheckMirrorPod(node, object);
  }
  if (admission.kind.gvk.group == "resource.k8s.io" && admission.kind.plural == "resourceslices") {
    const bool own = json::GetString(object, {"spec", "nodeName"}) == node &&
                     (old == nullptr || json::GetString(*old, {"spec", "nodeName"}) == node);
    if (!own) return Refuse(node, "can only write ResourceSlices whose spec.nodeName is its own");
  }
  if (admission.kind.gvk.group == "coordination.k8s.io" &&
      (admission.ns != "kube-node-lease" || admission.name != node)) {
    return Refuse(node, "can only modify the Lease of its own name in kube-node-lease");
  }
  return Status::Ok();
}

}  // namespace swell::apiserver
