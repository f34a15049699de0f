// Rules of volumes, their claims and classes.
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

void CheckAccessModes(const Value& spec, const std::string& at, FieldErrors& errors) {
  bool alone = false;  // for one pod
  bool others = false;
  for (const Value& item : json::GetArray(spec, {"accessModes"})) {
    const std::string_view mode = TextIn(item);
    (mode == "ReadWriteOncePod" ? alone : others) = true;
    if (mode == "ReadWriteOnce" || mode == "ReadOnlyMany" || mode == "ReadWriteMany" ||
        mode == "ReadWriteOncePod") {
      continue;
    }
    errors.push_back(NotSupportedError(PathField(at, "accessModes"), mode,
                                       {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"}));
  }
  if (alone && others) {
    errors.push_back(ForbiddenError(PathField(at, "accessModes"),
                                    "may not use ReadWriteOncePod with other access modes"));
  }
}

void CheckPositive(const Value& amount, const std::string& at, FieldErrors& errors) {
  Result<Quantity> parsed = Quantity::FromJson(amount);
  if (parsed.ok() && *parsed <= Quantity()) {
    errors.push_back(InvalidText(at, parsed->ToString(), "must be greater than zero"));
  }
}

}  // namespace

void CheckNewClaim(const Value& spec, const std::string& at, FieldErrors& errors) {
  if (json::GetArray(spec, {"accessModes"}).empty()) {
    errors.push_back(
        RequiredError(PathField(at, "accessModes"), "at least 1 access mode is required"));
  }
  if (const Value* selector = MemberOf(spec, "selector")) {
    CheckLabelSelector(*selector, PathField(at, "selector"), errors);
  }
  CheckAccessModes(spec, at, errors);
  const std::string size_at = PathField(at, "resources[storage]");
  if (const Value* storage = json::Find(spec, {"resources", "requests", "storage"})) {
    CheckPositive(*storage, size_at, errors);
  } else {
    errors.push_back(RequiredError(size_at));
  }
  CheckSubdomain(spec, "storageClassName", at, errors);
  CheckOneOf(spec, "volumeMode", at, {"Block", "Filesystem"}, errors);
}

namespace {

void CheckClaim(const Value& claim, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(claim);
  if (old == nullptr) {
    CheckNewClaim(spec, "spec", errors);
    return;
  }
  const Value& before = SpecOf(*old);
  Value a = spec;
  Value b = before;
  // Binding sets the volume once; what is bound may grow.
  if (json::GetString(before, {"volumeName"}).empty()) json::Remove(a, {"volumeName"});
  if (json::GetString(before, {"volumeName"}).empty()) json::Remove(b, {"volumeName"});
  json::Remove(a, {"volumeAttributesClassName"});
  json::Remove(b, {"volumeAttributesClassName"});
  if (StatusPhase(*old) == "Bound") {
    json::Remove(a, {"resources", "requests", "storage"});
    json::Remove(b, {"resources", "requests", "storage"});
  }
  // A claim that named no class may get the default one, as long as it is bound to nothing.
  if (MemberOf(before, "storageClassName") == nullptr && TextOf(before, "volumeName").empty()) {
    json::Remove(a, {"storageClassName"});
  }
  if (!json::Equal(a, b)) {
    errors.push_back(
        ForbiddenError("spec",
                       "spec is immutable after creation except resources.requests for bound "
                       "claims"));
    return;
  }
  const Value* now_size = json::Find(spec, {"resources", "requests", "storage"});
  const Value* old_size = json::Find(before, {"resources", "requests", "storage"});
  if (now_size == nullptr || old_size == nullptr) return;
  Result<Quantity> now = Quantity::FromJson(*now_size);
  Result<Quantity> was = Quantity::FromJson(*old_size);
  if (now.ok() && was.ok() && *now < *was) {
    errors.push_back(ForbiddenError("spec.resources.requests.storage",
                                    "field can not be less than previous value"));
  }
}

constexpr std::string_view kSources[] = {"hostPath",
                                         "gcePersistentDisk",
                                         "awsElasticBlockStore",
                                         "glusterfs",
                                         "flocker",
                                         "nfs",
                                         "rbd",
                                         "quobyte",
                                         "cephfs",
                                         "iscsi",
                                         "cinder",
                                         "fc",
                                         "flexVolume",
                                         "azureFile",
                                         "vsphereVolume",
                                         "photonPersistentDisk",
                                         "portworxVolume",
                                         "azureDisk",
                                         "scaleIO",
                                         "local",
                                         "storageos",
                                         "csi"};

// What only a volume of its own has to say, beside what one in a pod has.
void CheckSourceFields(std::string_view source, const Value& volume, FieldErrors& errors) {
  const std::string at = PathField("spec", source);
  CheckVolumeFields(source, volume, "spec", errors);
  const std::string_view path = TextOf(volume, "path");
  if (source == "local") {
    if (path.empty()) errors.push_back(RequiredError(PathField(at, "path")));
    if (GoesUp(path)) {
      errors.push_back(InvalidText(PathField(at, "path"), path, "must not contain '..'"));
    }
  } else if (source == "csi" && TextOf(volume, "volumeHandle").empty()) {
    errors.push_back(RequiredError(PathField(at, "volumeHandle")));
  }
}

void CheckCapacity(const Value& spec, FieldErrors& errors) {
  const json::Object& capacity = json::GetObject(spec, {"capacity"});
  if (capacity.empty()) {
    errors.push_back(RequiredError("spec.capacity"));
    errors.push_back({"FieldValueNotSupported", "spec.capacity",
                      "Unsupported value: core.ResourceList(nil): supported values: \"storage\""});
  } else if (!capacity.contains("storage") || capacity.size() > 1) {
    std::vector<std::string> shown;
    for (const auto& amount : capacity) {
      shown.push_back(
          StrCat(Quote(std::string_view(amount.key())), ":", ShowQuantity(amount.value())));
    }
    errors.push_back({"FieldValueNotSupported", "spec.capacity",
                      StrCat("Unsupported value: core.ResourceList{", Join(shown, ", "),
                             "}: supported values: \"storage\"")});
  }
  for (const auto& amount : capacity) {
    Result<Quantity> size = Quantity::FromJson(amount.value());
    if (size.ok() && size->negative()) {
      errors.push_back(InvalidError(PathKey("spec.capacity", std::string_view(amount.key())),
                                    Value(size->Value()), "must be a valid resource quantity"));
    }
    CheckPositive(amount.value(), PathKey("spec.capacity", std::string_view(amount.key())), errors);
  }
}

// Answers the source that the volume has; of several, the first.
std::string_view CheckVolumeSource(const Value& spec, FieldErrors& errors) {
  std::string_view found;
  for (std::string_view source : kSources) {
    const Value* volume = MemberOf(spec, source);
    if (volume == nullptr) continue;
    if (found.empty()) {
      found = source;
      CheckSourceFields(source, *volume, errors);
    } else {
      errors.push_back(
          ForbiddenError(PathField("spec", source), "may not specify more than 1 volume type"));
    }
  }
  if (found.empty()) errors.push_back(RequiredError("spec", "must specify a volume type"));
  if (found == "local" && json::Find(spec, {"nodeAffinity", "required"}) == nullptr) {
    errors.push_back(RequiredError("spec.nodeAffinity", "Local volume requires node affinity"));
  }
  return found;
}

void CheckVolumeNodes(const Value& spec, FieldErrors& errors) {
  const Value* affinity = MemberOf(spec, "nodeAffinity");
  if (affinity == nullptr) return;
  const Value* required = MemberOf(*affinity, "required");
  if (required == nullptr) {
    errors.push_back(
        RequiredError("spec.nodeAffinity.required", "must specify required node constraints"));
  } else {
    CheckNodeSelectorTerms(*required, "spec.nodeAffinity.required", errors);
  }
}

void CheckVolume(const Value& volume, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(volume);
  if (json::GetArray(spec, {"accessModes"}).empty()) {
    errors.push_back(RequiredError("spec.accessModes"));
  }
  CheckAccessModes(spec, "spec", errors);
  CheckCapacity(spec, errors);
  CheckOneOf(spec, "persistentVolumeReclaimPolicy", "spec", {"Delete", "Recycle", "Retain"},
             errors);
  CheckVolumeNodes(spec, errors);
  const std::string_view source = CheckVolumeSource(spec, errors);
  if (json::GetString(spec, {"hostPath", "path"}) == "/" &&
      TextOf(spec, "persistentVolumeReclaimPolicy") == "Recycle") {
    errors.push_back(ForbiddenError("spec.persistentVolumeReclaimPolicy",
                                    "may not be 'recycle' for a hostPath mount of '/'"));
  }
  CheckSubdomain(spec, "storageClassName", "spec", errors);
  CheckOneOf(spec, "volumeMode", "spec", {"Block", "Filesystem"}, errors);
  if (old == nullptr || source.empty()) return;
  const Value* now = MemberOf(spec, source);
  const Value* before = json::Find(*old, {"spec", source});
  if (before == nullptr || !json::Equal(*now, *before)) {
    errors.push_back(ForbiddenError("spec.persistentvolumesource",
                                    "spec.persistentvolumesource is immutable after creation"));
  }
}

void CheckTopologies(const Value& object, FieldErrors& errors) {
  for (const auto& [topology, at] : ItemsOf(object, "allowedTopologies", "")) {
    for (const auto& [term, term_at] : ItemsOf(topology, "matchLabelExpressions", at)) {
      const json::Array& values = json::GetArray(term, {"values"});
      if (values.empty()) errors.push_back(RequiredError(PathField(term_at, "values")));
      std::set<std::string_view> seen;
      for (const auto& [one, item_at] : ItemsOf(values, PathField(term_at, "values"))) {
        if (seen.insert(TextIn(one)).second) continue;
        errors.push_back(DuplicateError(item_at, one));
      }
      const std::string_view key = TextOf(term, "key");
      CheckQualified(key, PathField(term_at, "key"), errors);
    }
  }
}

void CheckClass(const Value& object, const Value* old, FieldErrors& errors) {
  const std::string_view provisioner = TextOf(object, "provisioner");
  if (provisioner.empty()) {
    errors.push_back(RequiredError("provisioner"));
  } else {
    CheckQualified(provisioner, "provisioner", errors, true);
  }
  for (const auto& parameter : json::GetObject(object, {"parameters"})) {
    if (!parameter.key().empty()) continue;
    errors.push_back(InvalidText("parameters", "", "field can not be empty."));
  }
  CheckOneOf(object, "reclaimPolicy", "", {"Delete", "Retain"}, errors);
  CheckOneOf(object, "volumeBindingMode", "", {"Immediate", "WaitForFirstConsumer"}, errors);
  CheckTopologies(object, errors);
  if (old == nullptr) return;
  for (std::string_view key : {"parameters", "provisioner", "reclaimPolicy"}) {
    const Value* now = MemberOf(object, key);
    const Value* before = MemberOf(*old, key);
    if (json::Equal(now ? *now : Value(), before ? *before : Value())) continue;
    errors.push_back(
        ForbiddenError(std::string(key), StrCat("updates to ", key, " are forbidden.")));
  }
  CheckImmutable(MemberOf(object, "volumeBindingMode"), MemberOf(*old, "volumeBindingMode"),
                 "volumeBindingMode", errors);
}

void CheckCapacity(const Value& object, const Value* old, FieldErrors& errors) {
  if (const Value* nodes = MemberOf(object, "nodeTopology")) {
    CheckLabelSelector(*nodes, "nodeTopology", errors);
  }
  const std::string_view of = TextOf(object, "storageClassName");
  CheckText(of, CheckDnsSubdomain, "storageClassName", errors);
  for (std::string_view key : {"capacity", "maximumVolumeSize"}) {
    if (const Value* amount = MemberOf(object, key)) {
      CheckQuantity("", *amount, std::string(key), errors);
    }
  }
  if (old == nullptr) return;
  for (std::string_view key : {"nodeTopology", "storageClassName"}) {
    CheckImmutable(MemberOf(object, key), MemberOf(*old, key), std::string(key), errors);
  }
}

void CheckAttributesClass(const Value& object, const Value* old, FieldErrors& errors) {
  const std::string_view driver = TextOf(object, "driverName");
  if (driver.empty()) {
    errors.push_back(RequiredError("driverName"));
  } else {
    CheckQualified(driver, "driverName", errors, true);
  }
  const json::Object& parameters = json::GetObject(object, {"parameters"});
  if (parameters.empty()) {
    errors.push_back(RequiredError("parameters", "must contain at least one key/value pair"));
  }
  for (const auto& parameter : parameters) {
    if (!parameter.key().empty()) continue;
    errors.push_back(InvalidText("parameters", "", "field can not be empty."));
  }
  if (old == nullptr) return;
  for (std::string_view key : {"driverName", "parameters"}) {
    const Value* now = MemberOf(object, key);
    const Value* before = MemberOf(*old, key);
    if (json::Equal(now ? *now : Value(), before ? *before : Value())) continue;
    errors.push_back(
        ForbiddenError(std::string(key), StrCat("updates to ", key, " are forbidden.")));
  }
}

}  // namespace

bool CheckStorage(const KindInfo& kind,
                  const Value& object,
                  const Value* old,
                  FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "PersistentVolumeClaim") {
    CheckClaim(object, old, errors);
  } else if (k == "PersistentVolume") {
    CheckVolume(object, old, errors);
  } else if (k == "StorageClass") {
    CheckClass(object, old, errors);
  } else if (k == "CSIStorageCapacity") {
    CheckCapacity(object, old, errors);
  } else if (k == "VolumeAttributesClass") {
    CheckAttributesClass(object, old, errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
