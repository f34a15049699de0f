#include "cli/jobs/restricted_pods.h"

#include <functional>

#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/jobs/pytorch_spec.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr std::string_view kEnforce = "pod-security.kubernetes.io/enforce";
constexpr std::string_view kLevel = "restricted";
constexpr std::string_view kRootsHome = "/root", kAnybodysHome = "/tmp";

bool IsRefusalOfLevel(const Status& status, std::string_view level = kLevel) {
  return status.code() == Code::kForbidden &&
         status.message().find(StrCat("violates PodSecurity \"", level)) != std::string::npos;
}

// Other API servers take a job whatever its pods are, and refuse the pods, when nobody looks.
bool RefusesPodsLater(Api& api, std::string_view ns) {
  const auto found = api.Get(client::resources::kNamespaces, "", ns);
  if (!found.ok() || api::Label(**found, kEnforce) != kLevel) return false;
  const auto version = api.CallObject({.method = "GET", .path = "/version"});
  return version.ok() && !IsEmbedded(json::GetString(**version, {"gitVersion"}));
}

// Calls `pod` for the spec of each pod in the object.
template <class Pod>
void ForEachPod(json::Value& object, const Pod& pod) {
  if (object.is_array()) {
    for (json::Value& one : object.get_array()) ForEachPod(one, pod);
  }
  if (!object.is_object()) return;
  const json::Value* containers = json::Find(object, {"containers"});
  if (containers != nullptr && containers->is_array()) return pod(object);
  for (auto& item : object.get_object()) ForEachPod(item.value(), pod);
}

void SetDefault(json::Value& at, json::Path path, json::Value value) {
  if (json::Find(at, path) == nullptr) json::Set(at, path, std::move(value));
}

void LeaveRootsHome(json::Value& of, std::string_view field) {
  const std::string path(json::GetString(of, {field}));
  if (!IsBelow(path, kRootsHome)) return;
  json::Set(of, {field}, StrCat(kAnybodysHome, path.substr(kRootsHome.size())));
}

void MeetContainer(json::Value& container) {
  SetDefault(container, {"securityContext", "allowPrivilegeEscalation"}, false);
  SetDefault(container, {"securityContext", "capabilities", "drop"}, json::Array{"ALL"});
  LeaveRootsHome(container, "workingDir");
  json::Value* mounts = json::FindMutable(container, {"volumeMounts"});
  if (mounts == nullptr || !mounts->is_array()) return;
  for (json::Value& mount : mounts->get_array()) LeaveRootsHome(mount, "mountPath");
}

void MeetPod(json::Value& spec, bool names_user) {
  SetDefault(spec, {"securityContext", "runAsNonRoot"}, true);
  SetDefault(spec, {"securityContext", "seccompProfile"}, json::Object{{"type", "RuntimeDefault"}});
  if (names_user && json::Find(spec, {"securityContext", "runAsUser"}) == nullptr) {
    // Claims are theirs to write by fsGroup.
    for (std::string_view field : {"runAsUser", "runAsGroup", "fsGroup"}) {
      SetDefault(spec, {"securityContext", field}, kUserOfRestricted);
    }
  }
  for (std::string_view list : {"initContainers", "containers"}) {
    json::Value* containers = json::FindMutable(spec, {list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (json::Value& container : containers->get_array()) MeetContainer(container);
  }
}

std::string RemarkOf(std::string_view ns, json::Value& object, std::string_view user_flag) {
  int64_t user = 0;  // 0: the pods name none
  ForEachPod(object, [&user](const json::Value& spec) {
    user = json::GetInt(spec, {"securityContext", "runAsUser"}, user);
  });
  const std::string as = user == 0 ? "a user other than root" : StrCat("user ", user);
  const bool chosen = user == kUserOfRestricted && !user_flag.empty();
  return StrCat("namespace ", ns, " enforces Pod Security ", Quote(kLevel), ": the pods run as ",
                as, chosen ? StrCat(" (", user_flag, " names another)") : "",
                ", without capabilities, and gain no privileges");
}

using Attempt = std::function<Result<json::SharedValue>(const json::Value& object)>;

// Attempts it with `object`, which is first changed as far as the level demands.
Result<json::SharedValue> MeetAndTry(json::Value& object, bool refused, const Attempt& attempt) {
  if (!refused) {
    auto made = attempt(object);
    if (!IsRefusalOfLevel(made.status())) return made;
  }
  const json::Value asked = object;
  MeetRestricted(object, true);
  auto made = attempt(object);
  // Pods of a user to whom an administrator gave a number run as that one.
  if (made.status().code() == Code::kForbidden && !IsRefusalOfLevel(made.status())) {
    object = asked;
    MeetRestricted(object, false);
    made = attempt(object);
  }
  return made;
}

json::Value PodOf(const json::Value& deployment) {
  const json::Value* pod = json::Find(deployment, {"spec", "template"});
  json::Value made = pod == nullptr ? json::Value(json::Object()) : *pod;
  json::Set(made, {"apiVersion"}, "v1");
  json::Set(made, {"kind"}, "Pod");
  json::Set(made, {"metadata", "generateName"}, StrCat(api::Name(deployment), "-"));
  return made;
}

}  // namespace

void MeetRestricted(json::Value& object, bool names_user) {
  ForEachPod(object, [names_user](json::Value& spec) { MeetPod(spec, names_user); });
}

Result<json::SharedValue> CreateJob(Api& api,
                                    const Resource& resource,
                                    std::string_view ns,
                                    const json::Value& job,
                                    const WriteOptions& options,
                                    std::string& remark,
                                    std::string_view user_flag) {
  remark.clear();
  json::Value met = job;
  auto made = MeetAndTry(met, RefusesPodsLater(api, ns), [&](const json::Value& object) {
    return api.Create(resource, ns, object, options);
  });
  if (made.ok() && !json::Equal(met, job)) remark = RemarkOf(ns, met, user_flag);
  return made;
}

Result<json::SharedValue> CreateDeployment(Api& api,
                                           std::string_view ns,
                                           const json::Value& deployment,
                                           const WriteOptions& options,
                                           std::string& remark) {
  remark.clear();
  json::Value met = deployment;
  const auto asked = MeetAndTry(met, false, [&](const json::Value& object) {
    return api.Create(client::resources::kPods, ns, PodOf(object), {.dry_run = true});
  });
  if (IsRefusalOfLevel(asked.status(), "")) return asked.status();
  // The answer may have other reasons, such as that the user may make no pods. They are not these.
  if (!asked.ok()) return api.Create(client::resources::kDeployments, ns, deployment, options);
  auto made = api.Create(client::resources::kDeployments, ns, met, options);
  if (made.ok() && !json::Equal(met, deployment)) remark = RemarkOf(ns, met, "");
  return made;
}

}  // namespace swell::cli
