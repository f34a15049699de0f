// DefaultObject: the defaults that depend on more than the field itself.

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

using json::Value;

// Lists that Kubernetes' types show even when there is nothing in them.
bool ShownEmpty(const SchemaField& field, int depth) {
  return field.required || (depth == 0 && (field.name == "rules" || field.name == "ports"));
}

bool IsEmpty(const SchemaField& field, const Value& value) {
  if (field.schema->type == SchemaType::kArray)
    return value.is_array() && value.get_array().empty();
  return field.schema->type == SchemaType::kMap && value.is_object() && value.get_object().empty();
}

// What is as good as not written in Kubernetes' own types: null members, empty lists and maps.
void DropNulls(const Schema& schema, Value& value, int depth) {
  constexpr int kMaxDepth = 64;
  if (depth > kMaxDepth || schema.type == SchemaType::kAny) return;
  if (json::Array* list = value.if_array(); list && schema.items) {
    for (Value& item : *list) DropNulls(*schema.items, item, depth + 1);
    return;
  }
  json::Object* object = value.if_object();
  if (object == nullptr) return;
  if (schema.type == SchemaType::kMap) {
    for (auto& member : *object) {
      if (member.value().is_null() && schema.items->type == SchemaType::kString) {
        member.value() = "";
      } else {
        DropNulls(*schema.items, member.value(), depth + 1);
      }
    }
    return;
  }
  std::vector<std::string> gone;
  for (auto& member : *object) {
    const SchemaField* field = schema.Field(member.key());
    if (field == nullptr) continue;
    if (member.value().is_null()) {
      if (field->schema->type != SchemaType::kAny) gone.emplace_back(member.key());
    } else {
      DropNulls(*field->schema, member.value(), depth + 1);
      if (IsEmpty(*field, member.value()) && !ShownEmpty(*field, depth)) {
        gone.emplace_back(member.key());
      }
    }
  }
  for (const std::string& key : gone) json::StableErase(*object, key);
}

Value* Member(Value& parent, std::string_view key) {
  json::Object* object = parent.if_object();
  return object ? object->if_contains(key) : nullptr;
}

json::Array* List(Value& parent, std::string_view key) {
  Value* value = Member(parent, key);
  return value ? value->if_array() : nullptr;
}

// Sets the member unless it is there and not empty text.
void SetIfAbsent(Value& parent, std::string_view key, Value value) {
  json::Object* object = parent.if_object();
  if (object == nullptr) return;
  const Value* old = object->if_contains(key);
  if (old && !old->is_null() && !(old->is_string() && old->get_string().empty())) return;
  (*object)[key] = std::move(value);
}

std::string_view Text(const Value& parent, std::string_view key) {
  return json::GetString(parent, {key});
}

// "Always" for images without a tag or with :latest: what they name may change.
std::string_view PullPolicy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  size_t slash = image.rfind('/');
  size_t colon = image.rfind(':');
  bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return !tagged || image.substr(colon + 1) == "latest" ? "Always" : "IfNotPresent";
}

void DefaultContainer(Value& container, bool host_network) {
  if (!container.is_object()) return;
  SetIfAbsent(container, "imagePullPolicy", Value(PullPolicy(Text(container, "image"))));
  json::Array* ports = List(container, "ports");
  if (!host_network || ports == nullptr) return;
  for (Value& port : *ports) {
    int64_t number = json::GetInt(port, {"containerPort"});
    if (number != 0 && json::GetInt(port, {"hostPort"}) == 0) {
      json::Set(port, {"hostPort"}, Value(number));
    }
  }
}

bool HasSource(const Value& volume) {
  for (const auto& member : json::GetObject(volume, {})) {
    if (member.key() != "name" && !member.value().is_null()) return true;
  }
  return false;
}

void DefaultPodSpec(Value& spec) {
  if (!spec.is_object()) return;
  bool host_network = json::GetBool(spec, {"hostNetwork"});
  for (std::string_view key : {"initContainers", "containers", "ephemeralContainers"}) {
    if (json::Array* containers = List(spec, key)) {
      for (Value& container : *containers) DefaultContainer(container, host_network);
    }
  }
  if (json::Array* volumes = List(spec, "volumes")) {
    for (Value& volume : *volumes) {
      if (volume.is_object() && !HasSource(volume)) {
        volume.get_object()["emptyDir"] = json::Object();
      }
    }
  }
  // The old name of the field stays in step with the new one.
  if (std::string account(Text(spec, "serviceAccountName")); !account.empty()) {
    spec.get_object()["serviceAccount"] = account;
  } else if (std::string old(Text(spec, "serviceAccount")); !old.empty()) {
    spec.get_object()["serviceAccountName"] = old;
  }
}

void DefaultTemplate(Value& parent) {
  if (Value* spec = json::FindMutable(parent, {"template", "spec"})) DefaultPodSpec(*spec);
}

void DefaultRequests(Value& container) {
  const json::Object limits = json::GetObject(container, {"resources", "limits"});
  if (limits.empty()) return;
  for (const auto& limit : limits) {
    const json::Object& requests = json::GetObject(container, {"resources", "requests"});
    if (requests.contains(limit.key())) continue;
    json::Set(container, {"resources", "requests", limit.key()}, limit.value());
  }
}

void DefaultPod(Value& pod) {
  Value* spec = Member(pod, "spec");
  if (spec == nullptr || !spec->is_object()) return;
  SetIfAbsent(*spec, "enableServiceLinks", Value(true));
  for (std::string_view key : {"initContainers", "containers"}) {
    if (json::Array* containers = List(*spec, key)) {
      for (Value& container : *containers) DefaultRequests(container);
    }
  }
  DefaultPodSpec(*spec);
  if (Member(pod, "status") == nullptr) json::Set(pod, {"status"}, json::Object());
  if (Value* status = Member(pod, "status"); status->is_object()) {
    SetIfAbsent(*status, "phase", Value("Pending"));
  }
}

// A job's pods are told apart by the job's uid, once it has one.
void DefaultJobSelector(Value& job, Value& spec) {
  std::string uid(Uid(job));
  if (uid.empty() || json::GetBool(spec, {"manualSelector"}) || Member(spec, "selector")) return;
  json::Set(spec, {"selector", "matchLabels", "batch.kubernetes.io/controller-uid"}, Value(uid));
  std::string name(Name(job));
  const std::pair<std::string_view, const std::string*> labels[] = {
      {"batch.kubernetes.io/controller-uid", &uid},
      {"batch.kubernetes.io/job-name", &name},
      {"controller-uid", &uid},
      {"job-name", &name},
  };
  for (const auto& [key, value] : labels) {
    json::Set(spec, {"template", "metadata", "labels", key}, Value(*value));
  }
}

void DefaultFailurePolicy(Value& spec) {
  Value* policy = Member(spec, "podFailurePolicy");
  json::Array* rules = policy == nullptr ? nullptr : List(*policy, "rules");
  if (rules == nullptr) return;
  for (Value& rule : *rules) {
    json::Array* patterns = List(rule, "onPodConditions");
    if (patterns == nullptr) continue;
    for (Value& pattern : *patterns) SetIfAbsent(pattern, "status", Value("True"));
  }
}

void DefaultJob(Value& job) {
  Value* spec = Member(job, "spec");
  if (spec == nullptr || !spec->is_object()) return;
  if (Member(*spec, "completions") == nullptr && Member(*spec, "parallelism") == nullptr) {
    json::Set(*spec, {"completions"}, Value(1));
  }
  SetIfAbsent(*spec, "parallelism", Value(1));
  bool per_index = Member(*spec, "backoffLimitPerIndex") != nullptr;
  SetIfAbsent(*spec, "backoffLimit", Value(per_index ? 2147483647 : 6));
  SetIfAbsent(*spec, "completionMode", Value("NonIndexed"));
  SetIfAbsent(*spec, "suspend", Value(false));
  bool policy = Member(*spec, "podFailurePolicy") != nullptr;
  SetIfAbsent(*spec, "podReplacementPolicy", Value(policy ? "Failed" : "TerminatingOrFailed"));
  DefaultFailurePolicy(*spec);
  DefaultTemplate(*spec);
  DefaultJobSelector(job, *spec);
  const json::Object labels = json::GetObject(*spec, {"template", "metadata", "labels"});
  if (!labels.empty() && json::GetObject(job, {"metadata", "labels"}).empty()) {
    json::Set(job, {"metadata", "labels"}, labels);
  }
}

void DefaultStrategy(Value& spec, std::string_view key, Value rolling) {
  Value* strategy = Member(spec, key);
  if (strategy == nullptr || !strategy->is_object()) return;
  if (Text(*strategy, "type") != "RollingUpdate") return;
  SetIfAbsent(*strategy, "rollingUpdate", json::Object());
  Value* update = Member(*strategy, "rollingUpdate");
  for (const auto& member : rolling.get_object()) {
    SetIfAbsent(*update, member.key(), member.value());
  }
}

void DefaultWorkload(const std::string& kind, Value& object) {
  Value* spec = Member(object, "spec");
  if (spec == nullptr || !spec->is_object()) return;
  DefaultTemplate(*spec);
  if (kind == "Deployment") {
    DefaultStrategy(*spec, "strategy",
                    json::Object({{"maxUnavailable", "25%"}, {"maxSurge", "25%"}}));
  } else if (kind == "StatefulSet") {
    DefaultStrategy(*spec, "updateStrategy",
                    json::Object({{"partition", 0}, {"maxUnavailable", 1}}));
    if (json::Array* claims = List(*spec, "volumeClaimTemplates")) {
      for (Value& claim : *claims) {
        SetIfAbsent(claim, "apiVersion", Value("v1"));
        SetIfAbsent(claim, "kind", Value("PersistentVolumeClaim"));
      }
    }
  } else if (kind == "DaemonSet") {
    DefaultStrategy(*spec, "updateStrategy",
                    json::Object({{"maxUnavailable", 1}, {"maxSurge", 0}}));
  } else if (kind == "ReplicationController") {
    const json::Object labels = json::GetObject(*spec, {"template", "metadata", "labels"});
    if (!labels.empty() && json::GetObject(*spec, {"selector"}).empty()) {
      json::Set(*spec, {"selector"}, labels);
    }
    if (!labels.empty() && json::GetObject(object, {"metadata", "labels"}).empty()) {
      json::Set(object, {"metadata", "labels"}, labels);
    }
  }
}

void DefaultService(Value& service) {
  Value* spec = Member(service, "spec");
  if (spec == nullptr || !spec->is_object()) return;
  if (json::Array* ports = List(*spec, "ports")) {
    for (Value& port : *ports) {
      const Value* target =
          port.is_object() ? port.get_object().if_contains("targetPort") : nullptr;
      bool set = target != nullptr && !(target->is_int64() && target->get_int64() == 0) &&
                 !(target->is_string() && target->get_string().empty());
      if (!set && port.is_object()) {
        json::Set(port, {"targetPort"}, Value(json::GetInt(port, {"port"})));
      }
    }
  }
  std::string type(Text(*spec, "type"));
  if (Text(*spec, "sessionAffinity") == "None") json::Remove(*spec, {"sessionAffinityConfig"});
  if (Text(*spec, "sessionAffinity") == "ClientIP" &&
      json::Find(*spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"}) == nullptr) {
    json::Set(*spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"}, Value(10800));
  }
  if (type == "ExternalName") return;
  SetIfAbsent(*spec, "internalTrafficPolicy", Value("Cluster"));
  SetIfAbsent(*spec, "ipFamilyPolicy", Value("SingleStack"));
  SetIfAbsent(*spec, "ipFamilies", json::Array({"IPv4"}));
  if (type == "NodePort" || type == "LoadBalancer") {
    SetIfAbsent(*spec, "externalTrafficPolicy", Value("Cluster"));
  }
  if (type == "LoadBalancer") SetIfAbsent(*spec, "allocateLoadBalancerNodePorts", Value(true));
}

// stringData is for writing: it goes into data, encoded.
void DefaultSecret(Value& secret) {
  Value* plain = Member(secret, "stringData");
  if (plain == nullptr || !plain->is_object()) return;
  json::Object taken = plain->get_object();
  json::StableErase(secret.get_object(), "stringData");
  for (const auto& member : taken) {
    if (!member.value().is_string()) continue;
    json::Set(secret, {"data", member.key()},
              Value(Base64Encode(json::View(member.value().get_string()))));
  }
}

void DefaultRoleBinding(Value& binding) {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  if (Value* ref = Member(binding, "roleRef")) SetIfAbsent(*ref, "apiGroup", Value(kGroup));
  if (json::Array* subjects = List(binding, "subjects")) {
    for (Value& subject : *subjects) {
      std::string_view kind = Text(subject, "kind");
      if (kind == "User" || kind == "Group") SetIfAbsent(subject, "apiGroup", Value(kGroup));
    }
  }
}

void FillFrom(Value& item, std::string_view to, std::string_view from) {
  const json::Object source = json::GetObject(item, {from});
  for (const auto& member : source) {
    if (!json::GetObject(item, {to}).contains(member.key())) {
      json::Set(item, {to, member.key()}, member.value());
    }
  }
}

void DefaultLimitRange(Value& range) {
  Value* spec = Member(range, "spec");
  json::Array* limits = spec ? List(*spec, "limits") : nullptr;
  if (limits == nullptr) return;
  for (Value& item : *limits) {
    if (Text(item, "type") != "Container") continue;
    FillFrom(item, "default", "max");
    FillFrom(item, "defaultRequest", "default");
    FillFrom(item, "defaultRequest", "min");
  }
}

json::Object ScalingPolicy(std::string_view type, int64_t value) {
  return json::Object({{"type", type}, {"value", value}, {"periodSeconds", 15}});
}

// A behavior that is given in part gets the defaults of the other part.
void DefaultScalingBehavior(Value& autoscaler) {
  Value* behavior = json::FindMutable(autoscaler, {"spec", "behavior"});
  if (behavior == nullptr || !behavior->is_object()) return;
  for (std::string_view way : {"scaleUp", "scaleDown"}) {
    SetIfAbsent(*behavior, way, json::Object());
    Value& rules = *Member(*behavior, way);
    json::Array policies({ScalingPolicy("Percent", 100)});
    if (way == "scaleUp") {
      policies.insert(policies.begin(), ScalingPolicy("Pods", 4));
      SetIfAbsent(rules, "stabilizationWindowSeconds", Value(0));
    }
    SetIfAbsent(rules, "selectPolicy", Value("Max"));
    SetIfAbsent(rules, "policies", std::move(policies));
  }
}

// Without a metric of its own, an autoscaler looks at the processors' use.
void DefaultAutoscaler(Value& autoscaler) {
  Value* spec = Member(autoscaler, "spec");
  if (spec == nullptr || !json::GetArray(*spec, {"metrics"}).empty()) return;
  json::Object target({{"type", "Utilization"}, {"averageUtilization", 80}});
  json::Object resource({{"name", "cpu"}, {"target", std::move(target)}});
  json::Object metric({{"type", "Resource"}, {"resource", std::move(resource)}});
  json::Set(*spec, {"metrics"}, json::Array({std::move(metric)}));
}

// A policy is about what comes in, and about what goes out when it says something of that.
void DefaultNetworkPolicy(Value& policy) {
  Value* spec = Member(policy, "spec");
  if (spec == nullptr || !json::GetArray(*spec, {"policyTypes"}).empty()) return;
  json::Array types({"Ingress"});
  if (!json::GetArray(*spec, {"egress"}).empty()) types.emplace_back("Egress");
  json::Set(*spec, {"policyTypes"}, std::move(types));
}

void DefaultCrd(Value& crd) {
  Value* names = json::FindMutable(crd, {"spec", "names"});
  if (names == nullptr) return;
  std::string kind(Text(*names, "kind"));
  if (kind.empty()) return;
  SetIfAbsent(*names, "singular", Value(ToLower(kind)));
  SetIfAbsent(*names, "listKind", Value(kind + "List"));
}

// One device, unless all are wanted or a number is said.
void DefaultCount(Value& wanted) {
  if (Text(wanted, "allocationMode") != "ExactCount") return;
  if (json::GetInt(wanted, {"count"}) == 0) json::Set(wanted, {"count"}, Value(1));
}

// `parent` has the devices that a claim asks for.
void DefaultClaim(Value& parent) {
  Value* devices = Member(parent, "devices");
  json::Array* requests = devices ? List(*devices, "requests") : nullptr;
  if (requests == nullptr) return;
  for (Value& request : *requests) {
    if (Value* exactly = Member(request, "exactly")) DefaultCount(*exactly);
    json::Array* choices = List(request, "firstAvailable");
    if (choices == nullptr) continue;
    for (Value& choice : *choices) DefaultCount(choice);
  }
}

}  // namespace

void DefaultObject(const KindInfo& info, Value& object) {
  if (info.custom || !object.is_object()) return;
  const std::string& kind = info.gvk.kind;
  // Before its empty lists are gone: no policies are another thing than none written.
  if (kind == "HorizontalPodAutoscaler") DefaultScalingBehavior(object);
  if (info.schema) DropNulls(*info.schema, object, 0);
  if (kind == "Pod") {
    DefaultPod(object);
  } else if (kind == "Job") {
    DefaultJob(object);
  } else if (kind == "CronJob") {
    if (Value* spec = json::FindMutable(object, {"spec", "jobTemplate", "spec"})) {
      DefaultTemplate(*spec);
    }
  } else if (kind == "PodTemplate") {
    DefaultTemplate(object);
  } else if (kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet" ||
             kind == "DaemonSet" || kind == "ReplicationController") {
    DefaultWorkload(kind, object);
  } else if (kind == "Service") {
    DefaultService(object);
  } else if (kind == "Secret") {
    DefaultSecret(object);
  } else if (kind == "RoleBinding" || kind == "ClusterRoleBinding") {
    DefaultRoleBinding(object);
  } else if (kind == "LimitRange") {
    DefaultLimitRange(object);
  } else if (kind == "HorizontalPodAutoscaler") {
    DefaultAutoscaler(object);
  } else if (kind == "NetworkPolicy") {
    DefaultNetworkPolicy(object);
  } else if (kind == "CustomResourceDefinition") {
    DefaultCrd(object);
  } else if (kind == "ResourceClaim") {
    if (Value* spec = Member(object, "spec")) DefaultClaim(*spec);
  } else if (kind == "ResourceClaimTemplate") {
    if (Value* spec = json::FindMutable(object, {"spec", "spec"})) DefaultClaim(*spec);
  } else if (kind == "Namespace") {
    if (std::string name(Name(object)); !name.empty()) {
      json::Set(object, {"metadata", "labels", "kubernetes.io/metadata.name"}, Value(name));
    }
  } else if (kind == "Node") {
    json::Object& node = object.get_object();
    if (!node.contains("spec")) node["spec"] = json::Object();
    if (std::string range(Text(node["spec"], "podCIDR")); !range.empty()) {
      SetIfAbsent(node["spec"], "podCIDRs", json::Array({Value(range)}));
    }
    const json::Object capacity = json::GetObject(object, {"status", "capacity"});
    if (!capacity.empty() && json::Find(object, {"status", "allocatable"}) == nullptr) {
      json::Set(object, {"status", "allocatable"}, capacity);
    }
  }
}

}  // namespace swell::api
