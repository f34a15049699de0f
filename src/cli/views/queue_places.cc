#include "cli/views/queue_places.h"

#include <algorithm>
#include <tuple>

#include "base/natural_order.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"

namespace swell::cli {
namespace {

// What waits together: a group, the pods of one owner, or a pod.
std::string KeyOf(const json::Value& pod) {
  if (std::string group = api::GroupKeyOf(pod); !group.empty()) return group;
  const auto owner = api::ControllerOf(pod);
  return StrCat("/", owner ? owner->uid : std::string(api::Uid(pod)));
}

bool WaitsForPlace(const json::Value& pod) {
  if (api::IsBound(pod) || !api::IsActive(pod)) return false;
  if (!json::GetArray(pod, {"spec", "schedulingGates"}).empty()) return false;
  const std::string_view scheduler = api::SchedulerName(pod);
  return scheduler.empty() || scheduler == "swell" || scheduler == "default-scheduler";
}

struct Waiting {
  const json::Value* group = nullptr;  // null: it has none
  const json::Value* first = nullptr;  // the oldest pod
  int64_t priority = 0;
  int64_t pods = 0;
  bool promised = false;

  const json::Value& Object() const { return group != nullptr ? *group : *first; }
  bool Before(const Waiting& other) const {
    const auto order = [](const Waiting& one) {
      return std::tuple(-one.priority, !one.promised, api::CreationTime(one.Object()).unix_ns);
    };
    const auto own = order(*this), others = order(other);
    if (own != others) return own < others;
    return CompareNatural(Name(), other.Name()) < 0;
  }
  // As the scheduler's: a pod without a group has one of its own.
  std::string Name() const { return StrCat(group != nullptr ? "" : "/", api::KeyOf(Object())); }
  // It waits for places: the pods of its minimum exist, and not all of them have a node.
  bool IsInQueue() const {
    if (group == nullptr) return true;
    const int64_t placed = api::ScheduledCount(*group);
    const int64_t least = std::max<int64_t>(1, api::MinMembers(*group));
    return placed < least && placed + pods >= least;
  }
  // The project that it names itself. It counts if the namespace belongs to no project.
  std::string_view NamedProject() const {
    return group != nullptr ? api::ProjectOfGroup(*group) : api::Label(*first, api::keys::kProject);
  }
};

std::string Ordinal(int64_t number) {
  const int64_t tens = number % 100, ones = number % 10;
  const bool teens = tens >= 11 && tens <= 13;
  return StrCat(number, !teens && ones == 1   ? "st"
                        : !teens && ones == 2 ? "nd"
                        : !teens && ones == 3 ? "rd"
                                              : "th");
}

}  // namespace

QueuePlaces::QueuePlaces(const Objects& pods,
                         const Objects& groups,
                         const ProjectTree& tree,
                         Seen seen) {
  std::map<std::string, Waiting> waiting;
  for (const json::Value* pod : pods) {
    if (!WaitsForPlace(*pod)) continue;
    Waiting& one = waiting[KeyOf(*pod)];
    const int64_t priority = json::GetInt(*pod, {"spec", "priority"});
    one.priority = one.pods == 0 ? priority : std::max(one.priority, priority);
    one.promised |= !api::NominatedNode(*pod).empty();
    ++one.pods;
    if (one.first == nullptr || api::CreationTime(*pod) < api::CreationTime(*one.first)) {
      one.first = pod;
    }
  }
  for (const json::Value* group : groups) {
    const auto found = waiting.find(api::KeyOf(*group));
    if (found != waiting.end()) found->second.group = group;
  }
  std::map<std::string, std::string> project_of;  // by namespace
  std::map<std::string, std::vector<std::pair<const std::string*, const Waiting*>>> queues;
  for (const auto& [key, one] : waiting) {
    if (!one.IsInQueue()) continue;
    const std::string ns(api::Namespace(*one.first));
    auto [of, is_new] = project_of.try_emplace(ns);
    const ProjectView* project = is_new ? tree.OfNamespace(ns) : nullptr;
    if (project != nullptr) of->second = project->name;
    const std::string name = of->second.empty() ? std::string(one.NamedProject()) : of->second;
    queues[name].emplace_back(&key, &one);
  }
  for (auto& [name, queue] : queues) {
    const ProjectView* project = tree.Find(name);
    const bool by_user =
        project != nullptr && json::GetBool(*project->object, {"spec", "users", "fairShare"});
    std::sort(queue.begin(), queue.end(),
              [](const auto& a, const auto& b) { return a.second->Before(*b.second); });
    for (size_t i = 0; i < queue.size(); ++i) {
      const auto& [key, one] = queue[i];
      // Work of a project waits in its namespace, except work of other namespaces that names it.
      const bool own = project != nullptr && project->ns == api::Namespace(*one->first);
      places_[*key] = {name, static_cast<int64_t>(queue.size()),
                       by_user ? 0 : static_cast<int64_t>(i + 1), seen == Seen::kPart && !own};
    }
  }
}

std::optional<QueuePlace> QueuePlaces::Find(const json::Value& pod) const {
  const auto found = places_.find(KeyOf(pod));
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

std::string QueuePlace::Text() const {
  const std::string where = StrCat(project.empty() ? "without a project" : StrCat("in ", project),
                                   partial ? ", as far as you may see" : "");
  if (of == 1) return StrCat("nothing else waits ", where);
  if (place == 0) {
    return StrCat("one of ", of, " that wait ", where, "; the user who holds the fewest GPUs is ",
                  "served first");
  }
  return StrCat(Ordinal(place), " of ", of, " that wait ", where, ", by priority and age");
}

json::Value QueuePlace::Json() const {
  return json::Object{{"project", project},
                      {"of", of},
                      {"place", place == 0 ? json::Value(nullptr) : json::Value(place)},
                      {"text", Text()}};
}

}  // namespace swell::cli
