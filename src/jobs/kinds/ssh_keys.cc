#include "jobs/kinds/ssh_keys.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/kinds/launch_env.h"
#include "kube/api/meta/meta.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kPrivateKey = "ssh-privatekey";
constexpr std::string_view kPublicKey = "ssh-publickey";
constexpr std::string_view kConfig = "ssh-config";
// As in Kubeflow's operator, whose users may name the volume in their init containers.
constexpr std::string_view kKeysVolume = "ssh-auth";

bool HasMount(const json::Value& container, std::string_view path) {
  const json::Array& mounts = json::GetArray(container, {"volumeMounts"});
  return std::any_of(mounts.begin(), mounts.end(), [path](const json::Value& mount) {
    return KeyFolder(json::GetString(mount, {"mountPath"})) == path;
  });
}

// The files are root's, and root's SSH refuses a key that others may read.
bool IsReadByRoot(const json::Value& pod, std::string_view path) {
  constexpr int64_t kImagesUser = -1;
  int64_t user = json::GetInt(pod, {"spec", "securityContext", "runAsUser"}, kImagesUser);
  const json::Array& containers = json::GetArray(pod, {"spec", "containers"});
  if (!containers.empty()) {
    user = json::GetInt(containers[0], {"securityContext", "runAsUser"}, user);
  }
  return user == 0 || (user == kImagesUser && path == kRootKeys);
}

json::Value KeyVolume(const json::Value& job, const KeyPlace& place, bool by_root) {
  const std::string folder = place.in_volume.empty() ? "" : place.in_volume + "/";
  json::Array items{json::Object{{"key", kPrivateKey}, {"path", folder + "id_rsa"}},
                    json::Object{{"key", kPublicKey}, {"path", folder + "id_rsa.pub"}},
                    json::Object{{"key", kPublicKey}, {"path", folder + "authorized_keys"}}};
  if (place.with_config) {
    items.push_back(json::Object{{"key", kConfig}, {"path", folder + "config"}});
  }
  json::Object source{{"secretName", SshSecretName(job)}, {"items", std::move(items)}};
  // Another user is not the files' owner, and could not read them.
  if (by_root) source["defaultMode"] = 0600;
  return json::Object{{"name", kKeysVolume}, {"secret", std::move(source)}};
}

}  // namespace

// With the job's uid, so that nobody else's is found under it: the controller reads no Secrets.
std::string SshSecretName(const json::Value& job) {
  return StrCat(api::Name(job), "-ssh-", api::Uid(job).substr(0, 8));
}

// Kept as it is made: processes of a running job have it.
json::Value SshSecret(const json::Value& job, const SshKeyPair& key, std::string_view config) {
  json::Object data{{kPrivateKey, Base64Encode(key.private_pem)},
                    {kPublicKey, Base64Encode(key.public_line)}};
  if (!config.empty()) data[kConfig] = Base64Encode(config);
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"metadata", json::Object{{"name", SshSecretName(job)}}},
                      {"type", "kubernetes.io/ssh-auth"},
                      {"immutable", true},
                      {"data", std::move(data)}};
}

std::string_view KeyFolder(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

void MountKeys(const json::Value& job,
               const KeyPlace& place,
               const std::function<bool(const json::Value& container)>& takes,
               json::Value& pod) {
  const bool by_root = IsReadByRoot(pod, place.path);
  json::Value& spec = *json::FindMutable(pod, {"spec"});
  for (const json::Value& volume : json::GetArray(spec, {"volumes"})) {
    if (json::GetString(volume, {"name"}) == kKeysVolume) return;
  }
  ArrayIn(spec, "volumes").push_back(KeyVolume(job, place, by_root));
  for (json::Value& one : ArrayIn(spec, "containers")) {
    if (!takes(one) || HasMount(one, place.path)) continue;
    json::Object mount{{"name", kKeysVolume}, {"mountPath", place.path}, {"readOnly", true}};
    if (!place.in_volume.empty()) mount["subPath"] = place.in_volume;
    ArrayIn(one, "volumeMounts").push_back(std::move(mount));
  }
}

}  // namespace swell::jobs
