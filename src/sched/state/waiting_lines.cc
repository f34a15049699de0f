#include "sched/state/waiting_lines.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/natural_order.h"
#include "sched/state/needs.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

// So many changes at once are made in one pass over the jobs, not one by one.
bool Many(size_t changes, size_t jobs) { return changes > 8 && changes > jobs / 16; }

// Whether nothing but room keeps the group from starting, and nothing of it has started.
bool AllWaits(const GroupState& group) {
  bool has_minimum = false;
  for (const SetState& set : group.sets) {
    has_minimum |= set.min_member > 0;
    if (set.holding + set.releasing + set.promised + set.succeeded + set.blocked > 0) return false;
  }
  // One that was moved takes its turn by what others were promised.
  const bool moved = group.moved_at.unix_ns != 0;
  return has_minimum && group.known && group.curve.empty() && !HasTopology(group) && !moved;
}

// Whether other pods' terms tell it from pods of its shape.
bool StandsOut(const State& state, const PodState& pod) {
  const Shape& shape = state.shapes[pod.shape];
  return pod.hint != kNone || shape.DependsOnPods() || !shape.anti_affinity.empty() ||
         !state.terms.labels(pod.labels).matching.empty();
}

// Makes the key that is equal for groups which the scheduler treats alike. False: it is like no
// other.
bool ReadKey(const State& state, const GroupState& group, std::vector<int64_t>& key) {
  if (!AllWaits(group)) return false;
  key = {group.queue,    group.user,
         group.priority, group.preemptible * 2 + group.may_preempt,
         group.home,     static_cast<int64_t>(group.sets.size())};
  for (const SetState& set : group.sets) {
    key.insert(key.end(), {set.min_member, set.pending, set.gated});
  }
  std::array<int64_t, 4> last{kNone};
  for (PodId id : group.members) {
    const PodState& pod = state.pods[id];
    if (!pod.Waits()) continue;
    if (StandsOut(state, pod)) return false;
    const std::array<int64_t, 4> own{pod.set, pod.shape, pod.may_preempt, pod.max_runtime.count()};
    if (own == last) {
      ++key.back();
      continue;
    }
    last = own;
    key.insert(key.end(), own.begin(), own.end());
    key.push_back(1);
  }
  return true;
}

}  // namespace

WaitingLines::Rank WaitingLines::RankOf(const State& state, GroupId id) {
  const GroupState& group = state.groups[id];
  Rank rank{-int64_t{group.priority}, group.creation.unix_ns, {}};
  NaturalBytes name(group.key);
  for (size_t i = 0; i < 16; ++i) {
    const int byte = name.Next();
    if (byte < 0) break;
    rank.name[i / 8] |= static_cast<uint64_t>(byte) << (56 - i % 8 * 8);
  }
  return rank;
}

bool WaitingLines::Before(const State& state, GroupId a, GroupId b) const {
  const Rank& left = places_[a].rank;
  const Rank& right = places_[b].rank;
  if (left != right) return left < right;
  return a != b && state.JobBefore(a, b);
}

size_t WaitingLines::FirstNotBefore(const State& state, const JobQueue& jobs, GroupId group) const {
  const auto at = std::lower_bound(jobs.begin(), jobs.end(), group,
                                   [&](GroupId a, GroupId b) { return Before(state, a, b); });
  return static_cast<size_t>(at - jobs.begin());
}

size_t WaitingLines::FirstAfter(const State& state, const JobQueue& jobs, GroupId group) const {
  const auto at = std::upper_bound(jobs.begin(), jobs.end(), group,
                                   [&](GroupId a, GroupId b) { return Before(state, a, b); });
  return static_cast<size_t>(at - jobs.begin());
}

const WaitingLine* WaitingLines::LineOf(GroupId group) const {
  const auto id = static_cast<size_t>(group);
  const int32_t line = id < places_.size() ? places_[id].line : kNone;
  return line < 0 ? nullptr : &lines_[line];
}

void WaitingLines::TouchAll() {
  for (GroupId id : alone_) Touch(id);
  for (const WaitingLine& line : lines_) {
    for (GroupId id : line.jobs) Touch(id);
  }
}

std::vector<GroupId> WaitingLines::TakeGone() { return std::exchange(gone_, {}); }

std::vector<GroupId> WaitingLines::InOrder(const State& state) const {
  std::vector<std::pair<Rank, GroupId>> all;
  all.reserve(size_);
  const auto add = [&](const JobQueue& jobs) {
    for (GroupId id : jobs) all.emplace_back(places_[id].rank, id);
  };
  add(alone_);
  for (const WaitingLine& line : lines_) add(line.jobs);
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    return a.second != b.second && state.JobBefore(a.second, b.second);
  });
  std::vector<GroupId> order(all.size());
  std::transform(all.begin(), all.end(), order.begin(), [](const auto& one) { return one.second; });
  return order;
}

// The line where the group belongs, made if it is the first; kNone: it does not wait.
int32_t WaitingLines::LineFor(const State& state, GroupId id) {
  const GroupState& group = state.groups[id];
  if (!state.GroupWaits(group)) return kNone;
  if (apart_ || !ReadKey(state, group, key_)) return kAlone;
  // Mostly those that come together are alike.
  if (last_line_ != kNone && lines_[last_line_].key == key_) return last_line_;
  const auto [known, is_new] = by_key_.try_emplace(key_, kNone);
  if (!is_new) return last_line_ = known->second;
  if (free_lines_.empty()) {
    free_lines_.push_back(static_cast<int32_t>(lines_.size()));
    lines_.emplace_back();
  }
  known->second = free_lines_.back();
  free_lines_.pop_back();
  lines_[known->second].key = known->first;
  lines_[known->second].number = ++last_number_;
  return last_line_ = known->second;
}

void WaitingLines::Drop(const std::map<int32_t, std::vector<GroupId>>& leavers) {
  for (const auto& [line, groups] : leavers) {
    JobQueue& jobs = JobsOf(line);
    if (Many(groups.size(), jobs.size())) {
      std::vector<GroupId> sorted = groups;
      std::sort(sorted.begin(), sorted.end());
      std::erase_if(jobs, [&sorted](GroupId id) {
        return std::binary_search(sorted.begin(), sorted.end(), id);
      });
      continue;
    }
    for (GroupId id : groups) {
      // What else the order follows from may have changed: equal ranks are looked through.
      const Rank& rank = places_[id].rank;
      auto at = std::lower_bound(jobs.begin(), jobs.end(), rank,
                                 [this](GroupId a, const Rank& b) { return places_[a].rank < b; });
      at = std::find(at, jobs.end(), id);
      SWELL_CHECK(at != jobs.end());
      jobs.erase(at);
    }
  }
}

void WaitingLines::Insert(const State& state, JobQueue& jobs, std::vector<GroupId>& more) {
  const auto before = [&](GroupId a, GroupId b) { return Before(state, a, b); };
  if (!Many(more.size(), jobs.size())) {
    for (GroupId id : more) {
      jobs.insert(jobs.begin() + static_cast<std::ptrdiff_t>(FirstNotBefore(state, jobs, id)), id);
    }
    return;
  }
  std::sort(more.begin(), more.end(), before);
  JobQueue all;
  std::merge(jobs.begin(), jobs.end(), more.begin(), more.end(), std::back_inserter(all), before);
  jobs = std::move(all);
}

// A line without jobs has no need to read.
void WaitingLines::ReadNeeds(const State& state) {
  for (int32_t id : stale_lines_) {
    WaitingLine& line = lines_[id];
    line.stale = false;
    if (line.jobs.empty()) continue;
    const GroupId first = line.jobs.front();
    const std::vector<PodId> pods = NeededPods(state, first).pods;
    line.need = {.complete = !pods.empty(),
                 .may_preempt = MayPreempt(state, first, pods),
                 .amounts = NeedOf(state, pods),
                 .gpu_ppm = GpuPpmOf(state, pods)};
  }
  stale_lines_.clear();
}

void WaitingLines::Settle(const State& state) {
  if (touched_.empty()) return;
  // All leave before the first comes: lines are searched in an order that changes must not disturb.
  std::map<int32_t, std::vector<GroupId>> leavers, comers;
  for (GroupId id : touched_) {
    Place& place = places_[id];
    place.touched = false;
    const bool moved = std::exchange(place.moved, false);
    const int32_t line = LineFor(state, id);
    if (line == kNone && place.line == kNone) continue;
    // The same key may stand for another shape by now, and the same shape for another charge.
    if (line >= 0 && !std::exchange(lines_[line].stale, true)) stale_lines_.push_back(line);
    const Rank rank = line == kNone ? place.rank : RankOf(state, id);
    if (line == place.line && rank == place.rank && !moved) continue;
    if (place.line != kNone) leavers[place.line].push_back(id);
    if (line != kNone) comers[line].push_back(id);
    if (line == kNone) gone_.push_back(id);
  }
  touched_.clear();
  Drop(leavers);
  for (const auto& [line, groups] : leavers) {
    size_ -= groups.size();
    for (GroupId id : groups) places_[id].line = kNone;
  }
  for (auto& [line, groups] : comers) {
    size_ += groups.size();
    for (GroupId id : groups) {
      places_[id].line = line;
      places_[id].rank = RankOf(state, id);
    }
    Insert(state, JobsOf(line), groups);
  }
  ReadNeeds(state);
  for (const auto& [line, groups] : leavers) {
    if (line == kAlone || !lines_[line].jobs.empty()) continue;
    by_key_.erase(lines_[line].key);
    lines_[line].key.clear();
    free_lines_.push_back(line);
  }
}

}  // namespace swell::sched
