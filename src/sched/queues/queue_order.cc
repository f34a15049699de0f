#include "sched/queues/queue_order.h"

#include <tuple>
#include <utility>

#include "base/check.h"

namespace swell::sched {
namespace {

// A queue that is due nothing of a resource and uses some comes after all that are due some.
constexpr double kUndueFactor = 1000;
// How long work that was moved may take to stop and come back.
constexpr Duration kComesBack = std::chrono::minutes(10);

double Share(int64_t amount, int64_t fair, int64_t total) {
  if (amount <= 0) return 0;
  if (fair > 0) return static_cast<double>(amount) / static_cast<double>(fair);
  return kUndueFactor * static_cast<double>(amount) /
         static_cast<double>(std::max<int64_t>(1, total));
}

}  // namespace

QueueOrder::QueueOrder(State& state, const QueueShares& shares, bool promised_first)
    : state_(state),
      shares_(shares),
      promised_first_(promised_first),
      lanes_(state.queues.size()) {}

bool QueueOrder::JobLess::Less(const JobKey& a, const JobKey& b) const {
  if (a.Class() != b.Class()) return a.Class() < b.Class();
  if (a.group == b.group) return a.turn < b.turn;
  return state->lists.waiting.Before(*state, a.group, b.group);
}

QueueOrder::JobKey QueueOrder::KeyOf(const WaitingJob& job) const {
  const GroupState& group = state_.groups[job.group];
  const bool above =
      job.had_turn || std::any_of(group.sets.begin(), group.sets.end(),
                                  [](const SetState& set) { return set.Surplus() > 0; });
  const bool waits_its_turn = !Promised(job);
  return {promised_first_ && waits_its_turn,
          waits_its_turn ? -PriorityOf(group) : -group.priority,
          waits_its_turn,
          job.surplus,
          above,
          job.group,
          job.turn};
}

int32_t QueueOrder::PriorityOf(const GroupState& group) const {
  int32_t least = group.priority;
  const bool moved = group.moved_at.unix_ns != 0 && state_.cycle.now - group.moved_at < kComesBack;
  if (!moved || state_.lists.hinted.empty()) return least;
  for (PodId id : state_.lists.hinted.Members()) {
    const PodState& pod = state_.pods[id];
    const GroupState& promised = state_.groups[pod.group];
    if (pod.phase == PodPhase::kPending && promised.queue == group.queue) {
      least = std::min(least, promised.priority);
    }
  }
  return least;
}

void QueueOrder::Push(WaitingJob job) {
  const GroupState& group = state_.groups[job.group];
  const QueueId queue = group.queue;
  const JobKey key = KeyOf(job);
  CountPromised(queue, job, +1);
  auto& jobs = JobsOf(queue, group).jobs;
  // Mostly they come in order.
  const auto held = jobs.insert(jobs.end(), HeldJob{.key = key, .job = std::move(job)});
  ++size_;
  if (held == jobs.begin() || !key.not_promised) NotePushed(queue);
}

bool QueueOrder::PushLine(const WaitingLine& line, const std::set<GroupId>& but) {
  HeldJob held{.key = {}, .job = {.need = line.need.amounts}, .line = &line.jobs, .but = &but};
  if (!FindNext(held)) return false;
  const GroupState& group = state_.groups[held.job.group];
  auto& its = JobsOf(group.queue, group).jobs;
  const auto listed = its.insert(std::move(held)).first;
  if (listed == its.begin()) NotePushed(group.queue);
  ++size_;
  return true;
}

bool QueueOrder::FindNext(HeldJob& held) const {
  const JobQueue& jobs = *held.line;
  while (held.at < jobs.size() && held.but->contains(jobs[held.at])) ++held.at;
  if (held.at == jobs.size()) return false;
  held.job.group = jobs[held.at];
  held.key = KeyOf(held.job);
  return true;
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
  UserJobs& fresh = users.emplace_back(
      UserJobs{.user = user, .jobs = std::set<HeldJob, JobLess>(JobLess{&state_}), .aside = {}});
  ReadUse(queue, fresh);
  return fresh;
}

void QueueOrder::ReadUse(QueueId queue, UserJobs& jobs) const {
  if (jobs.user == kNone) return;
  const QueueAmounts& used = state_.queues[queue].UseOf(jobs.user).used;
  jobs.gpus = used[kQueueGpu];
  jobs.cpus = used[kQueueCpu];
}

bool QueueOrder::GoesBefore(const UserJobs& a,
                            const JobKey& job,
                            const UserJobs& b,
                            const JobKey& other) const {
  const auto key = [](const UserJobs& user, const JobKey& head) {
    return std::tuple(head.behind_promised, head.negative_priority, head.not_promised, user.gpus,
                      user.cpus);
  };
  const auto left = key(a, job);
  const auto right = key(b, other);
  return left != right ? left < right : JobLess{&state_}.Less(job, other);
}

const QueueOrder::UserJobs* QueueOrder::NextUser(QueueId queue) const {
  const UserJobs* next = nullptr;
  for (const UserJobs& each : lanes_[queue].users) {
    if (each.jobs.empty()) continue;
    if (next == nullptr ||
        GoesBefore(each, each.jobs.begin()->key, *next, next->jobs.begin()->key)) {
      next = &each;
    }
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

void QueueOrder::NotePushed(QueueId queue) {
  if (!std::exchange(lanes_[queue].pushed, true)) pushed_.push_back(queue);
}

void QueueOrder::RelistPushed() {
  for (QueueId queue : std::exchange(pushed_, {})) {
    lanes_[queue].pushed = false;
    RelistPath(queue);
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
  RelistPushed();
  SWELL_CHECK(!roots_.empty());
  QueueId queue = roots_.begin()->second;
  UserJobs* next = nullptr;
  while ((next = NextUser(queue)) == nullptr) queue = lanes_[queue].served.begin()->second;
  auto node = next->jobs.extract(next->jobs.begin());
  HeldJob& held = node.value();
  WaitingJob job = held.line == nullptr ? std::move(held.job) : held.job;
  stale_ = queue;
  popped_user_ = next->user;
  popped_ = held.key;
  popped_line_.reset();
  if (held.line == nullptr) {
    CountPromised(queue, job, -1);
  } else if (++held.at; FindNext(held)) {
    job.more_alike = true;
    popped_line_ = next->jobs.insert(std::move(node)).position;
    return job;
  }
  --size_;
  return job;
}

void QueueOrder::SetAside() {
  if (!popped_line_) return;
  UserJobs* user = nullptr;
  for (UserJobs& each : lanes_[stale_].users) {
    if (each.user == popped_user_) user = &each;
  }
  SWELL_CHECK(user != nullptr);
  user->aside.push_back(std::move(user->jobs.extract(*popped_line_).value()));
  with_aside_.insert(stale_);
  popped_line_.reset();
  --size_;
}

QueueId QueueOrder::RootOf(QueueId queue) const {
  for (int depth = 0; state_.queues[queue].parent != kNone && depth < kQueueDepthMax; ++depth) {
    queue = state_.queues[queue].parent;
  }
  return queue;
}

// Whether all of the line had their turns; else it begins with the first that had not.
bool QueueOrder::HadTurn(const UserJobs& user, HeldJob& held, const Turn& turn) const {
  const auto key = [](const UserJobs& its, const JobKey& job) {
    return std::tuple(job.behind_promised, job.negative_priority, job.not_promised, its.gpus,
                      its.cpus, job.surplus, job.above_minimum);
  };
  const auto own = key(user, held.key);
  const auto last = key(*turn.user, turn.key);
  if (own != last) return own < last;
  held.at = std::max(held.at, state_.lists.waiting.FirstAfter(state_, *held.line, turn.key.group));
  return !FindNext(held);
}

// A job that was set aside would have had its turn as soon as those before it in its queue had
// theirs: its line had been served before jobs of other queues, which wait longer.
void QueueOrder::BringBack(QueueId queue) {
  Lane& lane = lanes_[queue];
  Turn turn;
  if (queue == stale_) {
    for (const UserJobs& each : lane.users) {
      if (each.user == popped_user_) turn = {&each, popped_};
    }
  } else if (const UserJobs* next = NextUser(queue)) {
    turn = {next, next->jobs.begin()->key};
  }
  std::vector<std::pair<UserJobs*, HeldJob>> back;
  for (UserJobs& user : lane.users) {
    for (HeldJob& held : std::exchange(user.aside, {})) {
      if (turn.user != nullptr && !HadTurn(user, held, turn)) back.emplace_back(&user, held);
    }
  }
  for (auto& [user, held] : back) {
    user->jobs.insert(std::move(held));
    ++size_;
  }
}

void QueueOrder::Started() {
  const QueueId root = RootOf(stale_);
  for (auto it = with_aside_.begin(); it != with_aside_.end();) {
    const QueueId queue = *it;
    if (RootOf(queue) != root) {
      ++it;
      continue;
    }
    it = with_aside_.erase(it);
    BringBack(queue);
    if (queue != stale_) RelistPath(queue);
  }
  for (UserJobs& user : lanes_[stale_].users) ReadUse(stale_, user);
}

void QueueOrder::Reorder() {
  // Children before parents: a parent's key follows from its head.
  for (size_t id = 0; id < lanes_.size(); ++id) {
    const auto queue = static_cast<QueueId>(id);
    if (lanes_[id].users.empty()) continue;
    BringBack(queue);
    for (UserJobs& user : lanes_[id].users) ReadUse(queue, user);
    RelistPath(queue);
  }
  with_aside_.clear();
  stale_ = kNone;
}

}  // namespace swell::sched
