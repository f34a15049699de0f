// The volumes' half of pod_spec.h: references to fields, and each volume kind's content.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/local_storage.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/node/spec/pod_spec.h"

namespace swell::node {
namespace {

// Bounds all files of a pod, which are in memory while they are written. A manifest may name one
// large object ten thousand times.
constexpr size_t kFileBytesMax = 32 << 20;

// Collects the files of a pod's volumes, one volume after the other.
class VolumeFiles {
 public:
  Status Add(VolumeFile file) {
    bytes_ += file.path.size() + file.bytes.size();
    if (bytes_ > kFileBytesMax) {
      return Status(Code::kInvalid, StrCat("the files of the pod's volumes have more than ",
                                           kFileBytesMax >> 20, " MiB"));
    }
    files_.push_back(std::move(file));
    return Status::Ok();
  }
  // Adds the files of a volume that is complete.
  std::vector<VolumeFile> Take() { return std::exchange(files_, {}); }

 private:
  std::vector<VolumeFile> files_;
  size_t bytes_ = 0;
};

Status CheckRelative(std::string_view path, std::string_view what) {
  if (path.find('\0') != std::string_view::npos) {
    return Status(Code::kInvalid, StrCat(what, ": path ", Quote(path), " has a zero byte"));
  }
  if (path.empty() || path.front() == '/' ||
      StrCat("/", path, "/").find("/../") != std::string::npos) {
    return Status(Code::kInvalid, StrCat(what, ": path ", Quote(path),
                                         " must be relative and stay inside the volume"));
  }
  return Status::Ok();
}

// labels['key'] or annotations['key'] of "metadata.labels['key']"; the key, or nullopt.
std::optional<std::string_view> Subscript(std::string_view path, std::string_view map) {
  if (!path.starts_with(map)) return std::nullopt;
  path.remove_prefix(map.size());
  if (path.size() < 4 || !path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return path.substr(2, path.size() - 4);
}

// key="value" lines, sorted, as downward API files show maps.
std::string FormatMap(const json::Object& map) {
  std::vector<std::string> lines;
  for (const auto& item : map) {
    if (!item.value().is_string()) continue;
    lines.push_back(
        StrCat(std::string_view(item.key()), "=", Quote(json::View(item.value().get_string()))));
  }
  std::sort(lines.begin(), lines.end());
  return Join(lines, "\n");
}

// Files of a config map or secret: all keys, or the listed items.
Status AppendKeys(const json::Value& object,
                  bool secret,
                  const json::Value& source,
                  int default_mode,
                  std::string_view what,
                  VolumeFiles& files) {
  auto decode = [secret](const json::Value& value) {
    std::string text(value.is_string() ? json::View(value.get_string()) : std::string_view());
    return secret ? Base64Decode(text).value_or("") : text;
  };
  auto binary = [](const json::Value& value) {
    return value.is_string() ? Base64Decode(json::View(value.get_string())).value_or("") : "";
  };
  const json::Array& items = json::GetArray(source, {"items"});
  if (items.empty()) {
    for (const auto& item : json::GetObject(object, {"data"})) {
      SWELL_RETURN_IF_ERROR(
          files.Add({std::string(item.key()), decode(item.value()), default_mode}));
    }
    for (const auto& item : json::GetObject(object, {"binaryData"})) {
      SWELL_RETURN_IF_ERROR(
          files.Add({std::string(item.key()), binary(item.value()), default_mode}));
    }
    return Status::Ok();
  }
  for (const json::Value& item : items) {
    std::string_view key = json::GetString(item, {"key"});
    std::string path(json::GetString(item, {"path"}));
    SWELL_RETURN_IF_ERROR(CheckRelative(path, what));
    int mode = static_cast<int>(json::GetInt(item, {"mode"}, default_mode));
    if (const json::Value* value = json::Find(object, {"data", key})) {
      SWELL_RETURN_IF_ERROR(files.Add({std::move(path), decode(*value), mode}));
    } else if (const json::Value* bytes = json::Find(object, {"binaryData", key})) {
      SWELL_RETURN_IF_ERROR(files.Add({std::move(path), binary(*bytes), mode}));
    } else if (!json::GetBool(source, {"optional"})) {
      return Status(Code::kNotFound, StrCat(what, ": references non-existent key: ", key));
    }
  }
  return Status::Ok();
}

Status AppendDownward(const EnvContext& context,
                      const json::Value& source,
                      int default_mode,
                      std::string_view what,
                      VolumeFiles& files) {
  for (const json::Value& item : json::GetArray(source, {"items"})) {
    std::string path(json::GetString(item, {"path"}));
    SWELL_RETURN_IF_ERROR(CheckRelative(path, what));
    int mode = static_cast<int>(json::GetInt(item, {"mode"}, default_mode));
    Result<std::string> value = Status(Code::kInvalid, StrCat(what, ": names no field"));
    if (const json::Value* ref = json::Find(item, {"fieldRef"})) {
      value = FieldRef(context, json::GetString(*ref, {"fieldPath"}));
    } else if (const json::Value* ref = json::Find(item, {"resourceFieldRef"})) {
      value = ResourceFieldRef(context, *ref, nullptr);
    }
    if (!value.ok()) return value.status().WithContext(what);
    SWELL_RETURN_IF_ERROR(files.Add({std::move(path), std::move(*value), mode}));
  }
  return Status::Ok();
}

Status AppendObjectKeys(const PodSources& sources,
                        const json::Value& source,
                        bool secret,
                        std::string_view name,
                        int mode,
                        std::string_view what,
                        VolumeFiles& files) {
  auto object = secret ? sources.Secret(name) : sources.ConfigMap(name);
  if (!object.ok()) {
    return json::GetBool(source, {"optional"}) ? Status::Ok() : object.status().WithContext(what);
  }
  return AppendKeys(**object, secret, source, mode, what, files);
}

Status AppendProjected(const EnvContext& context,
                       const PodSources& sources,
                       const json::Value& projected,
                       std::string_view what,
                       VolumeFiles& files) {
  int mode = static_cast<int>(json::GetInt(projected, {"defaultMode"}, 0644));
  for (const json::Value& source : json::GetArray(projected, {"sources"})) {
    if (const json::Value* map = json::Find(source, {"configMap"})) {
      SWELL_RETURN_IF_ERROR(AppendObjectKeys(sources, *map, false, json::GetString(*map, {"name"}),
                                             mode, what, files));
    } else if (const json::Value* secret = json::Find(source, {"secret"})) {
      SWELL_RETURN_IF_ERROR(AppendObjectKeys(
          sources, *secret, true, json::GetString(*secret, {"name"}), mode, what, files));
    } else if (const json::Value* downward = json::Find(source, {"downwardAPI"})) {
      SWELL_RETURN_IF_ERROR(AppendDownward(context, *downward, mode, what, files));
    } else if (const json::Value* token = json::Find(source, {"serviceAccountToken"})) {
      std::string path(json::GetString(*token, {"path"}));
      SWELL_RETURN_IF_ERROR(CheckRelative(path, what));
      auto answer = sources.Token(json::GetString(*token, {"audience"}));
      if (!answer.ok()) return answer.status().WithContext(what);
      // As the kubelet: for the pod's user alone, or for all of them where there are several.
      const std::optional<int64_t> user = OnlyUser(context.pod);
      const bool several =
          !user && json::Find(context.pod, {"spec", "securityContext", "fsGroup"}) == nullptr &&
          NamesUsers(context.pod);
      SWELL_RETURN_IF_ERROR(
          files.Add({std::move(path), std::string(json::GetString(**answer, {"status", "token"})),
                     several ? 0644 : 0600, user}));
    } else if (source.is_object() && !source.get_object().empty()) {
      const std::string_view kind = source.get_object().begin()->key();
      if (json::GetBool(source, {kind, "optional"})) continue;
      return Status(Code::kInvalid, StrCat(what, ": this node has no ", kind, " to project"));
    }
  }
  return Status::Ok();
}

// A claim may name any volume, so the volume decides whose it is.
Status CheckClaimed(const json::Value& volume, const json::Value& pod, std::string_view claim) {
  const json::Value* by = json::Find(volume, {"spec", "claimRef"});
  if (by == nullptr || !by->is_object()) return Status::Ok();
  const std::string_view ns = json::GetString(*by, {"namespace"});
  const std::string_view name = json::GetString(*by, {"name"});
  if (ns == api::Namespace(pod) && name == claim) return Status::Ok();
  return Status(Code::kInvalid, StrCat("persistentvolumeclaim ", Quote(claim), ": volume ",
                                       Quote(api::Name(volume)), " belongs to another claim"));
}

Status ResolveClaim(const json::Value& pod,
                    const PodSources& sources,
                    const api::MountedClaim& mounted,
                    VolumeSpec& volume) {
  const std::string& claim_name = mounted.name;
  auto claim = sources.Claim(claim_name);
  if (!claim.ok()) {
    if (claim.status().code() != Code::kNotFound) return claim.status();
    return Status(Code::kNotFound,
                  StrCat("persistentvolumeclaim ", Quote(claim_name), " not found"));
  }
  if (mounted.claim_template != nullptr && !api::IsMadeFor(**claim, pod)) {
    return Status(Code::kInvalid, api::NotMadeFor(**claim, pod));
  }
  std::string_view volume_name = json::GetString(**claim, {"spec", "volumeName"});
  if (!volume_name.empty()) {
    auto found = sources.Volume(volume_name);
    if (found.ok()) {
      SWELL_RETURN_IF_ERROR(CheckClaimed(**found, pod, claim_name));
      std::string_view path = json::GetString(**found, {"spec", "hostPath", "path"});
      std::string_view type = json::GetString(**found, {"spec", "hostPath", "type"});
      if (path.empty()) path = json::GetString(**found, {"spec", "local", "path"});
      if (!path.empty()) {
        volume.kind = VolumeSpec::Kind::kHostPath;
        volume.declared = true;
        volume.host_path = path;
        // A volume somebody declared but nobody made yet is made, as provisioners would.
        volume.host_path_type = type.empty() ? "DirectoryOrCreate" : type;
        return Status::Ok();
      }
      if (json::GetString(**found, {"spec", "csi", "driver"}) == api::kLocalStorage) {
        volume.kind = VolumeSpec::Kind::kDurable;
        volume.key = json::GetString(**found, {"spec", "csi", "volumeHandle"});
        return Status::Ok();
      }
      // Any other volume source needs a driver of a real cluster; one directory per volume keeps
      // its promise (data outlives pods and is shared by claims of the same volume).
      volume.kind = VolumeSpec::Kind::kDurable;
      volume.key = StrCat("pv/", volume_name);
      return Status::Ok();
    }
    if (found.status().code() != Code::kNotFound) return found.status();
  }
  volume.kind = VolumeSpec::Kind::kDurable;
  volume.key = StrCat(api::Namespace(pod), "/", claim_name);
  return Status::Ok();
}

// In memory a volume is as large as it says, and no larger than the pod's memory: more would only
// end the pod.
Status ResolveEmptyDir(const json::Value& pod,
                       const json::Value& in,
                       std::string_view what,
                       VolumeSpec& out) {
  const std::string_view medium = json::GetString(in, {"emptyDir", "medium"});
  if (!medium.empty() && medium != "Memory") {
    return Status(Code::kInvalid, StrCat(what, "emptyDir.medium: ", Quote(medium),
                                         ": this node has memory and disk alone"));
  }
  out.kind = medium.empty() ? VolumeSpec::Kind::kEmptyDir : VolumeSpec::Kind::kMemory;
  if (medium.empty()) return Status::Ok();
  out.size_limit_bytes = PodMemoryLimit(pod);
  const json::Value* limit = json::Find(in, {"emptyDir", "sizeLimit"});
  auto quantity = limit != nullptr ? api::Quantity::FromJson(*limit) : api::Quantity();
  const int64_t asked = quantity.ok() ? quantity->Value() : 0;
  if (asked > 0 && (out.size_limit_bytes == 0 || asked < out.size_limit_bytes)) {
    out.size_limit_bytes = asked;
  }
  return Status::Ok();
}

Status ResolveVolume(const json::Value& pod,
                     const PodSources& sources,
                     const EnvContext& context,
                     const json::Value& in,
                     VolumeFiles& files,
                     VolumeSpec& out) {
  std::string what = StrCat("volume ", Quote(out.name), " ");
  if (const json::Value* path = json::Find(in, {"hostPath"})) {
    out.kind = VolumeSpec::Kind::kHostPath;
    out.host_path = json::GetString(*path, {"path"});
    out.host_path_type = json::GetString(*path, {"type"});
    out.of_administrator = api::Annotation(pod, api::keys::kPodSecurity) == "privileged";
    return Status::Ok();
  }
  if (api::MountedClaim claim; api::ReadMountedClaim(pod, in, claim)) {
    return ResolveClaim(pod, sources, claim, out).WithContext(what);
  }
  if (json::Find(in, {"emptyDir"}) != nullptr) {
    return ResolveEmptyDir(pod, in, what, out);
  }
  out.kind = VolumeSpec::Kind::kFiles;
  if (const json::Value* map = json::Find(in, {"configMap"})) {
    int mode = static_cast<int>(json::GetInt(*map, {"defaultMode"}, 0644));
    return AppendObjectKeys(sources, *map, false, json::GetString(*map, {"name"}), mode, what,
                            files);
  }
  if (const json::Value* secret = json::Find(in, {"secret"})) {
    int mode = static_cast<int>(json::GetInt(*secret, {"defaultMode"}, 0400));
    return AppendObjectKeys(sources, *secret, true, json::GetString(*secret, {"secretName"}), mode,
                            what, files);
  }
  if (const json::Value* downward = json::Find(in, {"downwardAPI"})) {
    int mode = static_cast<int>(json::GetInt(*downward, {"defaultMode"}, 0644));
    return AppendDownward(context, *downward, mode, what, files);
  }
  if (const json::Value* projected = json::Find(in, {"projected"})) {
    return AppendProjected(context, sources, *projected, what, files);
  }
  // Kubernetes defaults a volume without a source to an empty directory.
  if (in.is_object() && in.get_object().size() <= 1) {
    out.kind = VolumeSpec::Kind::kEmptyDir;
    return Status::Ok();
  }
  return Status(Code::kInvalid, StrCat(what, ": this node's runtime has no such kind of volume"));
}

// What holds a volume's data, if nodes do not mount it: "nfs", "csi ebs.csi.aws.com". Else empty.
std::string ForeignSource(const json::Value& volume) {
  constexpr std::string_view kDriver = "csi", kOwn[] = {"hostPath", "local"};
  for (std::string_view own : kOwn) {
    if (json::Find(volume, {"spec", own}) != nullptr) return "";
  }
  const std::string_view driver = json::GetString(volume, {"spec", kDriver, "driver"});
  if (driver == api::kLocalStorage) return "";
  if (!driver.empty()) return StrCat(kDriver, " ", driver);
  for (const auto& field : json::GetObject(volume, {"spec"})) {
    const std::string_view name = field.key();
    // The fields that are objects and hold no data.
    const bool source = field.value().is_object() && name != "capacity" && name != "claimRef" &&
                        name != "nodeAffinity";
    if (source) return std::string(name);
  }
  return "";
}

}  // namespace

std::vector<std::string> FindStandIns(const json::Value& pod, const PodSources& sources) {
  std::vector<std::string> found;
  for (const json::Value& in : json::GetArray(pod, {"spec", "volumes"})) {
    api::MountedClaim mounted;
    if (!api::ReadMountedClaim(pod, in, mounted)) continue;
    const auto claim = sources.Claim(mounted.name);
    if (!claim.ok()) continue;
    const std::string_view name = json::GetString(**claim, {"spec", "volumeName"});
    const auto volume = sources.Volume(name);
    const std::string source = volume.ok() ? ForeignSource(**volume) : "";
    if (source.empty()) continue;
    found.push_back(StrCat("claim ", mounted.name, ": this node does not mount ", source,
                           ". A directory of this machine, empty at first, stands in for the "
                           "volume ",
                           name,
                           ". To have its data, mount it on the machine, and make a "
                           "PersistentVolume with that directory as hostPath"));
  }
  return found;
}

Result<std::string> FieldRef(const EnvContext& context, std::string_view path) {
  const json::Value& pod = context.pod;
  if (auto key = Subscript(path, "metadata.labels")) return std::string(api::Label(pod, *key));
  if (auto key = Subscript(path, "metadata.annotations")) {
    return std::string(api::Annotation(pod, *key));
  }
  if (path == "metadata.name") return std::string(api::Name(pod));
  if (path == "metadata.namespace") return std::string(api::Namespace(pod));
  if (path == "metadata.uid") return std::string(api::Uid(pod));
  if (path == "metadata.labels") return FormatMap(json::GetObject(pod, {"metadata", "labels"}));
  if (path == "metadata.annotations") {
    return FormatMap(json::GetObject(pod, {"metadata", "annotations"}));
  }
  if (path == "spec.nodeName") return std::string(api::NodeName(pod));
  if (path == "spec.serviceAccountName") {
    return std::string(json::GetString(pod, {"spec", "serviceAccountName"}, "default"));
  }
  if (path == "status.podIP" || path == "status.podIPs") return context.pod_ip;
  if (path == "status.hostIP" || path == "status.hostIPs") return context.host_ip;
  return Status(Code::kInvalid, StrCat("fieldRef.fieldPath: ", Quote(path), " is not offered"));
}

Result<std::string> ResourceFieldRef(const EnvContext& context,
                                     const json::Value& ref,
                                     const json::Value* container) {
  std::string_view name = json::GetString(ref, {"containerName"});
  if (!name.empty()) container = FindContainer(context.pod, name);
  if (container == nullptr) {
    return Status(Code::kInvalid,
                  StrCat("resourceFieldRef.containerName: no container ", Quote(name)));
  }
  std::string_view path = json::GetString(ref, {"resource"});
  size_t dot = path.find('.');
  std::string_view half = path.substr(0, dot);
  std::string resource(dot == std::string_view::npos ? "" : path.substr(dot + 1));
  if ((half != "limits" && half != "requests") || resource.empty()) {
    return Status(Code::kInvalid, StrCat("resourceFieldRef.resource: ", Quote(path),
                                         " must be limits.NAME or requests.NAME"));
  }
  Amounts amounts = ReadAmounts(json::Find(*container, {"resources", half}));
  auto amount = amounts.find(resource);
  int64_t value = 0;
  if (amount != amounts.end()) {
    value = amount->second;
  } else if (half == "limits") {
    const api::Amounts whole = api::ReadWholePod(api::Spec(context.pod)).limits;
    const auto shared = whole.find(resource);
    auto node = context.allocatable.find(resource);
    if (node != context.allocatable.end()) value = node->second;
    if (shared != whole.end() && !shared->second.zero()) {
      value = resource == "cpu" ? shared->second.MilliValue() : shared->second.Value();
    }
  }
  int64_t divisor = resource == "cpu" ? 1000 : 1;
  if (const json::Value* text = json::Find(ref, {"divisor"})) {
    auto quantity = api::Quantity::FromJson(*text);
    int64_t parsed = 0;
    if (quantity.ok()) parsed = resource == "cpu" ? quantity->MilliValue() : quantity->Value();
    if (parsed > 0) divisor = parsed;
  }
  return std::to_string((value + divisor - 1) / divisor);
}

Result<std::vector<VolumeSpec>> ResolveVolumes(const json::Value& pod,
                                               const PodSources& sources,
                                               const EnvContext& context) {
  std::vector<VolumeSpec> volumes;
  VolumeFiles files;
  for (const json::Value& in : json::GetArray(pod, {"spec", "volumes"})) {
    VolumeSpec out;
    out.name = json::GetString(in, {"name"});
    SWELL_RETURN_IF_ERROR(ResolveVolume(pod, sources, context, in, files, out));
    out.files = files.Take();
    volumes.push_back(std::move(out));
  }
  return volumes;
}

}  // namespace swell::node
