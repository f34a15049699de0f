#include "kube/apiserver/access/charged_project.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod_group.h"
#include "kube/api/objects/project.h"
#include "kube/apiserver/access/work.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr char kProjects[] = "projects.swell.dev";

std::vector<json::SharedValue> Projects(const Core& core) {
  std::vector<json::SharedValue> all;
  const auto listed = core.store.List(kProjects, "");
  if (!listed.ok()) return all;
  for (const store::EntryPtr& entry : listed->entries) all.push_back(entry->Parsed());
  return all;
}

json::SharedValue Named(const std::vector<json::SharedValue>& projects, std::string_view name) {
  const auto found =
      std::find_if(projects.begin(), projects.end(),
                   [name](const json::SharedValue& one) { return api::Name(*one) == name; });
  return found != projects.end() ? *found : nullptr;
}

json::SharedValue OwnerOf(const std::vector<json::SharedValue>& projects, const std::string& ns) {
  std::vector<const json::Value*> documents;
  for (const json::SharedValue& one : projects) documents.push_back(one.get());
  const auto by_namespace = api::ProjectsByNamespace(documents);
  const auto owner = by_namespace.find(ns);
  return owner == by_namespace.end() ? nullptr : Named(projects, owner->second);
}

}  // namespace

json::SharedValue ProjectOfPod(const Core& core, const json::Value& pod) {
  const std::vector<json::SharedValue> projects = Projects(core);
  const std::string ns(api::Namespace(pod));
  if (json::SharedValue owner = OwnerOf(projects, ns)) return owner;
  const std::string group(api::Label(pod, api::keys::kPodGroup));
  if (group.empty()) return Named(projects, api::Label(pod, api::keys::kProject));
  const store::EntryPtr entry = core.store.Latest({"podgroups.swell.dev", ns, group});
  if (!entry) return nullptr;
  const json::SharedValue document = entry->Parsed();
  return Named(projects, api::ProjectOfGroup(*document));
}

json::SharedValue ProjectOfNamespace(const Core& core, const std::string& ns) {
  return OwnerOf(Projects(core), ns);
}

Status CheckProjectTakesWork(const Admission& admission, const json::Value& object) {
  const Work work = WorkOf(admission.kind);
  if (admission.call == nullptr || work == Work::kNone || work == Work::kRuntime) {
    return Status::Ok();
  }
  if (api::ControllerOf(object)) return Status::Ok();
  const std::vector<json::SharedValue> projects = Projects(admission.core);
  const bool any =
      std::any_of(projects.begin(), projects.end(),
                  [](const json::SharedValue& project) { return api::IsDeleting(*project); });
  if (!any) return Status::Ok();
  json::SharedValue charged = OwnerOf(projects, admission.ns);
  if (!charged) {
    // In a namespace of no project, work may name one.
    std::string_view named = json::GetString(object, {"spec", "project"});
    if (named.empty()) named = api::Label(object, api::keys::kProject);
    charged = Named(projects, named);
  }
  if (!charged || !api::IsDeleting(*charged)) return Status::Ok();
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat("project ", Quote(api::Name(*charged)), " is being deleted and takes no new work"));
}

}  // namespace swell::apiserver
