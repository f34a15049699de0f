#include "kube/images/manifest.h"

#include <sys/utsname.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>

#include "base/strings.h"
#include "kube/images/reference.h"

namespace swell::images {
namespace {

constexpr int64_t kBlobBytesMax = int64_t{1} << 40;
constexpr size_t kWordsMax = 10'000;

Status Bad(std::string_view what) { return Status(Code::kInvalid, std::string(what)); }

Result<Descriptor> ReadDescriptor(const json::Value& value, std::string_view field) {
  Descriptor out;
  out.media_type = json::GetString(value, {"mediaType"});
  out.digest = json::GetString(value, {"digest"});
  out.size = json::GetInt(value, {"size"}, -1);
  out.os = json::GetString(value, {"platform", "os"});
  out.architecture = json::GetString(value, {"platform", "architecture"});
  out.variant = json::GetString(value, {"platform", "variant"});
  const json::Object& notes = json::GetObject(value, {"annotations"});
  for (const char* key : {"io.containerd.image.name", "org.opencontainers.image.ref.name"}) {
    const auto* note = notes.if_contains(key);
    if (out.name.empty() && note != nullptr && note->is_string()) {
      out.name = json::View(note->get_string());
    }
  }
  if (!IsDigest(out.digest)) {
    return Bad(
        StrCat("manifest: ", field, ".digest: ", Quote(out.digest), " is not a sha256 digest"));
  }
  if (out.size < 0 || out.size > kBlobBytesMax) {
    return Bad(StrCat("manifest: ", field, ".size: ", out.size, " is not a possible size"));
  }
  return out;
}

Status ReadList(const json::Value& value,
                std::string_view field,
                size_t max,
                std::vector<Descriptor>& out) {
  const json::Array& list = json::GetArray(value, {field});
  if (list.size() > max) {
    return Bad(StrCat("manifest: ", field, ": ", list.size(), " entries; at most ", max));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    SWELL_ASSIGN_OR_RETURN(Descriptor item, ReadDescriptor(list[i], StrCat(field, "[", i, "]")));
    out.push_back(std::move(item));
  }
  return Status::Ok();
}

Result<std::vector<std::string>> Words(const json::Value& config, std::string_view field) {
  std::vector<std::string> out;
  const json::Value* value = json::Find(config, {"config", field});
  if (value == nullptr || value->is_null()) return out;
  if (!value->is_array()) return Bad(StrCat("config: ", field, ": must be a list of texts"));
  const json::Array& list = value->get_array();
  if (list.size() > kWordsMax) return Bad(StrCat("config: ", field, ": too many entries"));
  for (const json::Value& item : list) {
    if (!item.is_string()) return Bad(StrCat("config: ", field, ": must be a list of texts"));
    std::string word(json::View(item.get_string()));
    if (word.find('\0') != std::string::npos) {
      return Bad(StrCat("config: ", field, ": holds a zero byte"));
    }
    out.push_back(std::move(word));
  }
  return out;
}

}  // namespace

int64_t Manifest::LayerBytes() const {
  int64_t sum = 0;
  for (const Descriptor& layer : layers) sum += layer.size;
  return sum;
}

Result<Manifest> ParseManifest(std::string_view bytes) {
  if (bytes.size() > kManifestBytesMax) return Bad("manifest: it has more than 4 MiB");
  auto parsed = json::Parse(bytes);
  if (!parsed.ok()) return Bad(StrCat("manifest: ", parsed.status().message()));
  const json::Value& value = *parsed;
  if (!value.is_object()) return Bad("manifest: it is not a JSON object");
  if (const int64_t version = json::GetInt(value, {"schemaVersion"}, 2); version != 2) {
    return Bad(StrCat("manifest: schema ", version,
                      " is too old; push the image again with a current tool"));
  }
  Manifest out;
  out.media_type = json::GetString(value, {"mediaType"});
  if (json::Find(value, {"manifests"}) != nullptr) {
    out.is_index = true;
    SWELL_RETURN_IF_ERROR(ReadList(value, "manifests", kPlatformsMax, out.manifests));
    return out;
  }
  const json::Value* config = json::Find(value, {"config"});
  if (config == nullptr) return Bad("manifest: it has neither manifests nor a config");
  SWELL_ASSIGN_OR_RETURN(out.config, ReadDescriptor(*config, "config"));
  if (out.config.size > static_cast<int64_t>(kConfigBytesMax)) {
    return Bad("manifest: config: it has more than 4 MiB");
  }
  SWELL_RETURN_IF_ERROR(ReadList(value, "layers", kLayersMax, out.layers));
  for (const Descriptor& layer : out.layers) {
    if (layer.media_type.empty() || layer.media_type.find("tar") != std::string::npos) continue;
    return Bad(StrCat("manifest: a layer is of the type ", Quote(layer.media_type),
                      ": this is not a container image"));
  }
  return out;
}

Result<ImageConfig> ParseConfig(std::string_view bytes) {
  if (bytes.size() > kConfigBytesMax) return Bad("config: it has more than 4 MiB");
  auto parsed = json::Parse(bytes);
  if (!parsed.ok()) return Bad(StrCat("config: ", parsed.status().message()));
  const json::Value& value = *parsed;
  if (!value.is_object()) return Bad("config: it is not a JSON object");
  ImageConfig out;
  out.os = json::GetString(value, {"os"});
  out.architecture = json::GetString(value, {"architecture"});
  SWELL_ASSIGN_OR_RETURN(out.entrypoint, Words(value, "Entrypoint"));
  SWELL_ASSIGN_OR_RETURN(out.cmd, Words(value, "Cmd"));
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> env, Words(value, "Env"));
  for (const std::string& item : env) {
    const size_t equals = item.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    out.env.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  out.working_dir = json::GetString(value, {"config", "WorkingDir"});
  out.user = json::GetString(value, {"config", "User"});
  out.stop_signal = json::GetString(value, {"config", "StopSignal"});
  for (const auto& volume : json::GetObject(value, {"config", "Volumes"})) {
    const std::string path(volume.key());
    const bool leads_out = StrCat("/", path, "/").find("/../") != std::string::npos;
    if (!path.starts_with('/') || leads_out || out.volumes.size() >= 100) {
      return Bad(StrCat("config: Volumes: ", Quote(path), " is not a path that can be mounted"));
    }
    out.volumes.push_back(path);
  }
  for (const json::Value& id : json::GetArray(value, {"rootfs", "diff_ids"})) {
    const std::string text(id.is_string() ? json::View(id.get_string()) : std::string_view());
    if (!IsDigest(text)) return Bad(StrCat("config: diff_ids: ", Quote(text), " is not a digest"));
    out.diff_ids.push_back(text);
  }
  return out;
}

Status CheckConfig(const Manifest& manifest, const ImageConfig& config) {
  if (config.diff_ids.empty() && !manifest.layers.empty()) {
    return Bad(StrCat("manifest: its config, of the type ", Quote(manifest.config.media_type),
                      ", names no layers: this is not an image of a container"));
  }
  if (config.diff_ids.size() != manifest.layers.size()) {
    return Bad(StrCat("config: it lists ", config.diff_ids.size(),
                      " layers, but the manifest lists ", manifest.layers.size()));
  }
  const std::string own = HostArchitecture();
  const bool other_os = !config.os.empty() && config.os != "linux";
  const bool other_machine = !config.architecture.empty() && config.architecture != own;
  if (other_os || other_machine) {
    return Status(Code::kNotFound, StrCat("the image is for ", config.os, "/", config.architecture,
                                          ", this machine is linux/", own));
  }
  return Status::Ok();
}

std::string HostArchitecture() {
  struct utsname name;
  if (::uname(&name) != 0) return "amd64";
  const std::string machine = name.machine;
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  if (machine == "armv7l") return "arm";
  return machine;  // ppc64le, s390x, riscv64: the same in Go's words
}

Result<Descriptor> ChoosePlatform(const Manifest& index, std::string_view architecture) {
  std::vector<std::string> known;
  for (const Descriptor& item : index.manifests) {
    // Layouts of one platform often do not name it.
    const bool unnamed = item.architecture.empty() && index.manifests.size() == 1;
    if (unnamed || (item.os == "linux" && item.architecture == architecture)) return item;
    if (item.architecture != "unknown") known.push_back(StrCat(item.os, "/", item.architecture));
  }
  return Status(Code::kNotFound,
                StrCat("the image has nothing for linux/", architecture, ", only for ",
                       known.empty() ? "nothing that runs" : Join(known, ", ")));
}

int SignalNumber(std::string_view text) {
  if (auto number = ParseInt(text)) {
    return *number > 0 && *number < NSIG ? static_cast<int>(*number) : 0;
  }
  std::string name = ToUpper(text);
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = ::sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  if (name == "RTMIN") return SIGRTMIN;
  if (name.starts_with("RTMIN+")) {
    auto more = ParseInt(std::string_view(name).substr(6));
    if (more && *more >= 0 && SIGRTMIN + *more <= SIGRTMAX) {
      return SIGRTMIN + static_cast<int>(*more);
    }
  }
  return 0;
}

}  // namespace swell::images
