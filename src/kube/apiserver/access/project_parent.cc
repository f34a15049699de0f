#include "kube/apiserver/access/project_parent.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr char kProjects[] = "projects.swell.dev";

bool HasOthersBelow(const Core& core, std::string_view parent, std::string_view but) {
  const auto below = core.store.List(kProjects, "", [&](const store::Entry& entry) {
    return entry.key.name != but && api::ParentOfProject(*entry.Parsed()) == parent;
  });
  return below.ok() && !below->entries.empty();
}

// Pod groups, which jobs have until they end, and pods of none.
std::set<std::string> WorkIn(const Core& core, const std::string& ns) {
  std::set<std::string> names;
  const auto add = [&](const std::string& resource, const auto& counts) {
    const auto found = core.store.List(resource, ns);
    if (!found.ok()) return;
    for (const store::EntryPtr& entry : found->entries) {
      if (counts(*entry->Parsed())) names.insert(entry->key.name);
    }
  };
  add("podgroups.swell.dev", [](const json::Value& group) {
    const std::string_view phase = api::StatusPhase(group);
    return phase != "Succeeded" && phase != "Failed";
  });
  add("pods", [](const json::Value& pod) {
    return !api::HasEnded(pod) && api::Label(pod, api::keys::kPodGroup).empty();
  });
  return names;
}

}  // namespace

Status CheckParent(const Admission& admission, const json::Value& project, const json::Value* old) {
  constexpr size_t kShown = 5;
  const std::string parent(api::ParentOfProject(project));
  if (parent.empty() || (old != nullptr && api::ParentOfProject(*old) == parent)) {
    return Status::Ok();
  }
  const Core& core = admission.core;
  const store::EntryPtr above = core.store.Latest({kProjects, "", parent});
  // One that does not exist is reported in the status: manifests come in any order.
  if (!above || HasOthersBelow(core, parent, admission.name)) return Status::Ok();
  const std::set<std::string> work =
      WorkIn(core, std::string(api::NamespaceOfProject(*above->Parsed())));
  if (work.empty()) return Status::Ok();
  std::vector<std::string> shown(work.begin(), work.end());
  if (shown.size() > kShown) shown.resize(kShown);
  return InvalidError(
      admission.kind, admission.name,
      {InvalidValue("spec.parent", parent,
                    StrCat("it still has work of its own: ", Join(shown, ", "),
                           work.size() > kShown ? ", …" : "",
                           "; delete that first: a project with projects below it has no work of "
                           "its own"))});
}

}  // namespace swell::apiserver
