#include "kube/process/state_writer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace swell::process {
namespace {

constexpr Duration kPatience = std::chrono::minutes(5);
constexpr Duration kPauseMax = std::chrono::seconds(16);

Duration PauseAfter(int tries) {
  return std::min<Duration>(kPauseMax, std::chrono::seconds(1 << std::min(tries - 1, 8)));
}

}  // namespace

void StateWriter::Write(const std::string& uid,
                        LeftState left,
                        const std::string& folder,
                        Callback on_delay,
                        Callback done) {
  State& state = states_[uid];
  state.left = std::move(left);
  state.folder = folder;
  state.begin = plugs_.clock.Steady();
  state.on_delay.push_back(std::move(on_delay));
  state.done.push_back(std::move(done));
  Try(uid);
}

bool StateWriter::Join(const std::string& uid, Callback on_delay, Callback done) {
  const auto it = states_.find(uid);
  if (it == states_.end()) return false;
  if (it->second.delay) on_delay(*it->second.delay);
  it->second.on_delay.push_back(std::move(on_delay));
  it->second.done.push_back(std::move(done));
  return true;
}

void StateWriter::WaitNoMore() {
  waits_no_more_ = true;
  std::vector<std::pair<std::string, Status>> waiting;
  for (const auto& [uid, state] : states_) {
    if (state.timer == kNoTimer) continue;
    plugs_.executor.Cancel(state.timer);
    waiting.emplace_back(uid, *state.delay);
  }
  for (const auto& [uid, why] : waiting) OnTried(uid, why);
}

SavingStates StateWriter::Saving() const {
  SavingStates saving{.states = static_cast<int64_t>(states_.size())};
  for (const auto& [uid, state] : states_) {
    saving.bytes += state.progress->bytes;
    saving.written += state.progress->written;
    if (!state.delay) continue;
    const Duration left = state.until - plugs_.clock.Steady();
    saving.delay = state.delay->message();
    saving.seconds_left = std::max<int64_t>(0, left / std::chrono::seconds(1));
  }
  return saving;
}

void StateWriter::Try(const std::string& uid) {
  State& state = states_.at(uid);
  state.timer = kNoTimer;
  plugs_.background(
      [executor = &plugs_.executor, write = plugs_.write, left = state.left, folder = state.folder,
       progress = state.progress,
       tried = scope_.Wrap([this, uid](const Status& status) { OnTried(uid, status); })] {
        const Status status = write(left, folder, *progress);
        executor->Post([tried, status] { tried(status); });
      });
}

void StateWriter::OnTried(const std::string& uid, const Status& status) {
  State& state = states_.at(uid);
  if (!MayBeTriedAgain(status)) return Finish(uid, status);
  const SteadyTime now = plugs_.clock.Steady();
  if (state.tries == 0) state.until = now + kPatience;
  if (!waits_no_more_ && now < state.until) return TryLater(uid, status);
  plugs_.drop(state.left);
  Finish(uid, status);
}

void StateWriter::TryLater(const std::string& uid, const Status& why) {
  State& state = states_.at(uid);
  const bool first = ++state.tries == 1;
  const Duration left = state.until - plugs_.clock.Steady();
  state.delay = why;
  state.timer = plugs_.executor.After(std::min(PauseAfter(state.tries), left),
                                      scope_.Wrap([this, uid] { Try(uid); }));
  if (!first) return;
  SWELL_LOG_WARNING("process", "state is persisted later", {"uid", uid}, {"error", why.ToString()});
  const std::vector<Callback> told = state.on_delay;
  for (const Callback& on_delay : told) on_delay(why);
}

void StateWriter::Finish(const std::string& uid, const Status& status) {
  const auto state = states_.extract(uid);
  if (status.ok()) {
    const Duration took = plugs_.clock.Steady() - state.mapped().begin;
    SWELL_LOG_INFO("process", "state persisted", {"uid", uid},
                   {"ms", std::to_string(took.count() / 1'000'000)});
  }
  for (const Callback& done : state.mapped().done) done(status);
}

}  // namespace swell::process
