#include "base/sim_executor.h"

namespace swell {

void SimExecutor::Post(std::function<void()> fn) { posted_.push_back(std::move(fn)); }

TimerId SimExecutor::After(Duration delay, std::function<void()> fn) {
  TimerId id = next_id_++;
  int64_t due = now_.ns + (delay.count() > 0 ? delay.count() : 0);
  timers_.emplace(std::pair{due, id}, std::move(fn));
  due_.emplace(id, due);
  return id;
}

void SimExecutor::Cancel(TimerId id) {
  auto it = due_.find(id);
  if (it == due_.end()) return;
  timers_.erase({it->second, id});
  due_.erase(it);
}

size_t SimExecutor::RunPosted(size_t limit) {
  size_t ran = 0;
  while (!posted_.empty() && ran < limit) {
    auto fn = std::move(posted_.front());
    posted_.pop_front();
    fn();
    ++ran;
  }
  return ran;
}

bool SimExecutor::RunNextTimer(SteadyTime until) {
  if (timers_.empty() || timers_.begin()->first.first > until.ns) return false;
  auto node = timers_.extract(timers_.begin());
  due_.erase(node.key().second);
  if (node.key().first > now_.ns) now_.ns = node.key().first;
  node.mapped()();
  return true;
}

size_t SimExecutor::Advance(Duration span) {
  SteadyTime until = now_ + span;
  size_t ran = RunPosted();
  while (RunNextTimer(until)) ran += 1 + RunPosted();
  now_ = until;
  return ran;
}

bool SimExecutor::RunUntil(const std::function<bool()>& done, Duration limit) {
  SteadyTime until = now_ + limit;
  RunPosted();
  while (!done()) {
    if (!RunNextTimer(until)) {
      now_ = until;
      return done();
    }
    RunPosted();
  }
  return true;
}

}  // namespace swell
