#include "kube/node/health/progress_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace swell::node {
namespace {

constexpr std::string_view kMagic = "SWELLPR1";
constexpr size_t kRecordBytes = 96;
constexpr std::array<std::string_view, 7> kPhaseNames = {"init", "step", "eval", "save",
                                                         "load", "data", "done"};
constexpr uint64_t kCountMax = uint64_t{1} << 62;
// The speed is that of the last one to two minutes.
constexpr Duration kSpeedWindow = std::chrono::minutes(1);

uint64_t LittleEndian(std::string_view bytes, size_t from, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[from + i]);
  return value;
}

}  // namespace

std::optional<api::RankProgress> ParseProgressRecord(std::string_view bytes) {
  if (bytes.size() != kRecordBytes || !bytes.starts_with(kMagic)) return std::nullopt;
  const bool being_written = LittleEndian(bytes, 8, 4) % 2 != 0;
  const uint64_t phase = LittleEndian(bytes, 12, 4);
  if (being_written || phase >= kPhaseNames.size()) return std::nullopt;
  constexpr uint64_t kCountMax = uint64_t{1} << 53;
  auto count = [&](size_t from, size_t size) {
    return static_cast<int64_t>(std::min(LittleEndian(bytes, from, size), kCountMax));
  };
  api::RankProgress rank;
  rank.phase = kPhaseNames[phase];
  rank.step = count(16, 8);
  rank.total = count(24, 8);
  rank.epoch = count(40, 4);
  rank.epochs = count(44, 4);
  rank.rank = count(48, 4);
  rank.world = count(52, 4);
  rank.pid = count(56, 4);
  rank.repeated = count(60, 4);
  return rank;
}

OwnSums OwnSums::Of(std::string_view record) {
  auto sum = [record](size_t from) {
    return static_cast<int64_t>(std::min(LittleEndian(record, from, 8), kCountMax));
  };
  return {.steps = sum(64), .own_ns = sum(72), .whole_ns = sum(80), .elements = sum(88)};
}

void ProgressWatch::Measure(Rank& rank, const OwnSums& sums, bool same_group, SteadyTime now) {
  const OwnSums& from = rank.window;
  if (!same_group || sums.steps < from.steps) {
    // In another group a rank has other peers and another share of the work.
    rank.now.own = {};
  } else {
    const int64_t steps = sums.steps - from.steps;
    if (now - rank.window_from < kOwnWindow || steps < kOwnStepsLeast) return;
    const auto mean = [steps](int64_t now, int64_t then, double unit) {
      const double each = static_cast<double>(now - then) / static_cast<double>(steps) / unit;
      return std::max(0.0, std::round(each * 1000) / 1000);
    };
    constexpr double kNsPerMs = 1e6;
    rank.now.own = {.windows = rank.now.own.windows + 1,
                    .own_ms = mean(sums.own_ns, from.own_ns, kNsPerMs),
                    .step_ms = mean(sums.whole_ns, from.whole_ns, kNsPerMs),
                    .elements = mean(sums.elements, from.elements, 1)};
  }
  rank.window = sums;
  rank.window_from = now;
}

ProgressWatch::Phase ProgressWatch::PhaseOf(const api::RankProgress& rank) {
  const auto found = std::find(kPhaseNames.begin(), kPhaseNames.end(), rank.phase);
  return static_cast<Phase>(found - kPhaseNames.begin());
}

bool ProgressWatch::Read(const ProgressRecords& records, SteadyTime now, WallTime wall) {
  bool first_step = false;
  for (const auto& [file, bytes] : records) {
    const auto dead = dead_.find(file);
    if (dead != dead_.end() && dead->second == bytes) continue;
    auto known = ranks_.find(file);
    if (known != ranks_.end() && known->second.bytes == bytes) continue;
    auto read = ParseProgressRecord(bytes);
    if (!read) continue;
    if (known == ranks_.end() && ranks_.size() == api::kRanksPerPodMax) continue;
    read->file = file;
    read->changed = wall;
    const bool is_new = known == ranks_.end() || known->second.now.pid != read->pid;
    if (is_new) {
      const OwnSums sums = OwnSums::Of(bytes);
      // Short steps may all be done before the first reading; then the process has measured some.
      const bool stepped = sums.steps > 0;
      first_step = first_step || stepped;
      Rank fresh{.now = *read,
                 .changed = now,
                 .stepped = stepped,
                 .from_step = read->step,
                 .from = now,
                 .window = sums,
                 .window_from = now};
      known = ranks_.insert_or_assign(file, std::move(fresh)).first;
    } else {
      const bool stepped = known->second.stepped;
      const bool same_group = known->second.now.world == read->world;
      Change(known->second, std::move(*read), now);
      Measure(known->second, OwnSums::Of(bytes), same_group, now);
      first_step = first_step || stepped != known->second.stepped;
    }
    known->second.bytes = bytes;
  }
  return first_step;
}

void ProgressWatch::Change(Rank& rank, api::RankProgress read, SteadyTime now) {
  std::deque<Duration>& gaps = rank.gaps[PhaseOf(rank.now)];
  gaps.push_back(now - rank.changed);
  if (gaps.size() > kGapsKept) gaps.pop_front();
  rank.changed = now;
  // The step that a rank begins with, alone or in a group of another size, is not a step that it
  // made.
  const bool begins = !rank.stepped || read.world != rank.now.world;
  rank.stepped = rank.stepped || read.step > rank.now.step;
  read.steps_per_second = begins ? 0 : rank.now.steps_per_second;
  read.own = rank.now.own;
  // `Check` ends a stall, so that its end is told.
  read.stalled = rank.now.stalled;
  read.stack = std::move(rank.now.stack);
  if (begins || read.step < rank.from_step) {
    rank.from_step = read.step;
    rank.from = now;
  } else if (const Duration passed = now - rank.from; passed > Duration(0)) {
    const double seconds = std::chrono::duration<double>(passed).count();
    const auto steps = static_cast<double>(read.step - rank.from_step);
    if (steps > 0) read.steps_per_second = std::round(steps / seconds * 1000) / 1000;
    if (passed > 2 * kSpeedWindow && steps > 1) {
      // Half of the window goes, as if the speed had been the same all the time.
      rank.from_step += static_cast<int64_t>(steps / 2);
      rank.from = rank.from + passed / 2;
    }
  }
  rank.now = std::move(read);
}

Duration ProgressWatch::DeadlineOf(const Rank& rank) const {
  const Phase phase = PhaseOf(rank.now);
  const bool trains = phase == kStep || phase == kData;
  // The first step compiles, warms up and waits for peers.
  if (phase == kInit || (trains && !rank.stepped)) return kUnknownPhase;
  const Duration least = trains && bound_ ? *bound_ : kLeast;
  const std::deque<Duration>& gaps = rank.gaps[phase];
  if (gaps.size() < kGapsToLearn) {
    if (!trains) return kUnknownPhase;
    if (!bound_) return kUnknownStep;
  }
  if (gaps.empty()) return least;
  return std::max(least, kSafety * *std::max_element(gaps.begin(), gaps.end()));
}

bool ProgressWatch::Check(SteadyTime now) {
  bool changed = false;
  for (auto& [file, rank] : ranks_) {
    const Duration deadline = DeadlineOf(rank);
    rank.now.deadline_seconds = std::chrono::duration_cast<std::chrono::seconds>(deadline).count();
    const bool stalled = !rank.now.done() && now - rank.changed > deadline;
    changed = changed || stalled != rank.now.stalled;
    rank.now.stalled = stalled;
    if (!stalled) rank.now.stack.clear();
  }
  return changed;
}

void ProgressWatch::Forget() {
  for (auto& [file, rank] : ranks_) dead_[file] = std::move(rank.bytes);
  ranks_.clear();
}

void ProgressWatch::SetStack(int64_t file, std::string stack) {
  const auto found = ranks_.find(file);
  if (found != ranks_.end() && found->second.now.stalled)
    found->second.now.stack = std::move(stack);
}

std::vector<api::RankProgress> ProgressWatch::Ranks() const {
  std::vector<api::RankProgress> ranks;
  for (const auto& [file, rank] : ranks_) ranks.push_back(rank.now);
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return ranks;
}

}  // namespace swell::node
