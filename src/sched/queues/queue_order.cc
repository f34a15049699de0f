#include "sched/queues/queue_order.h"

#include <tuple>
#include <utility>

#include "base/check.h"

namespace swell::sched {
namespace {

// A queue that is due nothing of a resource and uses some comes after all that are due some.
constexpr double kUndueFactor = 1000;

double Share(int64_t amount, int64_t fair, int64_t total) {
  if (amount <= 0) return 0;
  if (fair > 0) return static_cast<double>(amount) / static_cast<double>(fair);
  return kUndueFactor * static_cast<double>(amount) /
         static_cast<double>(std::max<int64_t>(1, total));
}

}  // namespace

QueueAmounts NeedOf(const State& state, const std::vector<PodId>& pods) {
  QueueAmounts sum{};
  for (PodId pod : pods) {
    const QueueAmounts charge = state.ChargeOf(state.ShapeOf(pod), kNone);
    for (int r = 0; r < kQueueResources; ++r) sum[r] += charge[r];
  }
  return sum;
}

QueueOrder::QueueOrder(State& state, const QueueShares& shares, bool promised_first)
    : state_(state),
      shares_(shares),
      promised_first_(promised_first),
      lanes_(state.queues.size()) {}

void QueueOrder::Push(WaitingJob job) {
  const GroupState& group = state_.groups[job.group];
  const QueueId queue = group.queue;
  const bool above =
      job.had_turn || std::any_of(group.sets.begin(), group.sets.end(),
                                  [](const SetState& set) { return set.Surplus() > 0; });
  const bool waits_its_turn = !Promised(job);
  const JobKey key{promised_first_ && waits_its_turn,
                   -group.priority,
                   waits_its_turn,
                   job.surplus,
                   above,
                   group.place,
                   job.turn};
  CountPromised(queue, job, +1);
  std::set<HeldJob>& jobs = JobsOf(queue, group).jobs;
  const auto held = jobs.insert(jobs.end(), {key, std::move(job)});  // mostly they come in order
  ++size_;
  if (held == jobs.begin() || !waits_its_turn) RelistPath(queue);
}

bool QueueOrder::Promised(const WaitingJob& job) const {
  if (state_.lists.hinted.empty()) return false;
  return std::any_of(job.pods.begin(), job.pods.end(),
                     [this](PodId pod) { return state_.pods[pod].hint != kNone; });
}

QueueOrder::UserJobs& QueueOrder::JobsOf(QueueId queue, const GroupState& group) {
  const UserId user = state_.queues[queue].info.fair_to_users ? group.user : kNone;
  std::vector<UserJobs>& users = lanes_[queue].users;
  for (UserJobs& each : users) {
    if (each.user == user) return each;
  }
  return users.emplace_back(UserJobs{.user = user, .jobs = {}});
}

bool QueueOrder::GoesBefore(QueueId queue, const UserJobs& a, const UserJobs& b) const {
  const auto key = [&](const UserJobs& one) {
    const JobKey& head = one.jobs.begin()->key;
    const QueueAmounts& used = state_.queues[queue].UseOf(one.user).used;
    return std::tuple(head.behind_promised, head.negative_priority, head.not_promised,
                      used[kQueueGpu], used[kQueueCpu], head);
  };
  return key(a) < key(b);
}

const QueueOrder::UserJobs* QueueOrder::NextUser(QueueId queue) const {
  const UserJobs* next = nullptr;
  for (const UserJobs& each : lanes_[queue].users) {
    if (each.jobs.empty()) continue;
    if (next == nullptr || GoesBefore(queue, each, *next)) next = &each;
  }
  return next;
}

QueueOrder::UserJobs* QueueOrder::NextUser(QueueId queue) {
  return const_cast<UserJobs*>(std::as_const(*this).NextUser(queue));
}

const WaitingJob* QueueOrder::Head(QueueId queue) const {
  for (int depth = 0; depth < kQueueDepthMax; ++depth) {
    const Lane& lane = lanes_[queue];
    if (const UserJobs* next = NextUser(queue)) return &next->jobs.begin()->job;
    if (lane.served.empty()) return nullptr;
    queue = lane.served.begin()->second;
  }
  return nullptr;
}

QueueOrder::QueueKey QueueOrder::KeyOf(QueueId id, const WaitingJob& head) const {
  const QueueState& queue = state_.queues[id];
  const int pool = state_.PoolOf(head.group);
  const QueuePool& own = queue.pools[pool];
  const QueueAmounts& fair = shares_.Fair(pool, id);
  const QueueAmounts& total = shares_.Total(pool);
  bool over = false;
  bool within = true;
  bool undue = false;
  double with = 0;
  double without = 0;
  for (int r = 0; r < kQueueResources; ++r) {
    over |= own.used[r] > fair[r];
    if (own.quota[r] >= 0 && head.need[r] > 0) within &= own.used[r] + head.need[r] <= own.quota[r];
    undue |= fair[r] == 0 && own.used[r] > 0;
    with = std::max(with, Share(own.used[r] + head.need[r], fair[r], total[r]));
    without = std::max(without, Share(own.used[r], fair[r], total[r]));
  }
  return {lanes_[id].promised == 0,
          !Promised(head),
          over,
          !within,
          -queue.info.priority,
          undue,
          with,
          without,
          AllocatableShare(own, fair, kQueueGpu),
          queue.rank};
}

std::set<std::pair<QueueOrder::QueueKey, QueueId>>& QueueOrder::SiblingsOf(QueueId queue) {
  const QueueId parent = state_.queues[queue].parent;
  return parent == kNone ? roots_ : lanes_[parent].served;
}

void QueueOrder::Relist(QueueId queue) {
  Lane& lane = lanes_[queue];
  auto& siblings = SiblingsOf(queue);
  if (lane.listed) siblings.erase({lane.key, queue});
  lane.listed = false;
  const WaitingJob* head = Head(queue);
  if (head == nullptr) return;
  lane.key = KeyOf(queue, *head);
  lane.listed = true;
  siblings.insert({lane.key, queue});
}

void QueueOrder::RelistPath(QueueId queue) {
  for (int depth = 0; queue != kNone && depth < kQueueDepthMax; ++depth) {
    Relist(queue);
    queue = state_.queues[queue].parent;
  }
}

void QueueOrder::CountPromised(QueueId queue, const WaitingJob& job, int sign) {
  if (!Promised(job)) return;
  for (int depth = 0; queue != kNone && depth < kQueueDepthMax; ++depth) {
    lanes_[queue].promised += sign;
    queue = state_.queues[queue].parent;
  }
}

WaitingJob QueueOrder::Pop() {
  if (stale_ != kNone) RelistPath(stale_);
  SWELL_CHECK(!roots_.empty());
  QueueId queue = roots_.begin()->second;
  UserJobs* next = nullptr;
  while ((next = NextUser(queue)) == nullptr) queue = lanes_[queue].served.begin()->second;
  WaitingJob job = std::move(next->jobs.extract(next->jobs.begin()).value().job);
  --size_;
  CountPromised(queue, job, -1);
  stale_ = queue;
  return job;
}

void QueueOrder::Reorder() {
  if (stale_ != kNone) RelistPath(stale_);
  // Children before parents: a parent's key follows from its head.
  for (size_t id = 0; id < lanes_.size(); ++id) {
    const auto queue = static_cast<QueueId>(id);
    if (NextUser(queue) != nullptr) RelistPath(queue);
  }
  stale_ = kNone;
}

}  // namespace swell::sched
