// Volumes: what a pod's or a PersistentVolume's source says of itself, and references to fields.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

void CheckMode(const Value& parent,
               std::string_view key,
               const std::string& path,
               FieldErrors& errors) {
  const Value* mode = MemberOf(parent, key);
  int64_t value = json::GetInt(parent, {key});
  if (mode != nullptr && (value < 0 || value > 0777)) {
    errors.push_back(InvalidError(PathField(path, key), *mode,
                                  "must be a number between 0 and 0777 (octal), both inclusive"));
  }
}

// A path below a volume's root.
void CheckLocalPath(std::string_view target, const std::string& at, FieldErrors& errors) {
  CheckDescendingPath(target, at, errors);
  if (target.starts_with("..") && !target.starts_with("../") && target != "..") {
    errors.push_back(InvalidText(at, target, "must not start with '..'"));
  }
}

// Keys that become files; `taken` are the paths of all sources so far.
void CheckKeys(const Value& source,
               const std::string& path,
               FieldErrors& errors,
               std::set<std::string>* taken = nullptr) {
  for (const auto& [item, at] : ItemsOf(source, "items", path)) {
    std::string target(TextOf(item, "path"));
    if (TextOf(item, "key").empty()) errors.push_back(RequiredError(PathField(at, "key")));
    if (target.empty()) errors.push_back(RequiredError(PathField(at, "path")));
    CheckLocalPath(target, PathField(at, "path"), errors);
    CheckMode(item, "mode", at, errors);
    if (taken == nullptr || target.empty() || taken->insert(target).second) continue;
    errors.push_back(InvalidText(path.substr(0, path.find(".sources[")), TextOf(source, "name"),
                                 "conflicting duplicate paths"));
  }
}

// The list's elements are told without their place, as Kubernetes does.
void CheckDownwardFiles(const Value& source, const std::string& at, FieldErrors& errors) {
  static const std::vector<std::string> kFields = {"metadata.annotations", "metadata.labels",
                                                   "metadata.name", "metadata.namespace",
                                                   "metadata.uid"};
  for (const Value& file : json::GetArray(source, {"items"})) {
    const std::string_view target = TextOf(file, "path");
    if (target.empty()) errors.push_back(RequiredError(PathField(at, "path")));
    CheckLocalPath(target, PathField(at, "path"), errors);
    const Value* field = MemberOf(file, "fieldRef");
    const Value* resource = MemberOf(file, "resourceFieldRef");
    if (field != nullptr) {
      CheckFieldRef(*field, kFields, PathField(at, "fieldRef"), errors);
      if (resource != nullptr) {
        errors.push_back(InvalidText(
            at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
      }
    } else if (resource != nullptr) {
      CheckResourceRef(*resource, true, PathField(at, "resourceFieldRef"), errors);
    } else {
      errors.push_back(RequiredError(at, "one of fieldRef and resourceFieldRef is required"));
    }
    CheckMode(file, "mode", at, errors);
  }
}

void CheckTokenSource(const Value& token,
                      const std::string& at,
                      const std::string& volume_at,
                      FieldErrors& errors) {
  constexpr int64_t kShortest = 600;
  constexpr int64_t kLongest = int64_t{1} << 32;
  const Value* seconds = MemberOf(token, "expirationSeconds");
  const int64_t value = json::GetInt(token, {"expirationSeconds"}, 3600);
  if (value < kShortest) {
    errors.push_back(InvalidError(PathField(at, "expirationSeconds"), *seconds,
                                  "may not specify a duration less than 10 minutes"));
  }
  if (value > kLongest) {
    errors.push_back(InvalidError(PathField(at, "expirationSeconds"), *seconds,
                                  "may not specify a duration larger than 2^32 seconds"));
  }
  const std::string path_at = PathField(volume_at, "path");
  const std::string_view path = TextOf(token, "path");
  if (path.empty()) {
    errors.push_back(RequiredError(path_at));
  } else {
    CheckLocalPath(path, path_at, errors);
  }
}

void CheckPodCertificate(const Value& source,
                         const std::string& at,
                         const std::string& volume_at,
                         std::set<std::string>& taken,
                         FieldErrors& errors) {
  static const std::vector<std::string> kKeyTypes = {"RSA3072",   "RSA4096",   "ECDSAP256",
                                                     "ECDSAP384", "ECDSAP521", "ED25519"};
  const std::string_view signer = TextOf(source, "signerName");
  CheckSignerName(signer, PathField(at, "signerName"), errors);
  if (const Value* notes = MemberOf(source, "userAnnotations")) {
    CheckAnnotations(*notes, PathField(at, "userAnnotations"), errors);
  }
  CheckId(source, "user", at, errors);
  const std::string_view type = TextOf(source, "keyType");
  if (std::find(kKeyTypes.begin(), kKeyTypes.end(), type) == kKeyTypes.end()) {
    errors.push_back(NotSupportedError(PathField(at, "keyType"), type, kKeyTypes));
  }
  if (const Value* seconds = MemberOf(source, "maxExpirationSeconds")) {
    const int64_t most = LongestPodCertificateSeconds(signer);
    const int64_t value = json::GetInt(*seconds, {});
    if (value < kShortestPodCertificateSeconds || value > most) {
      errors.push_back(
          InvalidError(PathField(at, "maxExpirationSeconds"), *seconds,
                       StrCat("if provided, maxExpirationSeconds must be ",
                              value > most ? StrCat("<= ", most)
                                           : StrCat(">= ", kShortestPodCertificateSeconds))));
    }
  }
  bool named = false;
  for (std::string_view key : {"credentialBundlePath", "keyPath", "certificateChainPath"}) {
    const std::string_view path = TextOf(source, key);
    if (path.empty()) continue;
    named = true;
    CheckLocalPath(path, PathField(at, key), errors);
    if (!taken.emplace(path).second) {
      errors.push_back(InvalidText(volume_at, path, "conflicting duplicate paths"));
    }
  }
  if (!named) {
    errors.push_back(RequiredError(
        at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"));
  }
}

void CheckProjected(const Value& volume, const std::string& at, FieldErrors& errors) {
  CheckMode(volume, "defaultMode", at, errors);
  std::set<std::string> taken;
  for (const auto& [one, source_at] : ItemsOf(volume, "sources", at)) {
    int count = 0;
    for (std::string_view key : {"secret", "configMap"}) {
      const Value* source = MemberOf(one, key);
      if (source == nullptr) continue;
      ++count;
      const std::string part_at = PathField(source_at, key);
      if (TextOf(*source, "name").empty()) {
        errors.push_back(RequiredError(PathField(part_at, "name")));
      }
      CheckKeys(*source, part_at, errors, &taken);
    }
    if (const Value* source = MemberOf(one, "downwardAPI")) {
      ++count;
      CheckDownwardFiles(*source, PathField(source_at, "downwardAPI"), errors);
    }
    if (const Value* token = MemberOf(one, "serviceAccountToken")) {
      ++count;
      CheckTokenSource(*token, PathField(source_at, "serviceAccountToken"), at, errors);
    }
    if (const Value* certificate = MemberOf(one, "podCertificate")) {
      ++count;
      CheckPodCertificate(*certificate, PathField(source_at, "podCertificate"), at, taken, errors);
    }
    if (count > 1) {
      errors.push_back(ForbiddenError(source_at, "may not specify more than 1 volume type"));
    }
  }
}

// What a source must say, where there is no more to it.
struct NeededFields {
  std::string_view source;
  std::string_view told;  // the field's name in messages
  std::vector<std::string_view> fields;
};

const std::vector<NeededFields>& NeededOfSources() {
  static const std::vector<NeededFields> kNeeded = {
      {"gitRepo", "gitRepo", {"repository"}},
      {"gcePersistentDisk", "persistentDisk", {"pdName"}},
      {"awsElasticBlockStore", "awsElasticBlockStore", {"volumeID"}},
      {"iscsi", "iscsi", {"targetPortal", "iqn"}},
      {"glusterfs", "glusterfs", {"endpoints", "path"}},
      {"rbd", "rbd", {"monitors", "image"}},
      {"cinder", "cinder", {"volumeID"}},
      {"cephfs", "cephfs", {"monitors"}},
      {"flexVolume", "flexVolume", {"driver"}},
      {"azureFile", "azureFile", {"secretName", "shareName"}},
      {"vsphereVolume", "vsphereVolume", {"volumePath"}},
      {"photonPersistentDisk", "photonPersistentDisk", {"pdID"}},
      {"portworxVolume", "portworxVolume", {"volumeID"}},
      {"azureDisk", "azureDisk", {"diskName", "diskURI"}},
      {"scaleIO", "scaleIO", {"gateway", "system", "volumeName"}},
      {"secret", "secret", {"secretName"}},
      {"configMap", "configMap", {"name"}},
      {"persistentVolumeClaim", "persistentVolumeClaim", {"claimName"}},
      {"ephemeral", "ephemeral", {"volumeClaimTemplate"}},
  };
  return kNeeded;
}

bool IsBlank(const Value* value) {
  return value == nullptr || (value->is_string() && value->get_string().empty()) ||
         (value->is_array() && value->get_array().empty());
}

void CheckHostPath(const Value& host, const std::string& at, FieldErrors& errors) {
  static const std::vector<std::string> kTypes = {
      "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
      "File", "FileOrCreate", "Socket"};
  const std::string_view path = TextOf(host, "path");
  if (path.empty()) {
    errors.push_back(RequiredError(PathField(at, "path")));
  } else if (GoesUp(path)) {
    errors.push_back(InvalidText(PathField(at, "path"), path, "must not contain '..'"));
  }
  CheckOneOf(host, "type", at, kTypes, errors);
}

// In the order in which Kubernetes looks at them, and as it tells that there is one too many.
constexpr std::pair<std::string_view, std::string_view> kPodSources[] = {
    {"emptyDir", "emptyDir"},
    {"hostPath", "hostPath"},
    {"gitRepo", "gitRepo"},
    {"gcePersistentDisk", "gcePersistentDisk"},
    {"awsElasticBlockStore", "awsElasticBlockStore"},
    {"secret", "secret"},
    {"nfs", "nfs"},
    {"iscsi", "iscsi"},
    {"glusterfs", "glusterfs"},
    {"flocker", "flocker"},
    {"persistentVolumeClaim", "persistentVolumeClaim"},
    {"rbd", "rbd"},
    {"cinder", "cinder"},
    {"cephfs", "cephFS"},
    {"quobyte", "quobyte"},
    {"downwardAPI", "downwarAPI"},
    {"fc", "fc"},
    {"flexVolume", "flexVolume"},
    {"configMap", "configMap"},
    {"azureFile", "azureFile"},
    {"vsphereVolume", "vsphereVolume"},
    {"photonPersistentDisk", "photonPersistentDisk"},
    {"portworxVolume", "portworxVolume"},
    {"azureDisk", "azureDisk"},
    {"storageos", "storageos"},
    {"projected", "projected"},
    {"scaleIO", "scaleIO"},
    {"csi", "csi"},
    {"ephemeral", "ephemeral"}};

void CheckPodVolume(const Value& volume, const std::string& at, FieldErrors& errors) {
  int count = 0;
  for (const auto& [source, told] : kPodSources) {
    const Value* fields = MemberOf(volume, source);
    if (fields == nullptr) continue;
    if (++count > 1) {
      errors.push_back(
          ForbiddenError(PathField(at, told), "may not specify more than 1 volume type"));
    } else {
      CheckVolumeFields(source, *fields, at, errors);
    }
  }
}

}  // namespace

bool GoesUp(std::string_view path) {
  for (std::string_view part : Split(path, '/')) {
    if (part == "..") return true;
  }
  return false;
}

void CheckDescendingPath(std::string_view target, const std::string& at, FieldErrors& errors) {
  if (target.starts_with('/')) {
    errors.push_back(InvalidText(at, target, "must be a relative path"));
  }
  if (GoesUp(target)) errors.push_back(InvalidText(at, target, "must not contain '..'"));
}

void CheckDriverName(std::string_view name, const std::string& at, FieldErrors& errors) {
  constexpr size_t kMaxBytes = 63;
  if (name.empty()) errors.push_back(RequiredError(at));
  if (name.size() > kMaxBytes) errors.push_back(TooLongError(at, kMaxBytes));
  if (std::string why = CheckDnsSubdomain(ToLower(name)); !why.empty()) {
    errors.push_back(InvalidText(at, name, why));
  }
}

void CheckVolumeFields(std::string_view source,
                       const Value& fields,
                       const std::string& path,
                       FieldErrors& errors) {
  const std::string at = PathField(path, source);
  for (const NeededFields& needed : NeededOfSources()) {
    if (needed.source != source) continue;
    for (std::string_view key : needed.fields) {
      if (!IsBlank(MemberOf(fields, key))) continue;
      errors.push_back(RequiredError(PathField(PathField(path, needed.told), key)));
    }
  }
  if (source == "secret" || source == "configMap") {
    CheckMode(fields, "defaultMode", at, errors);
    CheckKeys(fields, at, errors);
  } else if (source == "hostPath") {
    CheckHostPath(fields, at, errors);
  } else if (source == "nfs") {
    const std::string_view target = TextOf(fields, "path");
    if (TextOf(fields, "server").empty()) errors.push_back(RequiredError(PathField(at, "server")));
    if (target.empty()) errors.push_back(RequiredError(PathField(at, "path")));
    if (!target.starts_with('/')) {
      errors.push_back(InvalidText(PathField(at, "path"), target, "must be an absolute path"));
    }
  } else if (source == "emptyDir") {
    const Value* limit = MemberOf(fields, "sizeLimit");
    Result<Quantity> size = limit ? Quantity::FromJson(*limit) : Quantity();
    if (size.ok() && size->negative()) {
      errors.push_back(ForbiddenError(PathField(at, "sizeLimit"),
                                      "SizeLimit field must be a valid resource quantity"));
    }
  } else if (source == "downwardAPI") {
    CheckMode(fields, "defaultMode", at, errors);
    CheckDownwardFiles(fields, at, errors);
  } else if (source == "projected") {
    CheckProjected(fields, at, errors);
  } else if (source == "csi") {
    CheckDriverName(TextOf(fields, "driver"), PathField(at, "driver"), errors);
  } else if (const Value* claim = MemberOf(fields, "volumeClaimTemplate");
             source == "ephemeral" && claim != nullptr) {
    CheckNewClaim(SpecOf(*claim), PathField(PathField(at, "volumeClaimTemplate"), "spec"), errors);
  } else if (source == "fc" && IsBlank(MemberOf(fields, "targetWWNs")) &&
             IsBlank(MemberOf(fields, "wwids"))) {
    errors.push_back(RequiredError(PathField(at, "targetWWNs"),
                                   "must specify either targetWWNs or wwids, but not both"));
  }
}

void CheckVolumes(const Value& spec, const std::string& path, FieldErrors& errors) {
  std::set<std::string> names;
  for (const auto& [volume, at] : ItemsOf(spec, "volumes", path)) {
    CheckPodVolume(volume, at, errors);
    CheckItemName(volume, at, names, errors);
  }
}

void CheckFieldRef(const Value& ref,
                   const std::vector<std::string>& known,
                   const std::string& at,
                   FieldErrors& errors) {
  // What can be selected by and is not offered everywhere.
  static const std::vector<std::string> kLabels = {
      "metadata.annotations", "metadata.labels",    "metadata.name",
      "metadata.namespace",   "metadata.uid",       "spec.nodeName",
      "spec.restartPolicy",   "spec.schedulerName", "spec.serviceAccountName",
      "status.hostIP",        "status.hostIPs",     "status.phase",
      "status.podIP",         "status.podIPs"};
  const std::string path_at = PathField(at, "fieldPath");
  const std::string_view field = TextOf(ref, "fieldPath");
  auto has = [field](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), field) != list.end();
  };
  if (field.empty()) {
    errors.push_back(RequiredError(path_at));
    return;
  }
  const size_t bracket = field.find("['");
  if (bracket != std::string_view::npos && field.ends_with("']")) {
    const std::string_view map = field.substr(0, bracket);
    const std::string_view key = field.substr(bracket + 2, field.size() - bracket - 4);
    if (map == "metadata.labels") {
      CheckQualified(key, at, errors);
    } else if (map == "metadata.annotations") {
      CheckQualified(ToLower(key), at, errors);
    } else {
      errors.push_back(InvalidText(at, map, "does not support subscript"));
    }
  } else if (!has(kLabels)) {
    errors.push_back(InvalidText(
        path_at, field, StrCat("error converting fieldPath: field label not supported: ", field)));
  } else if (!has(known)) {
    errors.push_back(NotSupportedError(path_at, field, known));
  }
}

void CheckResourceRef(const Value& ref, bool volume, const std::string& at, FieldErrors& errors) {
  const std::string_view resource = TextOf(ref, "resource");
  if (volume && TextOf(ref, "containerName").empty()) {
    errors.push_back(RequiredError(PathField(at, "containerName")));
  } else if (resource.empty()) {
    errors.push_back(RequiredError(PathField(at, "resource")));
  } else if (!resource.starts_with("limits.hugepages-") &&
             !resource.starts_with("requests.hugepages-")) {
    CheckOneOf(ref, "resource", at,
               {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                "requests.ephemeral-storage", "requests.memory"},
               errors);
  }
  const Value* divisor = MemberOf(ref, "divisor");
  if (divisor == nullptr || TextIn(*divisor) == "0" || TextIn(*divisor) == "1") return;
  const std::string_view of = resource.substr(resource.find('.') + 1);
  static constexpr std::string_view kSizes =
      "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
  if (of == "cpu" && TextIn(*divisor) != "1m") {
    errors.push_back(
        InvalidText(PathField(at, "divisor"), resource,
                    "only divisor's values 1m and 1 are supported with the cpu resource"));
  } else if (of == "memory" || of == "ephemeral-storage") {
    const std::vector<std::string_view> sizes = Split(kSizes, ',');
    if (std::any_of(sizes.begin(), sizes.end(),
                    [&](std::string_view size) { return Trim(size) == TextIn(*divisor); })) {
      return;
    }
    errors.push_back(InvalidText(
        PathField(at, "divisor"), resource,
        StrCat("only divisor's values ", kSizes, " are supported with the ",
               of == "memory" ? "memory resource" : "local ephemeral storage resource")));
  }
}

}  // namespace swell::api
