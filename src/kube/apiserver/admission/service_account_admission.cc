#include "kube/apiserver/admission/service_account_admission.h"

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kVolumePrefix = "kube-api-access-";
constexpr size_t kVolumeSuffix = 5;
// A bit more than an hour, so that what refreshes hourly is in time.
constexpr int64_t kTokenSeconds = 3607;
constexpr int64_t kReadableByAll = 0644;

json::Value TokenVolume(std::string_view name) {
  json::Object token{{"expirationSeconds", kTokenSeconds}, {"path", "token"}};
  json::Object ca{{"name", "kube-root-ca.crt"},
                  {"items", json::Array{json::Object{{"key", "ca.crt"}, {"path", "ca.crt"}}}}};
  json::Object field{{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}};
  json::Object ns{
      {"items", json::Array{json::Object{{"path", "namespace"}, {"fieldRef", std::move(field)}}}}};
  json::Array sources;
  sources.push_back(json::Object{{"serviceAccountToken", std::move(token)}});
  sources.push_back(json::Object{{"configMap", std::move(ca)}});
  sources.push_back(json::Object{{"downwardAPI", std::move(ns)}});
  return json::Object{{"name", name},
                      {"projected", json::Object{{"sources", std::move(sources)},
                                                 {"defaultMode", kReadableByAll}}}};
}

bool HasMountAt(const json::Value& container, std::string_view path) {
  for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
    if (json::GetString(mount, {"mountPath"}) == path) return true;
  }
  return false;
}

// Whether any container got the mount.
bool MountToken(json::Value& pod, std::string_view volume) {
  bool any = false;
  for (const char* list : {"initContainers", "containers"}) {
    json::Value* containers = json::FindMutable(pod, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (json::Value& container : containers->get_array()) {
      if (!container.is_object() || HasMountAt(container, kTokenPath)) continue;
      json::Array mounts = json::GetArray(container, {"volumeMounts"});
      mounts.push_back(
          json::Object{{"name", volume}, {"readOnly", true}, {"mountPath", kTokenPath}});
      json::Set(container, {"volumeMounts"}, std::move(mounts));
      any = true;
    }
  }
  return any;
}

bool HasVolume(const json::Value& pod, std::string_view name) {
  for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
    if (json::GetString(volume, {"name"}) == name) return true;
  }
  return false;
}

// All pods of an account call it the same: what they have in common is kept once.
std::string VolumeName(const json::Value& pod, std::string_view ns, std::string_view account) {
  Random random(StableHash(account, StableHash(ns)));
  std::string name;
  do {
    name = StrCat(kVolumePrefix, random.NameSuffix(kVolumeSuffix));
  } while (HasVolume(pod, name));
  return name;
}

bool WantsToken(const json::Value& pod, const json::Value& account) {
  const json::Value* own = json::Find(pod, {"spec", "automountServiceAccountToken"});
  if (own != nullptr && own->is_bool()) return own->get_bool();
  return json::GetBool(account, {"automountServiceAccountToken"}, true);
}

}  // namespace

Status AdmitServiceAccount(Admission& admission, json::Value& pod) {
  std::string name(json::GetString(pod, {"spec", "serviceAccountName"}));
  if (name.empty()) name = json::GetString(pod, {"spec", "serviceAccount"}, "default");
  json::Set(pod, {"spec", "serviceAccountName"}, name);
  json::Set(pod, {"spec", "serviceAccount"}, name);
  const auto entry = admission.core.store.Latest({"serviceaccounts", admission.ns, name});
  if (!entry) {
    return ForbiddenError(admission.kind, admission.name,
                          StrCat("error looking up service account ", admission.ns, "/", name,
                                 ": serviceaccount ", Quote(name), " not found"));
  }
  const json::SharedValue account = entry->Parsed();
  const json::Array& pull_secrets = json::GetArray(*account, {"imagePullSecrets"});
  if (!pull_secrets.empty() && json::GetArray(pod, {"spec", "imagePullSecrets"}).empty()) {
    json::Set(pod, {"spec", "imagePullSecrets"}, pull_secrets);
  }
  if (!admission.core.options.token_key || !WantsToken(pod, *account)) return Status::Ok();
  const std::string volume = VolumeName(pod, admission.ns, name);
  if (!MountToken(pod, volume)) return Status::Ok();
  json::Array volumes = json::GetArray(pod, {"spec", "volumes"});
  volumes.push_back(TokenVolume(volume));
  json::Set(pod, {"spec", "volumes"}, std::move(volumes));
  return Status::Ok();
}

}  // namespace swell::apiserver
