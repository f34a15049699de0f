#include "kube/node/spec/pod_sources.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod_claims.h"

namespace swell::node {
namespace {

using client::Resource;

struct Wanted {
  std::set<std::string> config_maps, secrets, claims;
  std::map<std::string, int64_t> tokens;  // audience → seconds
};

void AddName(std::set<std::string>& to, std::string_view name) {
  if (!name.empty()) to.emplace(name);
}

void CollectEnv(const json::Value& container, Wanted& wanted) {
  for (const json::Value& env : json::GetArray(container, {"env"})) {
    AddName(wanted.config_maps, json::GetString(env, {"valueFrom", "configMapKeyRef", "name"}));
    AddName(wanted.secrets, json::GetString(env, {"valueFrom", "secretKeyRef", "name"}));
  }
  for (const json::Value& from : json::GetArray(container, {"envFrom"})) {
    AddName(wanted.config_maps, json::GetString(from, {"configMapRef", "name"}));
    AddName(wanted.secrets, json::GetString(from, {"secretRef", "name"}));
  }
}

void CollectVolume(const json::Value& volume, Wanted& wanted) {
  AddName(wanted.config_maps, json::GetString(volume, {"configMap", "name"}));
  AddName(wanted.secrets, json::GetString(volume, {"secret", "secretName"}));
  for (const json::Value& source : json::GetArray(volume, {"projected", "sources"})) {
    AddName(wanted.config_maps, json::GetString(source, {"configMap", "name"}));
    AddName(wanted.secrets, json::GetString(source, {"secret", "name"}));
    if (json::Find(source, {"serviceAccountToken"}) != nullptr) {
      std::string audience(json::GetString(source, {"serviceAccountToken", "audience"}));
      wanted.tokens[audience] =
          json::GetInt(source, {"serviceAccountToken", "expirationSeconds"}, 3600);
    }
  }
}

Wanted Collect(const json::Value& pod) {
  Wanted wanted;
  for (const json::Value& secret : json::GetArray(pod, {"spec", "imagePullSecrets"})) {
    AddName(wanted.secrets, json::GetString(secret, {"name"}));
  }
  for (std::string_view list : {"initContainers", "containers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      CollectEnv(container, wanted);
    }
  }
  for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
    CollectVolume(volume, wanted);
  }
  for (const api::MountedClaim& claim : api::MountedClaims(pod)) wanted.claims.insert(claim.name);
  return wanted;
}

// One fetch under way: counts what is still out and answers when nothing is.
struct Fetch : std::enable_shared_from_this<Fetch> {
  client::Client& client;
  std::string ns;
  std::shared_ptr<PodSources> sources = std::make_shared<PodSources>();
  std::function<void(std::shared_ptr<const PodSources>)> done;
  size_t out = 1;  // the starter's own hold, so that no early answer ends it

  explicit Fetch(client::Client& c) : client(c) {}

  void Release() {
    if (--out == 0) done(std::move(sources));
  }

  void Get(const Resource& resource, const std::string& kind, const std::string& name) {
    ++out;
    std::string where = resource.namespaced ? ns : std::string();
    client.Get(resource, where, name,
               [self = shared_from_this(), kind, name](Result<json::SharedValue> got) {
                 if (kind == "claim" && got.ok()) {
                   std::string volume(json::GetString(**got, {"spec", "volumeName"}));
                   if (!volume.empty()) {
                     self->Get(client::resources::kPersistentVolumes, "volume", volume);
                   }
                 }
                 self->sources->Put(kind, name, std::move(got));
                 self->Release();
               });
  }

  void GetToken(const std::string& account,
                const std::string& audience,
                int64_t seconds,
                const json::Value& pod) {
    ++out;
    json::Object spec{{"expirationSeconds", seconds},
                      {"boundObjectRef", json::Object{{"kind", "Pod"},
                                                      {"apiVersion", "v1"},
                                                      {"name", api::Name(pod)},
                                                      {"uid", api::Uid(pod)}}}};
    if (!audience.empty()) spec["audiences"] = json::Array{json::Value(audience)};
    json::Value request = json::Object{{"apiVersion", "authentication.k8s.io/v1"},
                                       {"kind", "TokenRequest"},
                                       {"spec", std::move(spec)}};
    client.CreateSubresource(client::resources::kServiceAccounts, ns, account, "token", request,
                             [self = shared_from_this(), audience](Result<json::SharedValue> got) {
                               self->sources->Put("token", audience, std::move(got));
                               self->Release();
                             });
  }
};

}  // namespace

void PodSources::Put(std::string_view kind,
                     std::string_view name,
                     Result<json::SharedValue> value) {
  found_.insert_or_assign(StrCat(kind, "/", name), std::move(value));
}

Result<json::SharedValue> PodSources::Find(std::string_view kind, std::string_view name) const {
  auto it = found_.find(StrCat(kind, "/", name));
  const bool missing =
      it == found_.end() || (!it->second.ok() && it->second.status().code() == Code::kNotFound);
  if (!missing) return it->second;
  return Status(Code::kNotFound, StrCat(kind, " ", Quote(name), " not found"));
}

void FetchPodSources(client::Client& client,
                     const json::Value& pod,
                     const std::shared_ptr<const PodSources>& earlier,
                     WallTime now,
                     std::function<void(std::shared_ptr<const PodSources>)> done) {
  Wanted wanted = Collect(pod);
  auto fetch = std::make_shared<Fetch>(client);
  fetch->ns = api::Namespace(pod);
  fetch->done = std::move(done);
  for (const std::string& name : wanted.config_maps) {
    fetch->Get(client::resources::kConfigMaps, "configmap", name);
  }
  for (const std::string& name : wanted.secrets) {
    fetch->Get(client::resources::kSecrets, "secret", name);
  }
  for (const std::string& name : wanted.claims) {
    fetch->Get(client::resources::kPersistentVolumeClaims, "claim", name);
  }
  const std::string runtime_class(json::GetString(pod, {"spec", "runtimeClassName"}));
  if (!runtime_class.empty()) {
    fetch->Get(client::resources::kRuntimeClasses, "runtimeclass", runtime_class);
  }
  std::string account(json::GetString(pod, {"spec", "serviceAccountName"}, "default"));
  for (const auto& [audience, seconds] : wanted.tokens) {
    auto known = earlier ? earlier->Token(audience)
                         : Result<json::SharedValue>(Status(Code::kNotFound, "no token yet"));
    if (known.ok()) {
      auto expires = api::ParseTime(json::GetString(**known, {"status", "expirationTimestamp"}));
      if (expires && *expires - now > std::chrono::seconds(seconds / 5)) {
        fetch->sources->Put("token", audience, std::move(known));
        continue;
      }
    }
    fetch->GetToken(account, audience, seconds, pod);
  }
  fetch->client.executor().Post([fetch] { fetch->Release(); });
}

bool IsOfFiles(const json::Value& volume) {
  for (std::string_view kind : {"configMap", "secret", "projected", "downwardAPI"}) {
    if (json::Find(volume, {kind}) != nullptr) return true;
  }
  return false;
}

bool HasChangingVolumes(const json::Value& pod) {
  const json::Array& volumes = json::GetArray(pod, {"spec", "volumes"});
  return std::any_of(volumes.begin(), volumes.end(), IsOfFiles);
}

}  // namespace swell::node
