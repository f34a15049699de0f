// Model: pictures of it for printing and metrics.
#include <algorithm>

#include "sched/model.h"
#include "sched/queues/fair_share.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

Model::PodView ViewOf(const State& state, const PodState& pod) {
  Model::PodView view;
  view.key = pod.key;
  if (pod.group != kNone) view.group = state.GroupName(state.groups[pod.group]);
  view.phase = pod.phase;
  if (pod.node != kNone) view.node = state.nodes[pod.node].info.name;
  if (pod.promise != kNone) view.nominated_node = state.nodes[pod.promise].info.name;
  view.gpu_devices = pod.devices.ToVector();
  view.assumed = pod.assumed;
  view.gpus = static_cast<double>(pod.charge[kQueueGpu]) / kPpm;
  view.cpus = static_cast<double>(pod.charge[kQueueCpu]) / 1000;
  return view;
}

// The parts of one quota or limit that the pools claim; the first pool shows the rest.
std::vector<int64_t> PartsOf(int64_t whole, const std::vector<int64_t>& claims) {
  std::vector<int64_t> parts(claims.size(), whole);
  if (whole < 0) return parts;
  for (size_t i = 0; i < claims.size(); ++i) {
    parts[i] = std::min(whole, claims[i]);
    whole -= parts[i];
  }
  parts[0] += whole;
  return parts;
}

constexpr double kUnits[] = {static_cast<double>(kPpm), 1000, 1};

// Sets what a queue with one share has of it in each pool, and of all pools together.
void ShowOneShare(const State& state,
                  const QueueShares& shares,
                  QueueId id,
                  Model::QueueView& view) {
  const QueueState& queue = state.queues[id];
  const auto shown = [](int64_t amount, int r) {
    return amount < 0 ? -1 : static_cast<double>(amount) / kUnits[r];
  };
  view.one_share = true;
  for (int r = 0; r < kQueueResources; ++r) {
    std::vector<int64_t> claims;
    for (int pool : state.pool_facts.live) {
      claims.push_back(std::max(queue.pools[pool].used[r], shares.Fair(pool, id)[r]));
    }
    const std::vector<int64_t> quota = PartsOf(queue.whole_quota[r], claims);
    const std::vector<int64_t> limit = PartsOf(queue.whole_limit[r], claims);
    for (size_t i = 0; i < claims.size(); ++i) {
      view.pools[i].resources[r].quota = shown(quota[i], r);
      view.pools[i].resources[r].limit = shown(limit[i], r);
    }
    view.resources[r].quota = shown(queue.whole_quota[r], r);
    view.resources[r].limit = shown(queue.whole_limit[r], r);
  }
}

}  // namespace

std::vector<Model::NodeView> Model::Nodes() const {
  state_->Refresh();
  std::vector<NodeView> views;
  for (NodeId id : state_->index.by_rank) {
    const NodeState& node = state_->nodes[id];
    NodeView view;
    view.name = node.info.name;
    view.gpus = static_cast<int>(node.allocatable[kGpu]);
    view.pool = state_->pools[node.pool].name;
    int promised = 0;
    for (int i = 0; i < node.gpu_count; ++i) {
      const Device& device = node.devices[i];
      const bool leaving = device.used_ppm > 0 && device.used_ppm == device.releasing_ppm;
      view.idle_gpus += device.used_ppm == 0;
      view.releasing_gpus += leaving;
      promised += leaving && device.promised_ppm > 0;
    }
    view.releasing_gpus -= promised;
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<Model::PodView> Model::Pods() const {
  std::vector<PodView> views;
  for (const PodState& pod : state_->pods) {
    if (!pod.key.empty()) views.push_back(ViewOf(*state_, pod));
  }
  std::sort(views.begin(), views.end(),
            [](const PodView& a, const PodView& b) { return a.key < b.key; });
  return views;
}

std::optional<Model::PodView> Model::Pod(std::string_view key) const {
  const PodId id = state_->FindPod(key);
  if (id == kNone) return std::nullopt;
  return ViewOf(*state_, state_->pods[id]);
}

std::string_view Model::QueueOfPod(std::string_view key) const {
  const PodId id = state_->FindPod(key);
  if (id == kNone || state_->pods[id].group == kNone) return {};
  return state_->queues[state_->groups[state_->pods[id].group].queue].name;
}

std::vector<Model::GroupView> Model::Groups() const {
  std::vector<GroupView> views;
  for (const GroupState& group : state_->groups) {
    if (!group.live || group.members.empty()) continue;
    GroupView& view = views.emplace_back();
    view.name = state_->GroupName(group);
    if (view.name.empty()) view.name = state_->pods[group.members.front()].key;
    view.queue = state_->queues[group.queue].name;
    view.creation = group.creation;
    for (const SetState& set : group.sets) view.minimum += set.min_member;
    for (const PodId id : group.members) {
      const PodState& pod = state_->pods[id];
      const bool holds = pod.Holds();
      view.members += holds || pod.phase == PodPhase::kPending;
      view.holding += holds;
      view.waiting += pod.Waits();
      if (holds) view.gpus += static_cast<double>(pod.charge[kQueueGpu]) / kPpm;
    }
  }
  return views;
}

std::vector<Model::QueueView> Model::Queues() const {
  constexpr const char* kNames[] = {"gpu", "cpu", "memory"};
  state_->Refresh();
  const QueueShares shares(*state_);
  auto add = [](double& sum, int64_t amount, double unit) {
    sum = amount < 0 || sum < 0 ? -1 : sum + static_cast<double>(amount) / unit;
  };
  std::vector<QueueView> views;
  for (size_t id = 0; id < state_->queues.size(); ++id) {
    const QueueState& queue = state_->queues[id];
    if (!queue.known || queue.name.empty()) continue;
    QueueView view;
    view.name = queue.name;
    for (int r = 0; r < kQueueResources; ++r) view.resources.push_back({.name = kNames[r]});
    for (int pool : state_->pool_facts.live) {
      QueueView::Pool& part = view.pools.emplace_back();
      part.name = state_->pools[pool].name;
      const QueuePool& own = queue.pools[pool];
      const QueueAmounts requested = shares.Requested(pool, static_cast<QueueId>(id));
      const QueueAmounts& fair = shares.Fair(pool, static_cast<QueueId>(id));
      for (int r = 0; r < kQueueResources; ++r) {
        part.resources.push_back({.name = kNames[r]});
        for (QueueView::Resource* to : {&part.resources[r], &view.resources[r]}) {
          add(to->fair_share, fair[r], kUnits[r]);
          add(to->quota, own.quota[r], kUnits[r]);
          add(to->limit, own.limit[r], kUnits[r]);
          add(to->allocated, own.used[r], kUnits[r]);
          add(to->requested, requested[r], kUnits[r]);
        }
      }
    }
    if (queue.one_share) ShowOneShare(*state_, shares, static_cast<QueueId>(id), view);
    views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(),
            [](const QueueView& a, const QueueView& b) { return a.name < b.name; });
  return views;
}

}  // namespace swell::sched
