#include "cli/jobs/start_forecast.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"

namespace swell::cli {
namespace {

// How many single jobs, and how many combinations of one size, are tried: at most and at least.
// How many of the largest may end together.
constexpr size_t kJobsTried = 48, kJobsTriedLeast = 12;
constexpr size_t kObjectsTried = 200'000;
constexpr size_t kTogetherMax = 12;
// A node with more GPUs than this is not proposed.
constexpr int64_t kLargestNodeGpus = 16;
// How many nodes are tried for pods that are larger than any node.
constexpr int64_t kLargeNodesMax = 8;
// How far ahead to search for a time when minimum run times are over.
constexpr std::chrono::seconds kLookAhead = std::chrono::hours(24);

class ChangeFinder {
 public:
  explicit ChangeFinder(const WhyFacts& facts) : facts_(facts) {}

  StartForecast Find(const WhatIf& what_if) && {
    const std::string group = facts_.Group();
    const json::SharedValue& pod_group = facts_.job.group;
    const int64_t placed = pod_group ? api::ScheduledCount(*pod_group) : 0;
    // A running elastic job needs one more member.
    const int64_t need = std::max<int64_t>(1, LeastMembers(what_if.state(), group) - placed);
    forecast_.now = what_if.Run(group);
    if (forecast_.now.starts(need)) return std::move(forecast_);
    TryExpectedEnds(what_if, group, need);
    TryTime(what_if, group, need);
    TrySmaller(what_if, group, need);
    TryCordoned(what_if, group, need);
    TryEnds(what_if, group, need);
    TryQuota(what_if, group, need);
    TryNode(what_if, group, need);
    return std::move(forecast_);
  }

 private:
  // Time alone: victims become preemptible when their minimum run time is over.
  void TryTime(const WhatIf& what_if, const std::string& group, int64_t need) {
    auto after = [&](std::chrono::seconds later) {
      return what_if.Run(group, what_if.Without({}), later);
    };
    std::chrono::seconds too_soon{0}, enough = kLookAhead;
    Outcome then = after(enough);
    if (!then.starts(need)) return;
    while (enough - too_soon > std::chrono::seconds(1)) {
      const auto middle = too_soon + (enough - too_soon) / 2;
      Outcome at = after(middle);
      if (at.starts(need)) {
        enough = middle;
        then = std::move(at);
      } else {
        too_soon = middle;
      }
    }
    forecast_.changes.push_back(StrCat(api::HumanDuration(enough), " more",
                                       then.victims.empty() ? "" : ", when it may preempt ",
                                       NamesOf(then.victims)));
  }

  using Ends = std::vector<size_t>;  // of holders, by their places in the list

  // The first time by which enough work has ended. Only work whose end is expected counts.
  void TryExpectedEnds(const WhatIf& what_if, const std::string& group, int64_t need) {
    std::vector<std::pair<ExpectedEnd, Holder>> ends;
    for (Holder& holder : Holders()) {
      const auto end = ExpectedEndOf(holder.pods, facts_.now);
      if (end) ends.emplace_back(*end, std::move(holder));
    }
    std::stable_sort(ends.begin(), ends.end(),
                     [](const auto& a, const auto& b) { return a.first.at < b.first.at; });
    const auto starts_after = [&](const Ends& tried) {
      std::set<std::string> ended;
      for (size_t i : tried) {
        ended.insert(ends[i].second.groups.begin(), ends[i].second.groups.end());
      }
      const Outcome outcome =
          what_if.Run(group, what_if.Without(ended), ends[tried.back()].first.at - facts_.now);
      return outcome.starts(need) && outcome.victims.empty();
    };
    const auto first = [](size_t count) {
      Ends some(count);
      std::iota(some.begin(), some.end(), size_t{0});
      return some;
    };
    if (ends.empty() || !starts_after(first(ends.size()))) return;
    size_t too_few = 0, enough = ends.size();
    while (enough - too_few > 1) {
      const size_t middle = too_few + (enough - too_few) / 2;
      (starts_after(first(middle)) ? enough : too_few) = middle;
    }
    Ends needed = first(enough);
    for (size_t i = enough - 1; i-- > 0 && enough <= kTogetherMax;) {  // the last one was needed
      Ends fewer = needed;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      if (starts_after(fewer)) needed = std::move(fewer);
    }
    forecast_.could_start = CouldStart{.at = ends[needed.back()].first.at, .ends = {}};
    for (size_t i : needed) {
      forecast_.could_start->ends.emplace_back(ends[i].second.name, ends[i].first);
    }
  }

  // The placed pods of a group, the first to be given up at the end.
  static std::vector<const json::Value*> PlacedPods(const json::Array& state,
                                                    const json::Value& group) {
    std::vector<const json::Value*> pods;
    for (const json::Value& object : state) {
      if (api::KindOf(object) != "Pod" || GroupOf(object) != api::KeyOf(group)) continue;
      if (api::IsBound(object) && !api::IsDeleting(object)) pods.push_back(&object);
    }
    const auto order = [](const json::Value* pod) {
      const std::string_view priority = api::Annotation(*pod, api::keys::kMemberPriority);
      return std::tuple(-ParseInt(priority).value_or(0), api::Name(*pod).size(), api::Name(*pod));
    };
    std::sort(pods.begin(), pods.end(),
              [&order](const auto* a, const auto* b) { return order(a) < order(b); });
    return pods;
  }

  // The first elastic job that is large enough to make room, by as few members as do.
  void TrySmaller(const WhatIf& what_if, const std::string& group, int64_t need) {
    size_t tried = 0;
    for (const json::Value& other : what_if.state()) {
      if (api::KindOf(other) != "PodGroup" || api::KeyOf(other) == group) continue;
      const std::vector<const json::Value*> pods = PlacedPods(what_if.state(), other);
      const auto least = static_cast<size_t>(std::max<int64_t>(1, api::MinMembers(other)));
      if (pods.size() <= least || ++tried > kJobsTriedLeast) continue;
      const auto starts_without = [&](size_t count) {
        const std::set<const json::Value*> leave(pods.end() - static_cast<ptrdiff_t>(count),
                                                 pods.end());
        StateView state = what_if.Without({});
        std::erase_if(state, [&leave](const auto* object) { return leave.contains(object); });
        const Outcome outcome = what_if.Run(group, state);
        return outcome.starts(need) && outcome.victims.empty();
      };
      size_t enough = pods.size() - least;
      if (!starts_without(enough)) continue;
      for (size_t too_few = 0; enough - too_few > 1;) {
        const size_t middle = too_few + (enough - too_few) / 2;
        (starts_without(middle) ? enough : too_few) = middle;
      }
      // swell scale counts the pods of one role, and no launcher.
      const std::string_view role = api::Label(*pods.back(), api::keys::kPodSet);
      const auto members = static_cast<size_t>(std::count_if(
          pods.begin(), pods.end(),
          [role](const json::Value* pod) { return api::Label(*pod, api::keys::kPodSet) == role; }));
      forecast_.changes.push_back(StrCat("elastic job ", api::KeyOf(other), " shrinks from ",
                                         members, " to ", members - enough,
                                         " members (swell scale)"));
      return;
    }
  }

  // The first cordoned node that is enough; else all of them together.
  void TryCordoned(const WhatIf& what_if, const std::string& group, int64_t need) {
    std::vector<std::string> cordoned;
    for (const NodeView& node : facts_.nodes) {
      if (node.unschedulable && node.ready) cordoned.push_back(node.name);
    }
    const auto starts_with = [&](const std::set<std::string>& names) {
      std::deque<json::Value> opened;
      StateView state = what_if.Without({});
      for (const json::Value*& object : state) {
        if (api::KindOf(*object) != "Node" || !names.contains(std::string(api::Name(*object)))) {
          continue;
        }
        opened.push_back(*object);
        Uncordon(opened.back());
        object = &opened.back();
      }
      const Outcome outcome = what_if.Run(group, state);
      return outcome.starts(need) && outcome.victims.empty();
    };
    for (size_t i = 0; i < cordoned.size() && i < kJobsTriedLeast; ++i) {
      if (!starts_with({cordoned[i]})) continue;
      forecast_.changes.push_back(
          StrCat("node ", cordoned[i], " is uncordoned (kubectl uncordon ", cordoned[i], ")"));
      return;
    }
    if (cordoned.size() < 2 || cordoned.size() > kTogetherMax) return;
    if (!starts_with({cordoned.begin(), cordoned.end()})) return;
    forecast_.changes.push_back(StrCat("nodes ", Join(cordoned, ", "),
                                       " are uncordoned (kubectl uncordon ", Join(cordoned, " "),
                                       ")"));
  }

  static void Uncordon(json::Value& node) {
    json::Set(node, {"spec", "unschedulable"}, false);
    json::Value* taints = json::FindMutable(node, {"spec", "taints"});
    if (taints == nullptr || !taints->is_array()) return;
    json::Array left;
    for (json::Value& taint : taints->get_array()) {
      if (json::GetString(taint, {"key"}) != "node.kubernetes.io/unschedulable") {
        left.push_back(std::move(taint));
      }
    }
    *taints = std::move(left);
  }

  // What ends together: a job, the pods that one owner made, or a pod.
  struct Holder {
    std::string name;
    std::set<std::string> groups;
    int64_t milli_gpus = 0;
    std::vector<std::string> nodes;
    std::vector<const json::Value*> pods;  // with GPUs
  };

  static std::string HolderOf(const json::Value& pod) {
    const std::string group = GroupOfPod(pod);
    if (!group.starts_with('/')) return group;
    const auto owner = api::ControllerOf(pod);
    return owner ? StrCat(ToLower(owner->kind), " ", api::Namespace(pod), "/", owner->name)
                 : StrCat("pod ", api::KeyOf(pod));
  }

  std::vector<Holder> Holders() const {
    std::map<std::string, Holder> by_name;
    for (const NodeView& node : facts_.nodes) {
      for (const json::SharedValue& pod : node.pods) {
        if (MilliGpus(*pod) == 0) continue;
        Holder& holder = by_name[HolderOf(*pod)];
        holder.groups.insert(GroupOfPod(*pod));
        holder.milli_gpus += MilliGpus(*pod);
        holder.pods.push_back(pod.get());
        if (holder.nodes.empty() || holder.nodes.back() != node.name) {
          holder.nodes.push_back(node.name);
        }
      }
    }
    const json::Value* waiting = facts_.WaitingPod();
    const std::string own = waiting != nullptr ? HolderOf(*waiting) : facts_.Group();
    std::vector<Holder> holders;
    for (auto& [name, holder] : by_name) {
      holder.name = name;
      if (name != own) holders.push_back(std::move(holder));
    }
    std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
      return std::tie(a.milli_gpus, a.name) < std::tie(b.milli_gpus, b.name);
    });
    return holders;
  }

  // The work that is stopped, once each.
  std::string NamesOf(const std::vector<Outcome::Victim>& victims) const {
    const std::vector<Holder> holders = Holders();
    std::set<std::string> names;
    for (const Outcome::Victim& victim : victims) {
      const auto holder = std::find_if(holders.begin(), holders.end(), [&victim](const Holder& it) {
        return it.groups.contains(victim.group);
      });
      names.insert(holder != holders.end() ? holder->name : victim.group);
    }
    return Join({names.begin(), names.end()}, ", ");
  }

  using Enough = std::function<bool(const Ends&)>;

  // The largest together, without those that are not needed. Empty: they are not enough.
  static Ends LargestTogether(size_t holders, const Enough& enough) {
    Ends ends;
    bool found = false;
    for (size_t i = holders; i-- > 0 && ends.size() < kTogetherMax && !found;) {
      ends.push_back(i);
      found = enough(ends);
    }
    if (!found) return {};
    for (size_t i = ends.size() - 1; i-- > 0;) {  // the last one was needed
      Ends fewer = ends;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      if (enough(fewer)) ends = std::move(fewer);
    }
    return ends;
  }

  // A set of exactly `count` of the holders that is enough. Empty: no set is enough, or there are
  // more combinations than `most`.
  static Ends EnoughOf(size_t holders, size_t count, size_t most, const Enough& enough) {
    size_t combinations = 1;
    for (size_t i = 0; i < count; ++i) {
      combinations = combinations * (holders - i) / (i + 1);
      if (combinations > most) return {};
    }
    std::vector<bool> chosen(holders, false);
    std::fill_n(chosen.begin(), count, true);
    do {
      Ends ends;
      for (size_t i = 0; i < holders; ++i) {
        if (chosen[i]) ends.push_back(i);
      }
      if (enough(ends)) return ends;
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
    return {};
  }

  // As few as possible. Each attempt costs a cycle, and the user waits: so of many holders only the
  // smallest are tried alone, and not every combination.
  static Ends FewestEnds(size_t holders, size_t most, const Enough& enough) {
    for (size_t i = 0; i < std::min(holders, most); ++i) {
      if (enough({i})) return {i};
    }
    Ends ends = LargestTogether(holders, enough);
    for (size_t count = 2; count < ends.size(); ++count) {
      Ends fewer = EnoughOf(holders, count, most, enough);
      if (!fewer.empty()) return fewer;
    }
    return ends;
  }

  void TryEnds(const WhatIf& what_if, const std::string& group, int64_t need) {
    const std::vector<Holder> holders = Holders();
    const size_t most =
        std::clamp(kObjectsTried / (what_if.state().size() + 1), kJobsTriedLeast, kJobsTried);
    // The first that has to end alone because it may not be preempted, as others may.
    std::optional<std::pair<size_t, std::string>> in_the_way;
    Ends ends = FewestEnds(holders.size(), most, [&](const Ends& tried) {
      if (tried.size() > 1 && in_the_way) return false;  // one is fewer
      std::set<std::string> together;
      for (size_t i : tried) together.insert(holders[i].groups.begin(), holders[i].groups.end());
      const Outcome outcome = what_if.Run(group, what_if.Without(together));
      if (!outcome.starts(need)) return false;
      if (tried.size() == 1 && !outcome.victims.empty() && !in_the_way) {
        in_the_way.emplace(tried[0], NamesOf(outcome.victims));
      }
      return outcome.victims.empty();
    });
    std::string preempted;
    if (ends.empty() && in_the_way) {
      ends = {in_the_way->first};
      preempted = StrCat(", when this job may preempt ", in_the_way->second);
    }
    if (ends.empty()) return;
    std::vector<std::string> names;
    int64_t gpus = 0;
    for (size_t i : ends) {
      names.push_back(holders[i].name);
      gpus += holders[i].milli_gpus;
    }
    forecast_.changes.push_back(
        ends.size() == 1 ? StrCat(names[0], " ends (", GpusText(gpus), " on ",
                                  Join(holders[ends[0]].nodes, ", "), ")", preempted)
                         : StrCat(Join(names, " and "), " end (", GpusText(gpus), " together)"));
  }

  // What the project and those above it would hold of GPUs with the whole job. What an elastic job
  // holds already is counted in what they hold.
  std::map<std::string, double> WithJob() const {
    std::map<std::string, double> gpus;
    const int64_t lacks = facts_.job.milli_gpus - facts_.job.HeldMilliGpus();
    for (const ProjectView* at = facts_.Project(); at != nullptr && gpus.size() < 32;
         at = at->parent.empty() ? nullptr : facts_.tree.Find(at->parent)) {
      gpus[at->name] = at->gpu().allocated + static_cast<double>(lacks) / 1000.0;
    }
    return gpus;
  }

  static void Raise(json::Array& state,
                    const std::map<std::string, double>& gpus,
                    std::string_view field) {
    for (json::Value& object : state) {
      if (api::KindOf(object) != "Project") continue;
      auto found = gpus.find(std::string(api::Name(object)));
      if (found == gpus.end()) continue;
      json::Value* pools = json::FindMutable(object, {"spec", "nodePools"});
      const bool lists = pools != nullptr && pools->is_array() && !pools->get_array().empty();
      if (!lists || json::Find(object, {"spec", "resources"}) != nullptr) {
        json::Set(object, {"spec", "resources", "gpu", field}, found->second);
      }
      if (!lists) continue;
      for (json::Value& pool : pools->get_array()) {
        json::Set(pool, {"resources", "gpu", field}, found->second);
      }
    }
  }

  // "3 for team-a and team-b"; amounts that differ are told one by one.
  static std::string AmountsText(const std::map<std::string, double>& gpus) {
    std::map<std::string, std::vector<std::string>> by_amount;
    for (const auto& [name, amount] : gpus) {
      by_amount[ShareText(amount, ShareOf::kGpu)].push_back(name);
    }
    std::vector<std::string> parts;
    for (const auto& [amount, names] : by_amount) {
      parts.push_back(StrCat(amount, " for ", Join(names, " and ")));
    }
    return Join(parts, ", ");
  }

  // A limit that is in the way, else a quota, else both.
  void TryQuota(const WhatIf& what_if, const std::string& group, int64_t need) {
    const std::map<std::string, double> gpus = WithJob();
    std::map<std::string, double> limited;
    for (const auto& [name, amount] : gpus) {
      const double limit = facts_.tree.Find(name)->gpu().limit;
      if (limit >= 0 && amount > limit) limited[name] = amount;
    }
    enum class Raised { kLimits, kQuotas, kBoth };
    auto attempt = [&](Raised raised) {
      const bool limits = raised != Raised::kQuotas, quotas = raised != Raised::kLimits;
      json::Array state = what_if.state();
      if (limits) Raise(state, limited, "limit");
      if (quotas) Raise(state, gpus, "quota");
      Outcome outcome = what_if.Run(group, StateViewOf(state));
      if (!outcome.starts(need)) return false;
      std::string what;
      if (limits) what = StrCat("a GPU limit of ", AmountsText(limited));
      if (quotas) what += StrCat(limits ? " and " : "", "a GPU quota of ", AmountsText(gpus));
      if (!outcome.victims.empty()) {
        const size_t count = outcome.victims.size();
        const std::string& first = outcome.victims[0].pod;
        what += count == 1 ? StrCat(", which would stop ", first)
                           : StrCat(", which would stop ", count, " pods, ", first, " first");
      }
      forecast_.changes.push_back(std::move(what));
      return true;
    };
    if (gpus.empty()) return;
    if (!limited.empty() && attempt(Raised::kLimits)) return;
    attempt(limited.empty() ? Raised::kQuotas : Raised::kBoth);
  }

  void TryNode(const WhatIf& what_if, const std::string& group, int64_t need) {
    const NodeView* largest = nullptr;
    for (const NodeView& node : facts_.nodes) {
      const bool usable = node.ready && !node.unhealthy;
      if (usable && (largest == nullptr || node.healthy_gpus() > largest->healthy_gpus())) {
        largest = &node;
      }
    }
    if (largest == nullptr) return;
    if (const NodeNeed lack = NeedBeyondNodes(); !lack.text.empty()) {
      return TryNodeForPod(what_if, group, need, *largest, lack);
    }
    json::Array state = what_if.state();
    constexpr int kNodesMax = 8;
    int added = 0;
    for (int more = 1; more <= kNodesMax; more *= 2) {
      while (added < more) state.push_back(NodeLike(*largest, ++added));
      Outcome outcome = what_if.Run(group, StateViewOf(state));
      if (!outcome.starts(need) || !outcome.victims.empty()) continue;
      if (more == 1) {
        forecast_.changes.push_back(StrCat("one more node like ", largest->name));
        return;
      }
      std::string change = StrCat(more, " more nodes like ", largest->name);
      if (const int64_t gpus = largest->healthy_gpus(); gpus > 0) {
        change += StrCat(" (", GpusText(gpus * 1000), " each)");
      }
      forecast_.changes.push_back(std::move(change));
      break;
    }
    TryLargerNode(what_if, group, need, *largest);
  }

  static json::Value NodeLike(const NodeView& model, int number) {
    json::Value node = *model.object;
    const std::string name = StrCat(model.name, "-what-if-", number);
    json::Set(node, {"apiVersion"}, "v1");
    json::Set(node, {"kind"}, "Node");
    Uncordon(node);
    json::Set(node, {"metadata", "name"}, name);
    json::Set(node, {"metadata", "labels", "kubernetes.io/hostname"}, name);
    return node;
  }

  // The resources of which a pod needs more than any node has, even an empty one.
  struct NodeNeed {
    Amounts amounts;
    std::string text;  // "16 GPUs (no node has more than 4)"; empty: some node has all
  };

  NodeNeed NeedBeyondNodes() const {
    struct Measure {
      int64_t Amounts::*field;
      std::string (*text)(int64_t);
      const char* unit;
    };
    constexpr Measure kMeasures[] = {{&Amounts::milli_gpus, GpusText, ""},
                                     {&Amounts::milli_cpu, CpuText, " CPUs"},
                                     {&Amounts::memory, MemoryText, " of memory"}};
    NodeNeed need;
    std::vector<std::string> parts;
    for (const auto& [field, text, unit] : kMeasures) {
      int64_t most = 0;
      for (const NodeView& node : facts_.nodes) most = std::max(most, node.total.*field);
      for (const json::SharedValue& pod : facts_.job.pods) {
        if (api::IsBound(*pod)) continue;
        Amounts one;
        one.AddPod(*pod);
        need.amounts.*field = std::max(need.amounts.*field, one.*field);
      }
      if (need.amounts.*field <= most) continue;
      parts.push_back(StrCat(
          text(need.amounts.*field), unit,
          most == 0 ? " (no node has any)" : StrCat(" (no node has more than ", text(most), ")")));
    }
    need.text = Join(parts, " and ");
    return need;
  }

  // Nodes that hold such a pod: one, or one for each member that it needs.
  void TryNodeForPod(const WhatIf& what_if,
                     const std::string& group,
                     int64_t need,
                     const NodeView& model,
                     const NodeNeed& lack) {
    Amounts total = model.total;
    for (int64_t Amounts::*field : {&Amounts::milli_gpus, &Amounts::milli_cpu, &Amounts::memory}) {
      total.*field = std::max(total.*field, lack.amounts.*field);
    }
    for (const int64_t nodes : std::set<int64_t>{1, std::min(need, kLargeNodesMax)}) {
      json::Array state = what_if.state();
      for (int64_t i = 1; i <= nodes; ++i) {
        state.push_back(NodeWith(NodeLike(model, static_cast<int>(i)), total));
      }
      const Outcome outcome = what_if.Run(group, StateViewOf(state));
      if (!outcome.starts(need) || !outcome.victims.empty()) continue;
      forecast_.changes.push_back(
          StrCat(nodes == 1 ? "one more node" : StrCat(nodes, " more nodes"), " with ", lack.text));
      return;
    }
  }

  static json::Value NodeWith(json::Value node, const Amounts& total) {
    for (std::string_view field : {"capacity", "allocatable"}) {
      const int64_t gpus = (total.milli_gpus + 999) / 1000;
      json::Set(node, {"status", field, api::kGpuResource}, std::to_string(gpus));
      json::Set(node, {"status", field, "cpu"}, StrCat(total.milli_cpu, "m"));
      json::Set(node, {"status", field, "memory"}, std::to_string(total.memory));
    }
    return node;
  }

  // One node with more GPUs than the others have, and with processors and memory in proportion:
  // with the fewest GPUs that help.
  void TryLargerNode(const WhatIf& what_if,
                     const std::string& group,
                     int64_t need,
                     const NodeView& model) {
    const int64_t usual = model.healthy_gpus();
    const int64_t all = (facts_.job.milli_gpus + 999) / 1000;
    if (usual <= 0 || all <= usual || all > kLargestNodeGpus) return;
    const auto starts_with = [&](int64_t gpus) {
      const int64_t times = (gpus + usual - 1) / usual;
      json::Array state = what_if.state();
      state.push_back(NodeWith(NodeLike(model, 1), {.milli_cpu = model.total.milli_cpu * times,
                                                    .memory = model.total.memory * times,
                                                    .milli_gpus = gpus * 1000}));
      const Outcome outcome = what_if.Run(group, StateViewOf(state));
      return outcome.starts(need) && outcome.victims.empty();
    };
    int64_t too_few = usual, enough = all;
    if (!starts_with(enough)) return;
    while (enough - too_few > 1) {
      const int64_t middle = too_few + (enough - too_few) / 2;
      (starts_with(middle) ? enough : too_few) = middle;
    }
    forecast_.changes.push_back(StrCat("one more node with ", GpusText(enough * 1000)));
  }

  const WhyFacts& facts_;
  StartForecast forecast_;
};

}  // namespace

StartForecast ForecastStart(const WhyFacts& facts, const WhatIf& what_if) {
  return ChangeFinder(facts).Find(what_if);
}

}  // namespace swell::cli
