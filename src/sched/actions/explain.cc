// Explains waiting groups: why they wait, with numbers, and the smallest change that would start
// them.
#include "sched/actions/explain.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "base/nearest_word.h"
#include "base/random.h"
#include "base/strings.h"
#include "sched/actions/node_diagnosis.h"
#include "sched/placement/gang.h"
#include "sched/placement/topology.h"
#include "sched/state/amount_text.h"
#include "sched/victims/reclaim_rules.h"

namespace swell::sched {
namespace {

// Numbers that decide what is said, as one that is not 0.
class Summing {
 public:
  void Add(uint64_t value) {
    sum_ = (sum_ ^ value) * 0xff51afd7ed558ccdULL;
    sum_ ^= sum_ >> 29;
  }
  uint64_t Total() const { return sum_ | 1; }

 private:
  uint64_t sum_ = 0x9e3779b97f4a7c15ULL;
};

// Whether each of the pods would fit, so that it is each other they are in the way of.
bool TogetherMatters(const GroupState& group, const std::vector<PodId>& pods, const Diagnosis& d) {
  return pods.size() > 1 && !HasTopology(group) && d.places >= static_cast<int64_t>(pods.size());
}

class Explainer {
 public:
  explicit Explainer(CycleContext& context)
      : context_(context), state_(context.state), nodes_(context.state) {}
  Waiting Explain(GroupId id);
  // What Explain's answer follows from where only room is lacking, or promised already, without
  // writing it down, as long as no member is added; 0 where something else is the matter.
  uint64_t Summary(GroupId id);

 private:
  void ExplainRoom(GroupId id, const std::vector<PodId>& pods, Waiting& waiting);
  // Why the last search for the group, or for one of its line, found nothing; null: there was none.
  const std::string* Said(GroupId id) const;
  std::string ReservedText(const std::vector<NodeId>& nodes) const;
  std::string NeedText(const std::vector<PodId>& pods, PodId hardest, const Diagnosis& d) const;
  std::string KindText(const std::vector<PodId>& pods,
                       const Shape& shape,
                       const Diagnosis& d) const;
  // What is the matter with the domains that pods must share; empty: nothing.
  struct DomainLack {
    std::string text, change;
  };
  DomainLack LackingDomain(GroupId id, const std::vector<PodId>& pods);
  // The same of node pools, where the group may choose among several.
  DomainLack LackingPool(GroupId id, const std::vector<PodId>& pods);
  DomainLack LackingDomain(const std::string& key,
                           const std::string& who,
                           const std::vector<PodId>& pods,
                           NodeId beside);
  // Why pods that each fit somewhere do not fit together; empty if they do.
  std::string LackingTogether(GroupId id, const std::vector<PodId>& pods);
  size_t NodesHeldFor(GroupId id) const;
  std::string HeldText(GroupId id) const;
  std::string MissingLabels(const Shape& shape) const;
  // Whether its own share keeps the job from reclaiming, while others hold more than they are due.
  bool IsBeyondItsShare(GroupId id, const std::vector<PodId>& pods);
  bool OthersHoldMore(QueueId queue, int pool);
  std::string TooLargeShare(const Shape& shape) const;
  std::string TooLargeExtended(const Shape& shape) const;
  std::vector<std::string> OfferedResources() const;
  std::string RoomFor(int64_t pods, const Shape& shape) const;
  PodId Hardest(const std::vector<PodId>& pods) const;
  const PodState* Blocked(const GroupState& group) const;
  std::string LeastChange(const std::vector<PodId>& pods,
                          PodId hardest,
                          const Diagnosis& d,
                          const DomainLack& domain) const;

  CycleContext& context_;
  State& state_;
  NodeDiagnoser nodes_;
  std::map<int, std::vector<QueueId>> hold_more_;  // by pool: projects above their due GPUs
};

// The resource that exceeds every suitable node even when it is empty; empty if none does.
std::string TooLarge(const Shape& shape, const CoreAmounts& largest) {
  for (const int r : {kGpu, kCpu, kMemory}) {
    if (shape.core[r] <= largest[r]) continue;
    const std::string what = CoreText(r, shape.core[r]);
    return largest[r] == 0
               ? StrCat("a suitable node with at least ", what)
               : StrCat("a suitable node with at least ", what, "; the largest has ",
                        r == kGpu ? std::to_string(largest[r]) : CoreText(r, largest[r]));
  }
  return "";
}

// If no node has all labels of the pod's node selector: the labels that no node has. If each label
// is on some node: all of them. Empty: the node selector is not at fault.
std::string Explainer::MissingLabels(const Shape& shape) const {
  if (shape.node_selector.empty()) return "";
  std::vector<std::string> missing, all;
  std::vector<NodeId> left = state_.index.by_rank;
  for (const auto& wanted : shape.node_selector) {
    const auto lacks = [&, this](NodeId id) {
      const Labels& labels = state_.nodes[id].info.labels;
      const auto label = labels.find(wanted.first);
      return label == labels.end() || label->second != wanted.second;
    };
    all.push_back(StrCat(wanted.first, "=", wanted.second));
    const auto& nodes = state_.index.by_rank;
    if (std::all_of(nodes.begin(), nodes.end(), lacks)) missing.push_back(all.back());
    left.erase(std::remove_if(left.begin(), left.end(), lacks), left.end());
  }
  if (!left.empty()) return "";
  const std::vector<std::string>& said = missing.empty() ? all : missing;
  return StrCat("a node with the ", said.size() == 1 ? "label " : "labels ", Join(said, ", "));
}

// The same of a part of a GPU, by memory.
std::string Explainer::TooLargeShare(const Shape& shape) const {
  int64_t largest = 0;
  for (const NodeId id : state_.index.by_rank) {
    const NodeState& node = state_.nodes[id];
    if (node.gpu_count > 0) largest = std::max(largest, node.info.gpu_memory_mib);
  }
  if (shape.share_mib <= largest) return "";
  return StrCat("a suitable node whose GPUs have at least ", shape.share_mib,
                " MiB; the largest have ", largest, " MiB");
}

// The same of a resource that is not one of Kubernetes' own.
std::string Explainer::TooLargeExtended(const Shape& shape) const {
  for (const auto& [resource, wanted] : shape.extended) {
    int64_t largest = 0;
    for (const NodeId id : state_.index.by_rank) {
      largest = std::max(largest, ExtendedOf(state_.nodes[id], resource));
    }
    if (wanted <= largest) continue;
    const std::string& name = state_.resource_names[resource];
    const std::string meant = largest == 0 ? NearestName(name, OfferedResources()) : "";
    return StrCat("a suitable node with at least ", ExtendedOfText(name, wanted),
                  largest > 0      ? StrCat("; the largest has ", ExtendedText(name, largest))
                  : !meant.empty() ? StrCat("; no node has any: did you mean ", meant, "?")
                                   : "");
  }
  return "";
}

// Names under which some node has anything beyond Kubernetes' own resources.
std::vector<std::string> Explainer::OfferedResources() const {
  std::vector<std::string> names;
  const auto offers = [this](const auto& has) {
    const auto& nodes = state_.index.by_rank;
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](NodeId id) { return has(state_.nodes[id]); });
  };
  if (offers([](const NodeState& node) { return node.allocatable[kGpu] > 0; })) {
    names.emplace_back(kGpuResource);
  }
  for (size_t r = 0; r < state_.resource_names.size(); ++r) {
    const auto resource = static_cast<int>(r);
    if (state_.resource_kinds[r] != 0) continue;
    if (offers([resource](const NodeState& node) { return ExtendedOf(node, resource) > 0; })) {
      names.push_back(state_.resource_names[r]);
    }
  }
  return names;
}

// "room for 3 more pods, each with 4 GPUs on one node".
std::string Explainer::RoomFor(int64_t pods, const Shape& shape) const {
  const int main = shape.core[kGpu] > 0 ? kGpu : kCpu;
  std::string each = CoreText(main, shape.core[main]);
  for (const auto& [resource, wanted] : shape.extended) {
    if (shape.by_kind) continue;
    each += StrCat(" and ", ExtendedOfText(state_.resource_names[resource], wanted));
  }
  const bool one_gpu = main == kGpu && shape.core[main] == 1 && shape.extended.empty();
  return StrCat("room for ", Plural(pods, "more pod"), pods > 1 ? ", each with " : " with ", each,
                one_gpu ? "" : " on one node");
}

std::string Explainer::LeastChange(const std::vector<PodId>& pods,
                                   PodId hardest,
                                   const Diagnosis& d,
                                   const DomainLack& domain) const {
  const Shape& shape = state_.ShapeOf(hardest);
  if (shape.by_kind) return "";                   // numbers of devices alone would not help
  if (!d.suits_any) return MissingLabels(shape);  // room would not help
  std::string too_large = TooLarge(shape, d.largest);
  if (too_large.empty()) too_large = TooLargeShare(shape);
  if (too_large.empty()) too_large = TooLargeExtended(shape);
  if (!too_large.empty()) return too_large;
  if (!domain.change.empty()) return domain.change;
  int64_t alike = 0;
  for (PodId pod : pods) alike += state_.pods[pod].shape == state_.pods[hardest].shape;
  if (alike > 1 && d.places < alike) {
    if (d.places_when_empty < alike) {
      return StrCat("more suitable nodes: even when empty, the nodes hold only ",
                    d.places_when_empty, " of its ", alike, " pods");
    }
    return RoomFor(alike - d.places, shape);
  }
  if (d.nearest == kNone) return "";
  const NodeState& node = state_.nodes[d.nearest];
  if (d.nearest_by_gpu) {
    const int64_t unhealthy = std::max<int64_t>(0, node.gpu_count - node.allocatable[kGpu]);
    return StrCat(d.nearest_lacks, " more free ", d.nearest_lacks == 1 ? "GPU" : "GPUs", " on ",
                  node.info.name, ", which has ", node.idle_now, " of ", node.gpu_count, " free",
                  unhealthy > 0 ? StrCat(", ", unhealthy, " unhealthy") : "");
  }
  return StrCat(d.nearest_lacks, "m more free CPU on ", node.info.name);
}

// The pod that is hardest to place speaks for the group.
PodId Explainer::Hardest(const std::vector<PodId>& pods) const {
  PodId hardest = pods.front();
  for (PodId pod : pods) {
    const CoreAmounts& a = state_.ShapeOf(pod).core;
    const CoreAmounts& b = state_.ShapeOf(hardest).core;
    if (std::pair(a[kGpu], a[kCpu]) > std::pair(b[kGpu], b[kCpu])) hardest = pod;
  }
  return hardest;
}

// The first member that something other than room keeps from starting, or null.
const PodState* Explainer::Blocked(const GroupState& group) const {
  if (std::none_of(group.sets.begin(), group.sets.end(),
                   [](const SetState& set) { return set.blocked > 0; })) {
    return nullptr;
  }
  for (PodId pod : group.members) {
    const PodState& member = state_.pods[pod];
    if (member.blocked && !member.gated && member.phase == PodPhase::kPending) return &member;
  }
  return nullptr;
}

const std::string* Explainer::Said(GroupId id) const {
  const VictimSearches& searches = context_.searches;
  if (const auto own = searches.said.find(id); own != searches.said.end()) return &own->second;
  const WaitingLine* line = state_.lists.waiting.LineOf(id);
  if (line == nullptr) return nullptr;
  const auto said = searches.said_of_line.find(line->number);
  return said == searches.said_of_line.end() ? nullptr : &said->second;
}

uint64_t Explainer::Summary(GroupId id) {
  const GroupState& group = state_.groups[id];
  Summing sum;
  const bool promised = std::any_of(group.sets.begin(), group.sets.end(),
                                    [](const SetState& set) { return set.promised > 0; });
  if (promised) {  // who waits, and where they were promised room
    const NodeState* first = nullptr;
    for (PodId pod : group.members) {
      const PodState& member = state_.pods[pod];
      if (member.phase != PodPhase::kPending || member.gated) continue;
      sum.Add(static_cast<uint64_t>(pod));
      if (member.promise == kNone) continue;
      sum.Add(static_cast<uint64_t>(member.promise));
      if (first == nullptr) first = &state_.nodes[member.promise];
    }
    if (first == nullptr) return 0;
    sum.Add(first->version);
    return sum.Total();
  }
  if (!Schedulable(state_, group)) return 0;
  int64_t pending = 0;
  for (const SetState& set : group.sets) {
    pending += set.pending;
    sum.Add(static_cast<uint64_t>(set.holding));
  }
  const Needed needed = NeededPods(state_, id);
  if (needed.short_set != kNone) return 0;
  std::vector<PodId> first = needed.met ? ElasticPods(state_, id) : needed.pods;
  if (first.empty()) return 0;
  if (needed.met) first.resize(1);
  if (!FitsQueues(state_, group, first, state_.PoolOf(id), Tense::kFuture)) return 0;
  const Diagnosis& d = nodes_.Diagnose(Hardest(first));
  if (TogetherMatters(group, first, d)) return 0;
  sum.Add(d.hash);
  sum.Add(static_cast<uint64_t>(pending));
  sum.Add(first.size());
  sum.Add(static_cast<uint64_t>(first.front()));
  if (const std::string* said = Said(id)) sum.Add(StableHash(*said));
  sum.Add(IsBeyondItsShare(id, first) ? 1 : 0);
  sum.Add(NodesHeldFor(id));
  return sum.Total();
}

// " Needs 2 GPUs of class large; 1 free, at most 1 on one node (n1)".
std::string Explainer::KindText(const std::vector<PodId>& pods,
                                const Shape& shape,
                                const Diagnosis& d) const {
  const int kind = KindOf(state_, shape);
  int64_t wanted = 0;
  for (PodId pod : pods) {
    for (const auto& [resource, amount] : state_.ShapeOf(pod).extended) {
      if (resource == kind) wanted += amount;
    }
  }
  int64_t most = 0;
  NodeId where = kNone;
  for (NodeId id : state_.index.by_rank) {
    const int64_t free = FreeOfKind(state_, state_.nodes[id], kind);
    if (free <= most) continue;
    most = free;
    where = id;
  }
  const std::string best =
      where == kNone || most == d.kind_free
          ? (where == kNone ? "" : StrCat(" on node ", state_.nodes[where].info.name))
          : StrCat(", at most ", most, " on one node (", state_.nodes[where].info.name, ")");
  // The conditions have been told with the nodes.
  const std::string_view name = state_.resource_names[kind];
  return StrCat(" Needs ", wanted, " ", name.substr(0, name.find(" with ")), "; ", d.kind_free,
                " free", best);
}

// " Needs 4 GPUs (2 pods x 2); 3 free".
std::string Explainer::NeedText(const std::vector<PodId>& pods,
                                PodId hardest,
                                const Diagnosis& d) const {
  int64_t gpus = 0;
  int64_t cpu = 0;
  int64_t extended = 0;
  bool equal = true;
  const Shape& shape = state_.ShapeOf(hardest);
  for (PodId pod : pods) {
    const Shape& its = state_.ShapeOf(pod);
    gpus += its.core[kGpu];
    cpu += its.core[kCpu];
    for (const auto& [resource, amount] : its.extended) {
      if (!shape.extended.empty() && resource == shape.extended.front().first) extended += amount;
    }
    equal = equal && state_.pods[pod].shape == state_.pods[hardest].shape;
  }
  const std::string count = pods.size() > 1 ? StrCat(" (", pods.size(), " pods)") : "";
  if (shape.by_kind) return KindText(pods, shape, d) + count;
  if (gpus > 0) {
    const bool alike = equal && pods.size() > 1;
    return StrCat(" Needs ", Plural(gpus, "GPU"),
                  alike ? StrCat(" (", pods.size(), " pods x ", shape.core[kGpu], ")") : count,
                  "; ", d.gpus_free, d.suits_any ? " free" : " free on suitable nodes");
  }
  if (shape.Shares()) {
    const std::string most =
        d.part_free >= kPpm ? "a whole one" : StrCat(d.part_free * 100 / kPpm, "% of one");
    const std::string on =
        shape.share_devices > 1 ? StrCat(" on each of ", shape.share_devices) : "";
    const std::string part =
        shape.share_mib > 0
            ? StrCat(shape.share_mib, " MiB of a GPU's memory")
            : StrCat(NumberText(static_cast<double>(shape.share_ppm) * 100 / kPpm), "% of a GPU");
    return StrCat(" Needs ", part, on, count, "; at most ", most, " is free");
  }
  if (extended > 0) {
    const std::string& name = state_.resource_names[shape.extended.front().first];
    return StrCat(" Needs ", ExtendedOfText(name, extended), count, "; ",
                  ExtendedText(name, d.extended_free), " free");
  }
  if (d.largest[kMemory] > 0 && shape.core[kMemory] > d.largest[kMemory]) {
    return StrCat(" Needs ", CoreText(kMemory, shape.core[kMemory]));
  }
  return cpu > 0 ? StrCat(" Needs ", CoreText(kCpu, cpu), count, "; ", CoreText(kCpu, d.cpu_free),
                          " free")
                 : "";
}

// `who` must share a value of the label `key`: how many of them fit into the best domain.
Explainer::DomainLack Explainer::LackingDomain(const std::string& key,
                                               const std::string& who,
                                               const std::vector<PodId>& pods,
                                               NodeId beside) {
  if (key.empty() || pods.empty()) return {};
  const std::string* fixed = nullptr;
  if (beside != kNone) {
    const Labels& labels = state_.nodes[beside].info.labels;
    if (const auto own = labels.find(key); own != labels.end()) fixed = &own->second;
  }
  struct Room {
    int64_t now = 0, when_empty = 0;
  };
  std::map<std::string_view, Room> places;
  const ShapeId shape = state_.pods[Hardest(pods)].shape;
  const OpenPools pools = nodes_.OpenTo(state_.pods[pods.front()].group);
  for (NodeId node_id : state_.index.by_rank) {
    const NodeState& node = state_.nodes[node_id];
    auto label = node.info.labels.find(key);
    if (label == node.info.labels.end() || !pools.Has(node)) continue;
    if (fixed != nullptr && label->second != *fixed) continue;
    if (state_.VerdictOf(shape, node_id).unfit != Unfit::kNone) continue;
    Room& room = places[label->second];
    room.now += PlacesOn(state_, state_.shapes[shape], node);
    room.when_empty += PlacesWhenEmpty(state_.shapes[shape], node);
  }
  if (places.empty()) {
    return {StrCat("; no suitable node has the label ", key),
            StrCat("suitable nodes with the label ", key)};
  }
  auto most = [&places](int64_t Room::*room) {
    return std::max_element(places.begin(), places.end(), [room](const auto& a, const auto& b) {
      return a.second.*room < b.second.*room;
    });
  };
  const auto best = most(&Room::now);
  const auto largest = most(&Room::when_empty);
  const auto count = static_cast<int64_t>(pods.size());
  if (best->second.now >= count) return {};
  DomainLack lack;
  const char* which = fixed == nullptr ? "with most room" : "others of them are in";
  lack.text = StrCat("; ", who, " must share one ", key, ", and the one ", which, ", ", best->first,
                     ", takes ", best->second.now);
  lack.change =
      largest->second.when_empty < count
          ? StrCat("a larger ", key, ": none there is takes more than ", largest->second.when_empty,
                   " of these ", count, " pods")
          : StrCat("room for ", Plural(count - best->second.now, "more pod"), " in ", best->first);
  return lack;
}

Explainer::DomainLack Explainer::LackingDomain(GroupId id, const std::vector<PodId>& pods) {
  const GroupState& group = state_.groups[id];
  if (!group.info) return {};
  // Where a member is that the domain has to be shared with; of the sets that are `own`.
  auto beside = [&](const std::function<bool(int32_t set)>& own) {
    for (PodId pod : group.members) {
      if (state_.pods[pod].Holds() && own(state_.pods[pod].set)) return state_.pods[pod].node;
    }
    return kNone;
  };
  DomainLack lack = LackingDomain(group.info->topology.required, "all of its pods", pods,
                                  beside([](int32_t) { return true; }));
  for (size_t i = 0; i < group.info->groups.size() && lack.text.empty(); ++i) {
    auto in_part = [&](int32_t set) { return group.sets[set].subgroup == static_cast<int32_t>(i); };
    std::vector<PodId> own;
    for (PodId pod : pods) {
      if (in_part(state_.pods[pod].set)) own.push_back(pod);
    }
    const SubGroup& part = group.info->groups[i];
    lack = LackingDomain(part.topology.required, StrCat("the pods of ", part.name), own,
                         beside(in_part));
  }
  for (size_t i = 0; i < group.sets.size() && lack.text.empty(); ++i) {
    auto in_set = [&](int32_t set) { return set == static_cast<int32_t>(i); };
    std::vector<PodId> own;
    for (PodId pod : pods) {
      if (in_set(state_.pods[pod].set)) own.push_back(pod);
    }
    const SetState& set = group.sets[i];
    lack =
        LackingDomain(set.topology.required, StrCat("the pods of ", set.name), own, beside(in_set));
  }
  return lack;
}

Explainer::DomainLack Explainer::LackingPool(GroupId id, const std::vector<PodId>& pods) {
  const OpenPools open = nodes_.OpenTo(id);
  const auto& closed = open.why_closed;
  if (pods.size() < 2 || std::count(closed.begin(), closed.end(), "") < 2) return {};
  struct Room {
    int64_t now = 0, when_empty = 0;
  };
  std::vector<Room> rooms(closed.size());
  const ShapeId shape = state_.pods[Hardest(pods)].shape;
  for (NodeId node_id : state_.index.by_rank) {
    const NodeState& node = state_.nodes[node_id];
    if (!open.Has(node) || state_.VerdictOf(shape, node_id).unfit != Unfit::kNone) continue;
    rooms[node.pool].now += PlacesOn(state_, state_.shapes[shape], node);
    rooms[node.pool].when_empty += PlacesWhenEmpty(state_.shapes[shape], node);
  }
  size_t best = 0;
  int64_t when_empty = 0;
  for (size_t p = 0; p < rooms.size(); ++p) {
    if (rooms[p].now > rooms[best].now) best = p;
    when_empty = std::max(when_empty, rooms[p].when_empty);
  }
  const auto count = static_cast<int64_t>(pods.size());
  const int64_t now = rooms[best].now;
  if (now >= count) return {};
  const std::string& name = state_.pools[best].name;
  const std::string where = name.empty() ? "the nodes of no node pool" : "node pool " + name;
  return {now == 0 ? "; all of its pods must run in one node pool, and none has room"
                   : StrCat("; all of its pods must run in one node pool, and ", where,
                            name.empty() ? " have" : " has", " room for only ", now, " of ", count),
          when_empty < count ? StrCat("a larger node pool: even when empty, none holds more than ",
                                      when_empty, " of its ", count, " pods")
                             : StrCat(RoomFor(count - now, state_.shapes[shape]),
                                      now == 0 ? " in one node pool" : StrCat(" in ", where))};
}

std::string Explainer::LackingTogether(GroupId id, const std::vector<PodId>& pods) {
  size_t most = 0;
  std::string text;
  for (const int pool : state_.PoolsFor(id)) {
    const NodeFilter* filter = state_.FilterOf(pool);
    Statement trial(state_);  // takes everything back
    size_t fit = 0;
    while (fit < pods.size() && PlaceOne(trial, state_, pods[fit], Tense::kNow, filter)) ++fit;
    if (fit == pods.size()) return "";
    if (fit < most || fit == 0) continue;
    most = fit;
    const SpreadMinima minima =
        ComputeSpreadMinima(state_, state_.pods[pods[fit]].shape, Tense::kNow);
    NodeLacks lacks;
    for (NodeId node : state_.index.by_rank) {
      if (filter == nullptr || (*filter)[node]) nodes_.CountLacks(pods[fit], node, minima, lacks);
    }
    text = StrCat("; ", fit, " of them fit together, and for the next ", LacksText(lacks));
  }
  return text;
}

size_t Explainer::NodesHeldFor(GroupId id) const {
  const auto& held = state_.held_nodes;
  return static_cast<size_t>(std::count_if(
      held.begin(), held.end(), [&](NodeId node) { return state_.nodes[node].held_for == id; }));
}

std::string Explainer::HeldText(GroupId id) const {
  const size_t own = NodesHeldFor(id);
  if (own == 0) return "";
  return StrCat("; it has waited long, so ", Plural(own, "node"), own == 1 ? " is" : " are",
                " held for it");
}

bool Explainer::OthersHoldMore(QueueId queue, int pool) {
  const auto [known, added] = hold_more_.try_emplace(pool);
  for (size_t id = 0; added && id < state_.queues.size(); ++id) {
    const QueueState& each = state_.queues[id];
    const int64_t due = context_.shares.Due(pool, static_cast<QueueId>(id))[kQueueGpu];
    if (each.children.empty() && each.pools[pool].used[kQueueGpu] > due) {
      known->second.push_back(static_cast<QueueId>(id));
    }
  }
  return std::any_of(known->second.begin(), known->second.end(),
                     [queue](QueueId other) { return other != queue; });
}

bool Explainer::IsBeyondItsShare(GroupId id, const std::vector<PodId>& pods) {
  if (state_.counts.known_queues < 2) return false;
  const QueueId queue = state_.groups[id].queue;
  const int pool = state_.PoolOf(id);
  return OthersHoldMore(queue, pool) &&
         !StaysWithinDue(context_, queue, pool, NeedOf(state_, pods));
}

void Explainer::ExplainRoom(GroupId id, const std::vector<PodId>& pods, Waiting& waiting) {
  const PodId hardest = Hardest(pods);
  const Diagnosis& d = nodes_.Diagnose(hardest);
  waiting.reason = d.nodes;
  waiting.reason += NeedText(pods, hardest, d);
  if (waiting.reason.ends_with('.')) waiting.reason.pop_back();
  DomainLack domain = LackingDomain(id, pods);
  if (domain.text.empty()) domain = LackingPool(id, pods);
  waiting.reason += domain.text;
  if (domain.text.empty() && TogetherMatters(state_.groups[id], pods, d)) {
    waiting.reason += LackingTogether(id, pods);
  }
  // Where no node suits the pods, stopping others would not help.
  const bool suits = d.largest != CoreAmounts{};
  const std::string* said = Said(id);
  if (suits && said != nullptr) waiting.reason += StrCat("; ", *said);
  if (suits && IsBeyondItsShare(id, pods)) {
    waiting.reason += StrCat("; with it project ", state_.queues[state_.groups[id].queue].name,
                             " would hold more than its fair share, so it reclaims nothing");
  }
  if (!MayPreempt(state_, id, pods)) {
    waiting.reason += state_.groups[id].may_preempt
                          ? "; it may not preempt others now: the preemptionPolicy of its pods is "
                            "Never, or they fail again and again"
                          : "; it may not preempt others: its preemptionPolicy is Never";
  }
  waiting.reason += HeldText(id) + '.';
  waiting.least_change = LeastChange(pods, hardest, d, domain);
}

void ExplainShortSet(const SetState& set, Waiting& waiting) {
  const int32_t here = set.holding + set.pending;
  waiting.reason = StrCat("pod set ", set.name.empty() ? "default" : set.name, " has ", here,
                          " of the ", set.Minimum(), " pods it needs to start");
  if (set.gated > 0) {
    waiting.reason += StrCat("; ", Plural(set.gated, "more pod"), " held by scheduling gates");
  }
  waiting.reason += '.';
  waiting.least_change = StrCat(Plural(set.Minimum() - here, "more pod"), " in the set");
  waiting.incomplete = set.gated == 0;
}

// Also while members beyond the minimum wait for room that they were promised.
bool HoldsItsMinimum(const GroupState& group) {
  int32_t holding = 0;
  for (const SetState& set : group.sets) {
    if (set.holding + set.moving < set.Minimum()) return false;
    holding += set.holding;
  }
  return group.known && holding > 0;
}

// The nodes of its promises, one for each pod.
std::string Explainer::ReservedText(const std::vector<NodeId>& nodes) const {
  const size_t others = std::set<NodeId>(nodes.begin(), nodes.end()).size() - 1;
  const std::string& first = state_.nodes[nodes.front()].info.name;
  return others == 0 ? StrCat("waits for terminating pods to leave node ", first,
                              ", which is reserved for it")
                     : StrCat("waits for terminating pods to leave node ", first, " and ",
                              Plural(others, "other"), ", which are reserved for it");
}

Waiting Explainer::Explain(GroupId id) {
  const GroupState& group = state_.groups[id];
  Waiting waiting;
  waiting.group = state_.GroupName(group);
  waiting.surplus = HoldsItsMinimum(group);
  std::vector<PodId> pods;
  std::vector<NodeId> reserved;
  for (PodId pod : group.members) {
    const PodState& member = state_.pods[pod];
    if (member.phase != PodPhase::kPending || member.gated) continue;
    if (member.promise != kNone) reserved.push_back(member.promise);
    pods.push_back(pod);
  }
  for (PodId pod : pods) waiting.pods.push_back(state_.pods[pod].key);
  if (!reserved.empty()) {
    waiting.reason = ReservedText(reserved);
    return waiting;
  }
  if (!group.known) {
    waiting.reason = StrCat("pod group ", group.key, " does not exist yet");
    waiting.incomplete = true;
    return waiting;
  }
  if (state_.QueueUnknown(group)) {
    waiting.reason = StrCat("project ", group.queue_name, " does not exist.");
    waiting.least_change =
        StrCat("project ", group.queue_name, " (swell project create ", group.queue_name, ')');
    return waiting;
  }
  Needed needed = NeededPods(state_, id);
  if (const PodState* blocked = Blocked(group)) {
    if (needed.short_set != kNone || (needed.met && ElasticPods(state_, id).empty())) {
      waiting.reason = StrCat("0/", state_.index.by_rank.size(),
                              " nodes are available: ", blocked->obstacle, ".");
      return waiting;
    }
  }
  if (needed.short_set != kNone) {
    ExplainShortSet(group.sets[needed.short_set], waiting);
    return waiting;
  }
  const std::vector<PodId> wanted = needed.met ? ElasticPods(state_, id) : needed.pods;
  if (wanted.empty()) return waiting;
  std::string why;
  const std::vector<PodId> first =
      needed.met ? std::vector<PodId>{wanted.front()} : wanted;  // elastic members come one by one
  if (!FitsQueues(state_, group, first, state_.PoolOf(id), Tense::kFuture, &why)) {
    waiting.reason = why + HeldText(id);
    return waiting;
  }
  ExplainRoom(id, first, waiting);
  return waiting;
}

}  // namespace

void ExplainWaiting(CycleContext& context) {
  State& state = context.state;
  Explainer explainer(context);
  state.lists.waiting.Settle(state);
  for (GroupId id : state.lists.waiting.TakeGone()) {
    // One that was placed and taken back within this cycle waits as before.
    if (state.GroupWaits(state.groups[id])) continue;
    state.groups[id].reason_hash = 0;
    state.groups[id].summary_hash = 0;
  }
  for (GroupId id : state.lists.waiting.InOrder(state)) {
    GroupState& group = state.groups[id];
    const uint64_t summary = explainer.Summary(id);
    if (summary != 0 && summary == group.summary_hash) continue;
    group.summary_hash = summary;
    Waiting waiting = explainer.Explain(id);
    if (waiting.reason.empty()) continue;
    const uint64_t who = StableHash(Join(waiting.pods, ","));
    const uint64_t told = StableHash(waiting.least_change, StableHash(waiting.reason, who));
    if (group.reason_hash == told) continue;
    group.reason_hash = told;
    context.result.waiting.push_back(std::move(waiting));
  }
}

}  // namespace swell::sched
