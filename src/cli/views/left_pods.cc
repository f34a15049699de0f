#include "cli/views/left_pods.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

bool IsLeftOf(const json::Value& pod, std::string_view job, std::string_view uid) {
  if (!api::IsBound(pod) || api::HasEnded(pod) || !api::DeletionTime(pod)) return false;
  const std::vector<api::OwnerReference> owners = api::Owners(pod);
  return std::any_of(owners.begin(), owners.end(), [&](const api::OwnerReference& owner) {
    return owner.name == job && owner.uid != uid &&
           FindJobKind(owner.api_version, owner.kind) != nullptr;
  });
}

}  // namespace

std::string LeftPodsText(Api& api,
                         std::string_view ns,
                         std::string_view name,
                         std::string_view uid) {
  if (ns.empty()) return "";
  const auto pods = api.List(client::resources::kPods, ns);
  if (!pods.ok()) return "";
  std::vector<std::string> left;
  WallTime latest;
  for (const json::SharedValue& pod : *pods) {
    if (!IsLeftOf(*pod, name, uid)) continue;
    left.emplace_back(api::Name(*pod));
    latest = std::max(latest, *api::DeletionTime(*pod));
  }
  if (left.empty()) return "";
  const bool one = left.size() == 1;
  return StrCat(one ? "pod " : "pods ", Join(left, ", "), " of the deleted job ", name,
                one ? " has" : " have", " until ", api::FormatTime(latest),
                " to save and end; at once: swell delete pod ", Join(left, " "), " --now -n ", ns);
}

}  // namespace swell::cli
