#include "cli/views/left_pods.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
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

// A gang may have thousands of pods, and this is one line.
constexpr size_t kPodsNamed = 3;

std::string NamesText(const std::vector<json::SharedValue>& pods) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(pods.size(), kPodsNamed); ++i) {
    names.emplace_back(api::Name(*pods[i]));
  }
  const size_t more = pods.size() - names.size();
  return StrCat(Join(names, ", "), more > 0 ? StrCat(" and ", more, " more") : "");
}

// The command that ends the pods at once. Many have a group in common; a new job of that name has
// the group's name, too, and its pods are not meant.
std::string EndingOf(const std::vector<json::SharedValue>& pods,
                     bool new_job,
                     std::string_view ns) {
  const std::string where = StrCat(" --now -n ", ns);
  if (pods.size() <= kPodsNamed) {
    std::vector<std::string> names;
    for (const json::SharedValue& pod : pods) names.emplace_back(api::Name(*pod));
    return StrCat("swell delete pod ", Join(names, " "), where);
  }
  const std::string group(api::Label(*pods.front(), api::keys::kPodGroup));
  const bool common = std::all_of(pods.begin(), pods.end(), [&group](const auto& pod) {
    return api::Label(*pod, api::keys::kPodGroup) == group;
  });
  if (!new_job && !group.empty() && common) {
    return StrCat("swell delete pods -l ", api::keys::kPodGroup, "=", group, where);
  }
  return StrCat("swell delete pod", where, " with the names of them all");
}

}  // namespace

std::string LeftPodsText(Api& api,
                         std::string_view ns,
                         std::string_view name,
                         std::string_view uid) {
  if (ns.empty()) return "";
  const auto pods = api.List(client::resources::kPods, ns);
  if (!pods.ok()) return "";
  std::vector<json::SharedValue> left;
  WallTime latest;
  for (const json::SharedValue& pod : *pods) {
    if (!IsLeftOf(*pod, name, uid)) continue;
    left.push_back(pod);
    latest = std::max(latest, *api::DeletionTime(*pod));
  }
  if (left.empty()) return "";
  const bool one = left.size() == 1;
  return StrCat(one ? "pod " : "pods ", NamesText(left), " of the deleted job ", name,
                one ? " has" : " have", " until ", api::FormatTime(latest),
                " to save and end; at once: ", EndingOf(left, !uid.empty(), ns));
}

}  // namespace swell::cli
