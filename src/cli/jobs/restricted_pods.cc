#include "cli/jobs/restricted_pods.h"

#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/jobs/pytorch_spec.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr std::string_view kEnforce = "pod-security.kubernetes.io/enforce";
constexpr std::string_view kLevel = "restricted";
constexpr std::string_view kRootsHome = "/root", kAnybodysHome = "/tmp";

bool IsRefusalOfLevel(const Status& status) {
  return status.code() == Code::kForbidden &&
         status.message().find("violates PodSecurity \"restricted") != std::string::npos;
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

std::string RemarkOf(std::string_view ns, json::Value& job) {
  int64_t user = 0;  // 0: the pods name none
  ForEachPod(job, [&user](const json::Value& spec) {
    user = json::GetInt(spec, {"securityContext", "runAsUser"}, user);
  });
  const std::string as = user == 0 ? "a user other than root" : StrCat("user ", user);
  return StrCat("namespace ", ns, " enforces Pod Security ", Quote(kLevel), ": the pods run as ",
                as, user == kUserOfRestricted ? " (--run-as-user names another)" : "",
                ", without capabilities, and gain no privileges");
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
                                    std::string& remark) {
  remark.clear();
  if (!RefusesPodsLater(api, ns)) {
    auto made = api.Create(resource, ns, job, options);
    if (!IsRefusalOfLevel(made.status())) return made;
  }
  json::Value met = job;
  MeetRestricted(met, true);
  auto made = api.Create(resource, ns, met, options);
  // Pods of a user to whom an administrator gave a number run as that one.
  if (made.status().code() == Code::kForbidden && !IsRefusalOfLevel(made.status())) {
    met = job;
    MeetRestricted(met, false);
    made = api.Create(resource, ns, met, options);
  }
  if (made.ok()) remark = RemarkOf(ns, met);
  return made;
}

}  // namespace swell::cli
