// Rules of the other kinds.
#include <algorithm>
#include <set>

#include "api/meta.h"
#include "api/quantity.h"
#include "api/selector.h"
#include "api/validate_rules.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

const Value* Spec(const Value& object) { return MemberOf(object, "spec"); }

void CheckRestartPolicy(const Value& holder,
                        const std::string& path,
                        FieldErrors& errors,
                        bool job) {
  std::string_view policy = json::GetString(holder, {"template", "spec", "restartPolicy"});
  std::string at = PathField(path, "template.spec.restartPolicy");
  if (job && policy != "OnFailure" && policy != "Never") {
    errors.push_back(policy.empty() ? RequiredError(at, "valid values: \"OnFailure\", \"Never\"")
                                    : NotSupportedError(at, policy, {"OnFailure", "Never"}));
  } else if (!job && !policy.empty() && policy != "Always") {
    errors.push_back(NotSupportedError(at, policy, {"Always"}));
  }
}

void CheckJobSpec(const Value& spec, const std::string& path, FieldErrors& errors) {
  for (std::string_view key :
       {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    CheckNonNegative(spec, key, path, errors);
  }
  bool indexed = TextOf(spec, "completionMode") == "Indexed";
  if (indexed && MemberOf(spec, "completions") == nullptr) {
    errors.push_back(
        RequiredError(PathField(path, "completions"), "when completion mode is Indexed"));
  }
  if (MemberOf(spec, "backoffLimitPerIndex") && !indexed) {
    errors.push_back(InvalidError(PathField(path, "backoffLimitPerIndex"),
                                  *MemberOf(spec, "backoffLimitPerIndex"),
                                  "requires indexed completion mode"));
  }
  if (const Value* selector = MemberOf(spec, "selector")) {
    CheckLabelSelector(*selector, PathField(path, "selector"), errors);
  }
  CheckPodTemplate(spec, path, errors);
  CheckRestartPolicy(spec, path, errors, true);
}

void CheckJob(const Value& job, const Value* old, FieldErrors& errors) {
  const Value* spec = Spec(job);
  if (spec == nullptr) return;
  if (old == nullptr) {
    CheckJobSpec(*spec, "spec", errors);
    return;
  }
  const Value* before = Spec(*old);
  if (before == nullptr) return;
  bool suspended =
      json::GetBool(*before, {"suspend"}) && json::Find(*old, {"status", "startTime"}) == nullptr;
  for (std::string_view key :
       {"selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"}) {
    CheckImmutable(MemberOf(*spec, key), MemberOf(*before, key), PathField("spec", key), errors);
  }
  bool elastic = TextOf(*spec, "completionMode") == "Indexed" &&
                 json::GetInt(*spec, {"completions"}) == json::GetInt(*spec, {"parallelism"});
  if (!elastic) {
    CheckImmutable(MemberOf(*spec, "completions"), MemberOf(*before, "completions"),
                   "spec.completions", errors);
  }
  if (!suspended) {
    CheckImmutable(MemberOf(*spec, "template"), MemberOf(*before, "template"), "spec.template",
                   errors);
  }
  CheckNonNegative(*spec, "parallelism", "spec", errors);
}

// Whether a field of a schedule is made of the characters that cron knows.
bool CronField(std::string_view field) {
  for (char c : field) {
    if (!isalnum(static_cast<unsigned char>(c)) && c != '*' && c != '/' && c != ',' && c != '-' &&
        c != '?') {
      return false;
    }
  }
  return !field.empty();
}

void CheckCronJob(const Value& cron, FieldErrors& errors) {
  const Value* spec = Spec(cron);
  if (spec == nullptr) return;
  std::string_view schedule = TextOf(*spec, "schedule");
  if (schedule.empty()) {
    errors.push_back(RequiredError("spec.schedule"));
  } else if (!schedule.starts_with('@')) {
    size_t fields = 0;
    bool fine = true;
    for (std::string_view field : Split(schedule, ' ')) {
      if (field.empty()) continue;
      ++fields;
      fine = fine && CronField(field);
    }
    if (!fine || fields != 5) {
      errors.push_back(
          InvalidText("spec.schedule", schedule,
                      StrCat("expected exactly 5 fields, found ", fields, ": [", schedule, "]")));
    }
  }
  for (std::string_view key :
       {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    CheckNonNegative(*spec, key, "spec", errors);
  }
  if (const Value* job = json::Find(*spec, {"jobTemplate", "spec"}); job && job->is_object()) {
    CheckJobSpec(*job, "spec.jobTemplate.spec", errors);
  }
}

void CheckSelectorMatches(const Value& spec, FieldErrors& errors) {
  const Value* selector = MemberOf(spec, "selector");
  if (selector == nullptr) return;  // the schema says that it is required
  CheckLabelSelector(*selector, "spec.selector", errors);
  if (json::GetObject(*selector, {"matchLabels"}).empty() &&
      json::GetArray(*selector, {"matchExpressions"}).empty()) {
    errors.push_back(
        InvalidError("spec.selector", *selector, "empty selector is invalid for deployment"));
    return;
  }
  Result<LabelSelector> parsed = LabelSelector::FromJson(selector);
  const json::Object& labels = json::GetObject(spec, {"template", "metadata", "labels"});
  if (parsed.ok() && !parsed->Matches(Value(labels))) {
    errors.push_back({"FieldValueInvalid", "spec.template.metadata.labels",
                      StrCat("Invalid value: ", ShowLabels(Value(labels)),
                             ": `selector` does not match template `labels`")});
  }
}

void CheckStatefulSetUpdate(Value spec, Value before, FieldErrors& errors) {
  for (const char* field : {"replicas", "ordinals", "template", "updateStrategy",
                            "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}) {
    json::Remove(spec, {field});
    json::Remove(before, {field});
  }
  if (json::Equal(spec, before)) return;
  errors.push_back(ForbiddenError(
      "spec",
      "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
      "'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
      "forbidden"));
}

// A StatefulSet's pods get a volume of each claim template: mounts may name it.
Value WithClaimVolumes(const Value& spec) {
  const json::Array& claims = json::GetArray(spec, {"volumeClaimTemplates"});
  Value with = spec;
  if (claims.empty()) return with;
  json::Array volumes = json::GetArray(spec, {"template", "spec", "volumes"});
  for (const Value& claim : claims) {
    const std::string_view name = json::GetString(claim, {"metadata", "name"});
    // One of the template's own by that name is replaced.
    const bool known = std::any_of(volumes.begin(), volumes.end(), [name](const Value& volume) {
      return TextOf(volume, "name") == name;
    });
    if (known) continue;
    volumes.push_back(json::Object{{"name", name}, {"emptyDir", json::Object()}});
  }
  json::Set(with, {"template", "spec", "volumes"}, std::move(volumes));
  return with;
}

void CheckReplicated(const KindInfo& kind,
                     const Value& object,
                     const Value* old,
                     FieldErrors& errors) {
  const Value* spec = Spec(object);
  if (spec == nullptr) return;
  for (std::string_view key : {"replicas", "minReadySeconds", "revisionHistoryLimit"}) {
    CheckNonNegative(*spec, key, "spec", errors);
  }
  const std::string& k = kind.gvk.kind;
  if (k == "ReplicationController") {
    const json::Object& selector = json::GetObject(*spec, {"selector"});
    if (selector.empty()) errors.push_back(RequiredError("spec.selector"));
  } else {
    CheckSelectorMatches(*spec, errors);
  }
  if (k == "Deployment") {
    const Value* strategy = MemberOf(*spec, "strategy");
    if (strategy && TextOf(*strategy, "type") == "Recreate" &&
        MemberOf(*strategy, "rollingUpdate")) {
      errors.push_back(ForbiddenError("spec.strategy.rollingUpdate",
                                      "may not be specified when strategy `type` is 'Recreate'"));
    }
  }
  if (old == nullptr ||
      !json::Equal(json::Find(*old, {"spec", "template"}) != nullptr
                       ? *json::Find(*old, {"spec", "template"})
                       : Value(),
                   MemberOf(*spec, "template") ? *MemberOf(*spec, "template") : Value())) {
    CheckPodTemplate(WithClaimVolumes(*spec), "spec", errors);
    CheckRestartPolicy(*spec, "spec", errors, false);
  }
  if (old == nullptr || k == "ReplicationController") return;
  const Value* before = Spec(*old);
  if (before == nullptr) return;
  if (k == "StatefulSet") {
    CheckStatefulSetUpdate(*spec, *before, errors);
    return;
  }
  const Value* selector = MemberOf(*spec, "selector");
  const Value* had = MemberOf(*before, "selector");
  if (selector != nullptr && had != nullptr && !json::Equal(*selector, *had)) {
    errors.push_back({"FieldValueInvalid", "spec.selector",
                      StrCat("Invalid value: ", ShowSelector(*selector), ": field is immutable")});
  }
}

}  // namespace

void CheckWorkload(const KindInfo& kind,
                   const Value& object,
                   const Value* old,
                   FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "Job") {
    CheckJob(object, old, errors);
  } else if (k == "CronJob") {
    CheckCronJob(object, errors);
  } else if (k == "Deployment" || k == "ReplicaSet" || k == "StatefulSet" || k == "DaemonSet" ||
             k == "ReplicationController") {
    CheckReplicated(kind, object, old, errors);
  } else if (k == "PodTemplate") {
    CheckPodTemplate(object, "", errors);
  }
}

namespace {

void CheckServicePorts(const Value& spec, bool headless, FieldErrors& errors) {
  const json::Array& ports = json::GetArray(spec, {"ports"});
  if (ports.empty() && !headless && TextOf(spec, "type") != "ExternalName") {
    errors.push_back(RequiredError("spec.ports"));
  }
  std::set<std::string> names;
  std::set<std::string> numbers;
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string at = PathIndex("spec.ports", i);
    std::string name(TextOf(ports[i], "name"));
    if (name.empty() && ports.size() > 1) {
      errors.push_back(RequiredError(PathField(at, "name")));
    } else if (!name.empty()) {
      if (std::string why = CheckDnsLabel(name); !why.empty()) {
        errors.push_back(InvalidText(PathField(at, "name"), name, why));
      } else if (!names.insert(name).second) {
        errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
      }
    }
    int64_t port = json::GetInt(ports[i], {"port"});
    if (std::string why = CheckPort(port); MemberOf(ports[i], "port") && !why.empty()) {
      errors.push_back(InvalidError(PathField(at, "port"), Value(port), why));
    }
    const Value* target = MemberOf(ports[i], "targetPort");
    if (target && target->is_int64()) {
      if (std::string why = CheckPort(target->get_int64()); !why.empty()) {
        errors.push_back(InvalidError(PathField(at, "targetPort"), *target, why));
      }
    }
    int64_t node_port = json::GetInt(ports[i], {"nodePort"});
    std::string_view type = TextOf(spec, "type");
    if (node_port != 0 && type != "NodePort" && type != "LoadBalancer") {
      errors.push_back(
          ForbiddenError(PathField(at, "nodePort"), "may not be used when `type` is 'ClusterIP'"));
    }
    std::string key = StrCat(TextOf(ports[i], "protocol"), "/", port);
    if (!numbers.insert(key).second) {
      Value shown = json::Object();
      json::Set(shown, {"port"}, Value(port));
      json::Set(shown, {"protocol"}, Value(TextOf(ports[i], "protocol")));
      errors.push_back(DuplicateError(at, shown));
    }
  }
}

}  // namespace

void CheckService(const Value& service, const Value* old, FieldErrors& errors) {
  const Value* spec = Spec(service);
  if (spec == nullptr) return;
  std::string_view ip = TextOf(*spec, "clusterIP");
  bool headless = ip == "None";
  CheckServicePorts(*spec, headless, errors);
  if (const Value* selector = MemberOf(*spec, "selector")) {
    CheckLabels(*selector, "spec.selector", errors);
  }
  std::string_view type = TextOf(*spec, "type");
  if (type == "ExternalName") {
    std::string_view name = TextOf(*spec, "externalName");
    if (name.empty()) {
      errors.push_back(RequiredError("spec.externalName"));
    } else if (std::string why =
                   CheckDnsSubdomain(name.ends_with('.') ? name.substr(0, name.size() - 1) : name);
               !why.empty()) {
      errors.push_back(InvalidText("spec.externalName", name, why));
    }
    return;
  }
  if (!ip.empty() && !headless) {
    if (std::string why = CheckIp(ip); !why.empty()) {
      errors.push_back(InvalidText("spec.clusterIP", ip, why));
    }
  }
  if (headless && (type == "NodePort" || type == "LoadBalancer")) {
    errors.push_back(InvalidText("spec.clusterIP", ip,
                                 StrCat("may not be set to 'None' for ", type, " services")));
  }
  if (old == nullptr) return;
  std::string_view before = json::GetString(*old, {"spec", "clusterIP"});
  bool same_type = json::GetString(*old, {"spec", "type"}) == type;
  if (!before.empty() && same_type && !ip.empty() && before != ip) {
    errors.push_back(InvalidText("spec.clusterIP", ip, "may not change once set"));
  }
}

namespace {

void CheckAccessModes(const Value& spec, FieldErrors& errors) {
  const json::Array& modes = json::GetArray(spec, {"accessModes"});
  if (modes.empty()) {
    errors.push_back(RequiredError("spec.accessModes", "at least 1 access mode is required"));
  }
  for (size_t i = 0; i < modes.size(); ++i) {
    std::string_view mode =
        modes[i].is_string() ? json::View(modes[i].get_string()) : std::string_view();
    if (mode != "ReadWriteOnce" && mode != "ReadOnlyMany" && mode != "ReadWriteMany" &&
        mode != "ReadWriteOncePod") {
      errors.push_back(NotSupportedError(
          "spec.accessModes", mode,
          {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}));
    }
  }
}

void CheckClaim(const Value& claim, const Value* old, FieldErrors& errors) {
  const Value* spec = Spec(claim);
  if (spec == nullptr) return;
  if (old == nullptr) {
    CheckAccessModes(*spec, errors);
    const Value* storage = json::Find(*spec, {"resources", "requests", "storage"});
    if (storage == nullptr) {
      errors.push_back(RequiredError("spec.resources[storage]"));
    } else if (Result<Quantity> amount = Quantity::FromJson(*storage);
               amount.ok() && (*amount <=> Quantity()) <= 0) {
      errors.push_back(
          InvalidText("spec.resources[storage]", amount->ToString(), "must be greater than zero"));
    }
    return;
  }
  const Value* before = Spec(*old);
  if (before == nullptr) return;
  Value a = *spec;
  Value b = *before;
  // Binding sets the volume once; the request may grow.
  if (json::GetString(*before, {"volumeName"}).empty()) json::Remove(a, {"volumeName"});
  if (json::GetString(*before, {"volumeName"}).empty()) json::Remove(b, {"volumeName"});
  for (std::string_view key : {"resources", "volumeAttributesClassName"}) {
    json::Remove(a, {key});
    json::Remove(b, {key});
  }
  if (!json::Equal(a, b)) {
    errors.push_back(
        ForbiddenError("spec",
                       "spec is immutable after creation except resources.requests and "
                       "volumeAttributesClassName for bound claims"));
  }
  const Value* now_size = json::Find(*spec, {"resources", "requests", "storage"});
  const Value* old_size = json::Find(*before, {"resources", "requests", "storage"});
  if (now_size && old_size) {
    Result<Quantity> now = Quantity::FromJson(*now_size);
    Result<Quantity> was = Quantity::FromJson(*old_size);
    if (now.ok() && was.ok() && (*now <=> *was) < 0) {
      errors.push_back(ForbiddenError("spec.resources.requests.storage",
                                      "field can not be less than previous value"));
    }
  }
}

void CheckVolume(const Value& volume, const Value* old, FieldErrors& errors) {
  const Value* spec = Spec(volume);
  if (spec == nullptr) return;
  CheckAccessModes(*spec, errors);
  const json::Object& capacity = json::GetObject(*spec, {"capacity"});
  if (capacity.empty()) {
    errors.push_back(RequiredError("spec.capacity"));
  } else if (!capacity.contains("storage") || capacity.size() > 1) {
    errors.push_back(NotSupportedError("spec.capacity", capacity.begin()->key(), {"storage"}));
  }
  static constexpr std::string_view kSources[] = {"gcePersistentDisk",
                                                  "awsElasticBlockStore",
                                                  "hostPath",
                                                  "glusterfs",
                                                  "nfs",
                                                  "rbd",
                                                  "iscsi",
                                                  "cinder",
                                                  "cephfs",
                                                  "fc",
                                                  "flocker",
                                                  "flexVolume",
                                                  "azureFile",
                                                  "vsphereVolume",
                                                  "quobyte",
                                                  "azureDisk",
                                                  "photonPersistentDisk",
                                                  "portworxVolume",
                                                  "scaleIO",
                                                  "local",
                                                  "storageos",
                                                  "csi"};
  int sources = 0;
  std::string found;
  for (std::string_view source : kSources) {
    if (MemberOf(*spec, source) == nullptr) continue;
    found = source;
    if (++sources > 1) {
      errors.push_back(
          ForbiddenError(PathField("spec", source), "may not specify more than 1 volume type"));
    }
  }
  if (sources == 0) {
    errors.push_back(RequiredError("spec", "must specify a volume type"));
  } else if (old != nullptr) {
    CheckImmutable(MemberOf(*spec, found), json::Find(*old, {"spec", found}), "spec", errors,
                   "spec.persistentvolumesource is immutable after creation");
  }
}

}  // namespace

void CheckStorage(const KindInfo& kind,
                  const Value& object,
                  const Value* old,
                  FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "PersistentVolumeClaim") {
    CheckClaim(object, old, errors);
  } else if (k == "PersistentVolume") {
    CheckVolume(object, old, errors);
  } else if (k == "StorageClass" && old != nullptr) {
    for (std::string_view key :
         {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
      CheckImmutable(MemberOf(object, key), MemberOf(*old, key), std::string(key), errors,
                     key == "parameters" || key == "provisioner"
                         ? StrCat("updates to ", key, " are forbidden.")
                         : std::string("field is immutable"));
    }
  }
}

namespace {

void CheckDataKeys(const Value& object, FieldErrors& errors) {
  constexpr size_t kMaxBytes = 1 << 20;
  size_t bytes = 0;
  for (std::string_view field : {"data", "binaryData"}) {
    for (const auto& member : json::GetObject(object, {field})) {
      std::string_view key = member.key();
      if (std::string why = CheckConfigMapKey(key); !why.empty()) {
        errors.push_back(InvalidText(PathKey(field, key), key, why));
      }
      if (field == "binaryData" && json::GetObject(object, {"data"}).contains(key)) {
        errors.push_back(InvalidText(PathKey("data", key), key,
                                     "duplicate of key present in "
                                     "binaryData"));
      }
      if (member.value().is_string()) bytes += member.value().get_string().size();
    }
  }
  if (bytes > kMaxBytes) errors.push_back(TooLongError("", kMaxBytes));
}

void CheckImmutableData(const Value& object, const Value& old, FieldErrors& errors) {
  if (!json::GetBool(old, {"immutable"})) return;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!json::GetBool(object, {"immutable"})) {
    errors.push_back(ForbiddenError("immutable", kWhy));
  }
  for (std::string_view key : {"data", "binaryData"}) {
    const Value* a = MemberOf(object, key);
    const Value* b = MemberOf(old, key);
    if (!json::Equal(a ? *a : Value(), b ? *b : Value())) {
      errors.push_back(ForbiddenError(std::string(key), kWhy));
    }
  }
}

// Secret types promise keys.
void CheckSecretType(const Value& secret, FieldErrors& errors) {
  static constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"kubernetes.io/dockercfg", ".dockercfg"},
      {"kubernetes.io/dockerconfigjson", ".dockerconfigjson"},
      {"kubernetes.io/ssh-auth", "ssh-privatekey"},
      {"kubernetes.io/tls", "tls.crt"},
      {"kubernetes.io/tls", "tls.key"},
  };
  std::string_view type = TextOf(secret, "type");
  const json::Object& data = json::GetObject(secret, {"data"});
  for (const auto& [of, key] : kKeys) {
    if (of == type && !data.contains(key)) {
      errors.push_back(RequiredError(PathKey("data", key)));
    }
  }
  if (type == "kubernetes.io/service-account-token" &&
      Annotation(secret, "kubernetes.io/service-account.name").empty()) {
    errors.push_back(RequiredError("metadata.annotations[kubernetes.io/service-account.name]"));
  }
}

void CheckNode(const Value& node, const Value* old, FieldErrors& errors) {
  const Value* spec = Spec(node);
  std::set<std::string> seen;
  const json::Array& taints = json::GetArray(node, {"spec", "taints"});
  for (size_t i = 0; spec != nullptr && i < taints.size(); ++i) {
    std::string at = PathIndex("spec.taints", i);
    std::string_view key = TextOf(taints[i], "key");
    if (std::string why = CheckQualifiedName(key); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "key"), key, why));
    }
    std::string_view value = TextOf(taints[i], "value");
    if (std::string why = CheckLabelValue(value); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "value"), value, why));
    }
    if (!seen.insert(StrCat(key, ":", TextOf(taints[i], "effect"))).second) {
      errors.push_back(DuplicateError(at, taints[i]));
    }
  }
  if (old == nullptr) return;
  std::string_view before = json::GetString(*old, {"spec", "providerID"});
  if (!before.empty() && json::GetString(node, {"spec", "providerID"}) != before) {
    errors.push_back(ForbiddenError(
        "spec.providerID", "node updates may not change providerID except from \"\" to valid"));
  }
}

void CheckQuotaAndLimits(const KindInfo& kind, const Value& object, FieldErrors& errors) {
  if (kind.gvk.kind == "ResourceQuota") {
    for (const auto& member : json::GetObject(object, {"spec", "hard"})) {
      std::string at = PathKey("spec.hard", std::string_view(member.key()));
      if (std::string why = CheckQualifiedName(member.key()); !why.empty()) {
        errors.push_back(InvalidText(at, member.key(), why));
      }
      Result<Quantity> amount = Quantity::FromJson(member.value());
      if (amount.ok() && amount->negative()) {
        errors.push_back(InvalidText(at, amount->ToString(), "must be greater than or equal to 0"));
      }
    }
    return;
  }
  const json::Array& limits = json::GetArray(object, {"spec", "limits"});
  for (size_t i = 0; i < limits.size(); ++i) {
    for (const auto& member : json::GetObject(limits[i], {"min"})) {
      const Value* max = json::Find(limits[i], {"max", std::string_view(member.key())});
      if (max == nullptr) continue;
      Result<Quantity> least = Quantity::FromJson(member.value());
      Result<Quantity> most = Quantity::FromJson(*max);
      if (least.ok() && most.ok() && (*least <=> *most) > 0) {
        errors.push_back(InvalidText(
            PathKey(PathField(PathIndex("spec.limits", i), "min"), std::string_view(member.key())),
            least->ToString(),
            StrCat("min value ", least->ToString(), " is greater than max value ",
                   most->ToString())));
      }
    }
  }
}

}  // namespace

void CheckConfig(const KindInfo& kind, const Value& object, const Value* old, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "ConfigMap" || k == "Secret") {
    CheckDataKeys(object, errors);
    if (old != nullptr) CheckImmutableData(object, *old, errors);
    if (k == "Secret") CheckSecretType(object, errors);
    if (k == "Secret" && old != nullptr) {
      CheckImmutable(MemberOf(object, "type"), MemberOf(*old, "type"), "type", errors);
    }
  } else if (k == "Node") {
    CheckNode(object, old, errors);
  } else if (k == "ResourceQuota" || k == "LimitRange") {
    CheckQuotaAndLimits(kind, object, errors);
  } else if (k == "Lease") {
    const Value* seconds = json::Find(object, {"spec", "leaseDurationSeconds"});
    if (seconds && seconds->is_int64() && seconds->get_int64() <= 0) {
      errors.push_back(
          InvalidError("spec.leaseDurationSeconds", *seconds, "must be greater than 0"));
    }
    const Value* transitions = json::Find(object, {"spec", "leaseTransitions"});
    if (transitions && transitions->is_int64() && transitions->get_int64() < 0) {
      errors.push_back(InvalidError("spec.leaseTransitions", *transitions,
                                    "must be greater than or equal to 0"));
    }
  } else if (k == "Endpoints") {
    const json::Array& subsets = json::GetArray(object, {"subsets"});
    for (size_t i = 0; i < subsets.size(); ++i) {
      for (std::string_view list : {"addresses", "notReadyAddresses"}) {
        const json::Array& addresses = json::GetArray(subsets[i], {list});
        for (size_t j = 0; j < addresses.size(); ++j) {
          std::string_view ip = TextOf(addresses[j], "ip");
          if (std::string why = CheckIp(ip); !why.empty()) {
            std::string at = PathIndex(PathField(PathIndex("subsets", i), list), j);
            errors.push_back(InvalidText(PathField(at, "ip"), ip, why));
          }
        }
      }
    }
  }
}

namespace {

void CheckPriorityClass(const Value& object, const Value* old, FieldErrors& errors) {
  constexpr int64_t kHighestUser = 1000000000;
  int64_t value = json::GetInt(object, {"value"});
  bool system = Name(object).starts_with("system-");
  if (system) {
    bool known = (Name(object) == "system-node-critical" && value == 2000001000) ||
                 (Name(object) == "system-cluster-critical" && value == 2000000000);
    if (!known) {
      errors.push_back(ForbiddenError("metadata.name",
                                      "priority class names with 'system-' prefix are reserved "
                                      "for system use only. error: only the built-in ones may "
                                      "have it"));
    }
  } else if (value > kHighestUser) {
    errors.push_back(ForbiddenError(
        "value", StrCat("maximum allowed value of a user defined priority is ", kHighestUser)));
  }
  if (old == nullptr) return;
  if (json::GetInt(*old, {"value"}) != value) {
    errors.push_back(ForbiddenError("value", "may not be changed in an update."));
  }
  std::string_view policy = TextOf(object, "preemptionPolicy");
  std::string_view before = TextOf(*old, "preemptionPolicy");
  if (!policy.empty() && !before.empty() && policy != before) {
    errors.push_back(InvalidText("preemptionPolicy", policy, "field is immutable"));
  }
}

void CheckBudget(const Value& object, FieldErrors& errors) {
  const Value* spec = Spec(object);
  if (spec == nullptr) return;
  const Value* least = MemberOf(*spec, "minAvailable");
  const Value* most = MemberOf(*spec, "maxUnavailable");
  if (least && most) {
    errors.push_back(
        InvalidError("spec", *spec, "minAvailable and maxUnavailable cannot be both set"));
  }
  for (std::string_view key : {"minAvailable", "maxUnavailable"}) {
    const Value* amount = MemberOf(*spec, key);
    if (amount == nullptr) continue;
    if (amount->is_string()) {
      std::string_view text = json::View(amount->get_string());
      std::optional<uint64_t> percent =
          text.ends_with('%') ? ParseUint(text.substr(0, text.size() - 1)) : std::nullopt;
      if (!percent) {
        errors.push_back(InvalidText(
            PathField("spec", key), text,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
            "'1%',  or '93%', regex used for validation is '[0-9]+%')"));
      } else if (*percent > 100) {
        errors.push_back(
            InvalidText(PathField("spec", key), text, "must not be greater than 100%"));
      }
    } else {
      CheckNonNegative(*spec, key, "spec", errors);
    }
  }
  if (const Value* selector = MemberOf(*spec, "selector")) {
    CheckLabelSelector(*selector, "spec.selector", errors);
  }
}

void CheckRules(const Value& role, bool namespaced, FieldErrors& errors) {
  const json::Array& rules = json::GetArray(role, {"rules"});
  for (size_t i = 0; i < rules.size(); ++i) {
    std::string at = PathIndex("rules", i);
    if (json::GetArray(rules[i], {"verbs"}).empty()) {
      errors.push_back(
          RequiredError(PathField(at, "verbs"), "verbs must contain at least one value"));
    }
    bool urls = !json::GetArray(rules[i], {"nonResourceURLs"}).empty();
    bool resources = !json::GetArray(rules[i], {"resources"}).empty();
    bool groups = !json::GetArray(rules[i], {"apiGroups"}).empty();
    if (urls) {
      if (namespaced) {
        errors.push_back(InvalidError(PathField(at, "nonResourceURLs"),
                                      *json::Find(rules[i], {"nonResourceURLs"}),
                                      "namespaced rules cannot apply to non-resource URLs"));
      }
      if (resources || groups) {
        errors.push_back(InvalidError(
            PathField(at, "nonResourceURLs"), *json::Find(rules[i], {"nonResourceURLs"}),
            "rules cannot apply to both regular resources and non-resource URLs"));
      }
      continue;
    }
    if (!groups) {
      errors.push_back(RequiredError(PathField(at, "apiGroups"),
                                     "resource rules must supply at least one api group"));
    }
    if (!resources) {
      errors.push_back(RequiredError(PathField(at, "resources"),
                                     "resource rules must supply at least one resource"));
    }
  }
}

void CheckBinding(const Value& binding, const Value* old, FieldErrors& errors) {
  const Value* ref = MemberOf(binding, "roleRef");
  if (ref != nullptr) {
    std::string_view group = TextOf(*ref, "apiGroup");
    if (group != "rbac.authorization.k8s.io") {
      errors.push_back(NotSupportedError("roleRef.apiGroup", group, {"rbac.authorization.k8s.io"}));
    }
    std::string_view kind = TextOf(*ref, "kind");
    if (kind != "Role" && kind != "ClusterRole") {
      errors.push_back(NotSupportedError("roleRef.kind", kind, {"Role", "ClusterRole"}));
    }
    if (TextOf(*ref, "name").empty()) errors.push_back(RequiredError("roleRef.name"));
  }
  const json::Array& subjects = json::GetArray(binding, {"subjects"});
  for (size_t i = 0; i < subjects.size(); ++i) {
    std::string at = PathIndex("subjects", i);
    std::string_view kind = TextOf(subjects[i], "kind");
    if (TextOf(subjects[i], "name").empty()) errors.push_back(RequiredError(PathField(at, "name")));
    if (kind == "ServiceAccount") {
      if (TextOf(subjects[i], "namespace").empty()) {
        errors.push_back(RequiredError(PathField(at, "namespace")));
      }
    } else if (kind != "User" && kind != "Group") {
      errors.push_back(
          NotSupportedError(PathField(at, "kind"), kind, {"ServiceAccount", "User", "Group"}));
    }
  }
  if (old != nullptr) {
    CheckImmutable(ref, MemberOf(*old, "roleRef"), "roleRef", errors, "cannot change roleRef");
  }
}

}  // namespace

void CheckPolicy(const KindInfo& kind, const Value& object, const Value* old, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "PriorityClass") {
    CheckPriorityClass(object, old, errors);
  } else if (k == "PodDisruptionBudget") {
    CheckBudget(object, errors);
  } else if (k == "Role" || k == "ClusterRole") {
    CheckRules(object, k == "Role", errors);
  } else if (k == "RoleBinding" || k == "ClusterRoleBinding") {
    CheckBinding(object, old, errors);
  } else if (k == "HorizontalPodAutoscaler") {
    const Value* spec = Spec(object);
    if (spec == nullptr) return;
    const Value* most = MemberOf(*spec, "maxReplicas");
    int64_t max = json::GetInt(*spec, {"maxReplicas"});
    int64_t min = json::GetInt(*spec, {"minReplicas"}, 1);
    if (min < 1) {
      errors.push_back(
          InvalidError("spec.minReplicas", Value(min), "must be greater than or equal to 1"));
    }
    if (most && max < 1) {
      errors.push_back(InvalidError("spec.maxReplicas", *most, "must be greater than 0"));
    } else if (most && max < min) {
      errors.push_back(InvalidError("spec.maxReplicas", *most,
                                    "must be greater than or equal to `minReplicas`"));
    }
  }
}

}  // namespace swell::api
