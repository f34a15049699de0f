#include "elastic/shard_ledger.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/median.h"
#include "base/random.h"
#include "base/strings.h"

namespace swell::elastic {
namespace {

constexpr int64_t kRecordsMax = int64_t{1} << 48;
constexpr int64_t kEpochsMax = 1'000'000;
constexpr int64_t kSnapshotVersion = 1;
// How much the last range weighs in a worker's speed.
constexpr double kSpeedWeight = 0.3;

Status Wrong(std::string_view field, int64_t value, std::string_view message) {
  return {Code::kInvalid, StrCat(field, ": Invalid value: ", value, ": ", message)};
}

Status Within(std::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return Status::Ok();
  return Wrong(field, value, StrCat("must be between ", least, " and ", most));
}

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

json::Value PrintRange(const Range& range) {
  return json::Array{range.epoch, range.start, range.end, range.tries};
}

// Four numbers, as PrintRange writes them.
bool ReadRange(const json::Value& value, const LedgerOptions& options, Range& range) {
  if (!value.is_array() || value.get_array().size() != 4) return false;
  std::array<int64_t, 4> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const json::Value& one = value.get_array()[i];
    if (!one.is_number()) return false;
    boost::json::error_code error;
    numbers[i] = one.to_number<int64_t>(error);
    if (error) return false;
  }
  range = {numbers[0], numbers[1], numbers[2], numbers[3]};
  return range.epoch >= 0 && range.epoch < options.epochs && range.start >= 0 &&
         range.start < range.end && range.end <= options.records && range.tries >= 0;
}

}  // namespace

// A Feistel network over the next power of four, walked until it lands inside.
int64_t Shuffled(int64_t index, int64_t count, uint64_t seed) {
  SWELL_CHECK(index >= 0 && index < count);
  int half = 1;
  while ((int64_t{1} << (2 * half)) < count) ++half;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto once = [&](uint64_t value) {
    uint64_t left = value >> half, right = value & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = Random(seed ^ (right * 0x9e3779b97f4a7c15ULL) ^ (round << 56)).Next();
      const uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    return (left << half) | right;
  };
  uint64_t value = once(static_cast<uint64_t>(index));
  // A cycle of a permutation that begins inside comes back inside.
  while (value >= static_cast<uint64_t>(count)) value = once(value);
  return static_cast<int64_t>(value);
}

Status LedgerOptions::Check() const {
  SWELL_RETURN_IF_ERROR(Within("records", records, 1, kRecordsMax));
  SWELL_RETURN_IF_ERROR(Within("recordsPerTask", records_per_task, 1, kRecordsMax));
  SWELL_RETURN_IF_ERROR(Within("epochs", epochs, 1, kEpochsMax));
  if (records > kRecordsMax / epochs) {
    return Wrong("epochs", epochs, StrCat("with ", records, " records must make at most 2^48"));
  }
  SWELL_RETURN_IF_ERROR(Within("triesMax", tries_max, 1, 1000));
  SWELL_RETURN_IF_ERROR(Within("hangFactor", hang_factor, 1, 1'000'000));
  SWELL_RETURN_IF_ERROR(Within("workersMax", workers_max, 1, 1'000'000));
  const int64_t day_ms = 86'400'000;
  SWELL_RETURN_IF_ERROR(
      Within("hangFloorMs", hang_floor / std::chrono::milliseconds(1), 1, day_ms));
  return Within("workerTimeoutMs", worker_timeout / std::chrono::milliseconds(1), 1, day_ms);
}

ShardLedger::ShardLedger(LedgerOptions options, int64_t first_lease)
    : options_(options), next_lease_(std::max<int64_t>(first_lease, 1)) {
  SWELL_CHECK(options_.Check().ok());
}

int64_t ShardLedger::TasksPerEpoch() const {
  return (options_.records + options_.records_per_task - 1) / options_.records_per_task;
}

Status ShardLedger::Alive(std::string_view worker, WallTime now) {
  auto it = workers_.find(worker);
  if (it == workers_.end()) {
    if (static_cast<int64_t>(workers_.size()) >= options_.workers_max) {
      return {Code::kTooManyRequests,
              StrCat("worker ", Quote(worker), ": there are ", options_.workers_max, " already")};
    }
    it = workers_.emplace(std::string(worker), Worker()).first;
  }
  it->second.seen = std::max(it->second.seen, now);
  return Status::Ok();
}

bool ShardLedger::TakeRange(Range& range) {
  if (!returned_.empty()) {
    range = returned_.front();
    returned_.pop_front();
    return true;
  }
  if (epoch_ >= options_.epochs) return false;
  int64_t task = next_++;
  if (options_.shuffle) {
    task = Shuffled(task, TasksPerEpoch(),
                    options_.seed ^ (static_cast<uint64_t>(epoch_ + 1) * 0xd1342543de82ef95ULL));
  }
  range = {.epoch = epoch_,
           .start = task * options_.records_per_task,
           .end = std::min(options_.records, (task + 1) * options_.records_per_task)};
  if (next_ == TasksPerEpoch()) {
    next_ = 0;
    ++epoch_;
  }
  return true;
}

Result<Handout> ShardLedger::Next(std::string_view worker, WallTime now) {
  SWELL_RETURN_IF_ERROR(Alive(worker, now));
  Handout handout;
  if (!failure_.empty()) {
    handout.kind = Handout::Kind::kFailed;
    return handout;
  }
  Range range;
  if (!TakeRange(range)) {
    handout.kind = leases_.empty() ? Handout::Kind::kFinished : Handout::Kind::kWait;
    return handout;
  }
  handout.kind = Handout::Kind::kLease;
  handout.lease = {.id = next_lease_++,
                   .worker = std::string(worker),
                   .range = range,
                   .since = now,
                   .begun = now};
  leases_.emplace_hint(leases_.end(), handout.lease.id, handout.lease);
  workers_.find(worker)->second.leases.insert(handout.lease.id);
  ++handed_out_;
  return handout;
}

Result<std::map<int64_t, Lease>::iterator> ShardLedger::Held(std::string_view worker,
                                                             int64_t lease) {
  auto it = leases_.find(lease);
  if (it == leases_.end() || it->second.worker != worker) {
    return Status(Code::kNotFound,
                  StrCat("task ", lease, " is not held by worker ", Quote(worker)));
  }
  return it;
}

void ShardLedger::EndLease(std::map<int64_t, Lease>::iterator lease) {
  if (auto worker = workers_.find(lease->second.worker); worker != workers_.end()) {
    worker->second.leases.erase(lease->first);
  }
  leases_.erase(lease);
}

Status ShardLedger::Progress(std::string_view worker, int64_t lease, int64_t done, WallTime now) {
  SWELL_RETURN_IF_ERROR(Alive(worker, now));
  SWELL_ASSIGN_OR_RETURN(auto it, Held(worker, lease));
  Lease& held = it->second;
  if (done < held.done || done > held.range.size()) {
    return Wrong("done", done, StrCat("must be between ", held.done, " and ", held.range.size()));
  }
  const int64_t more = done - held.done;
  held.done = done;
  done_ += more;
  if (more > 0) held.since = std::max(held.since, now);
  Worker& who = workers_.find(worker)->second;
  who.records += more;
  if (done < held.range.size()) return Status::Ok();
  const Duration took = std::max(now - held.begun, Duration(std::chrono::microseconds(1)));
  slowest_ = std::max(slowest_, took);
  const double speed = static_cast<double>(held.range.size()) / Seconds(took);
  who.records_per_s = who.records_per_s == 0
                          ? speed
                          : kSpeedWeight * speed + (1 - kSpeedWeight) * who.records_per_s;
  EndLease(it);
  return Status::Ok();
}

// `sure`: nobody used more records of it than were told. `counts`: as a try.
void ShardLedger::GiveBack(std::map<int64_t, Lease>::iterator lease, Records records, Try tried) {
  Range range = lease->second.range;
  range.start += lease->second.done;
  if (tried == Try::kCounts) ++range.tries;
  if (records == Records::kUncertain && !options_.exact_progress) repeated_max_ += range.size();
  ++returned_count_;
  returned_.push_back(range);
  EndLease(lease);
}

Status ShardLedger::Failed(std::string_view worker,
                           int64_t lease,
                           std::string_view why,
                           WallTime now) {
  SWELL_RETURN_IF_ERROR(Alive(worker, now));
  SWELL_ASSIGN_OR_RETURN(auto it, Held(worker, lease));
  const Range& range = it->second.range;
  if (range.tries + 1 >= options_.tries_max && failure_.empty()) {
    failure_ = StrCat("records ", range.start + it->second.done, " to ", range.end, " of epoch ",
                      range.epoch + 1, " failed ", range.tries + 1, " times, the last time on ",
                      worker, ": ", why);
  }
  GiveBack(it, Records::kReported, Try::kCounts);
  return Status::Ok();
}

bool ShardLedger::HoldsOnly(std::string_view worker, const std::vector<int64_t>& leases) {
  auto it = workers_.find(worker);
  if (it == workers_.end()) return false;
  const std::set<int64_t> held = it->second.leases;
  bool changed = false;
  for (int64_t id : held) {
    if (std::find(leases.begin(), leases.end(), id) != leases.end()) continue;
    GiveBack(leases_.find(id), Records::kUncertain, Try::kFree);
    changed = true;
  }
  return changed;
}

void ShardLedger::Drop(std::string_view worker, Records records) {
  auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  const std::set<int64_t> held = it->second.leases;
  for (int64_t id : held) GiveBack(leases_.find(id), records, Try::kFree);
  workers_.erase(it);
}

void ShardLedger::Leave(std::string_view worker, WallTime) { Drop(worker, Records::kReported); }

void ShardLedger::Lost(std::string_view worker, WallTime) { Drop(worker, Records::kUncertain); }

Duration ShardLedger::HangAfter() const {
  constexpr Duration kMost = std::chrono::hours(24);
  const Duration by_slowest =
      slowest_ > kMost / options_.hang_factor ? kMost : slowest_ * options_.hang_factor;
  return std::max(options_.hang_floor, by_slowest);
}

ShardLedger::Expired ShardLedger::FindExpired(WallTime now) const {
  Expired expired;
  for (const auto& [name, worker] : workers_) {
    if (now - worker.seen > options_.worker_timeout) expired.lost.push_back(name);
  }
  const Duration limit = HangAfter();
  for (const auto& [id, lease] : leases_) {
    if (now - lease.since > limit) expired.hung.push_back(id);
  }
  return expired;
}

void ShardLedger::Expire(const Expired& expired) {
  for (const std::string& name : expired.lost) Drop(name, Records::kUncertain);
  for (int64_t id : expired.hung) {
    auto it = leases_.find(id);
    if (it == leases_.end()) continue;
    const Lease& lease = it->second;
    if (lease.range.tries + 1 >= options_.tries_max && failure_.empty()) {
      failure_ = StrCat("records ", lease.range.start + lease.done, " to ", lease.range.end,
                        " of epoch ", lease.range.epoch + 1, " hung ", lease.range.tries + 1,
                        " times, the last time on ", lease.worker);
    }
    GiveBack(it, Records::kUncertain, Try::kCounts);
  }
}

void ShardLedger::ForgiveSilence(WallTime now) {
  for (auto& [name, worker] : workers_) worker.seen = std::max(worker.seen, now);
  for (auto& [id, lease] : leases_) lease.since = std::max(lease.since, now);
}

void ShardLedger::ReturnLeases() {
  while (!leases_.empty()) GiveBack(leases_.begin(), Records::kReported, Try::kFree);
}

std::vector<WorkerView> ShardLedger::Workers(WallTime now) const {
  std::vector<double> speeds;
  for (const auto& [name, worker] : workers_) {
    if (worker.records_per_s > 0) speeds.push_back(worker.records_per_s);
  }
  const double median = UpperMedian(std::move(speeds));
  std::vector<WorkerView> views;
  views.reserve(workers_.size());
  for (const auto& [name, worker] : workers_) {
    views.push_back({.name = name,
                     .leases = static_cast<int64_t>(worker.leases.size()),
                     .records = worker.records,
                     .records_per_s = worker.records_per_s,
                     .silent = now - worker.seen,
                     .straggler = worker.records_per_s > 0 && worker.records_per_s < median / 2});
  }
  return views;
}

json::Value ShardLedger::Snapshot() const {
  auto ms = [](Duration span) -> int64_t { return span / std::chrono::milliseconds(1); };
  json::Array returned, leases, workers;
  for (const Range& range : returned_) returned.push_back(PrintRange(range));
  for (const auto& [id, lease] : leases_) {
    leases.push_back(json::Object{{"id", id},
                                  {"worker", lease.worker},
                                  {"range", PrintRange(lease.range)},
                                  {"done", lease.done},
                                  {"since", lease.since.unix_ns},
                                  {"begun", lease.begun.unix_ns}});
  }
  for (const auto& [name, worker] : workers_) {
    workers.push_back(json::Object{{"name", name},
                                   {"seen", worker.seen.unix_ns},
                                   {"records", worker.records},
                                   {"recordsPerSecond", worker.records_per_s}});
  }
  return json::Object{{"version", kSnapshotVersion},
                      {"records", options_.records},
                      {"recordsPerTask", options_.records_per_task},
                      {"epochs", options_.epochs},
                      {"shuffle", options_.shuffle},
                      {"seed", options_.seed},
                      {"triesMax", options_.tries_max},
                      {"hangFactor", options_.hang_factor},
                      {"hangFloorMs", ms(options_.hang_floor)},
                      {"workerTimeoutMs", ms(options_.worker_timeout)},
                      {"exactProgress", options_.exact_progress},
                      {"workersMax", options_.workers_max},
                      {"epoch", epoch_},
                      {"next", next_},
                      {"nextLease", next_lease_},
                      {"done", done_},
                      {"handedOut", handed_out_},
                      {"returnedCount", returned_count_},
                      {"repeatedMax", repeated_max_},
                      {"slowestMs", ms(slowest_)},
                      {"failure", failure_},
                      {"returned", std::move(returned)},
                      {"leases", std::move(leases)},
                      {"workers", std::move(workers)}};
}

// Whether every record of every epoch is somewhere, once: by number, and no range twice.
bool ShardLedger::AddsUp() const {
  std::vector<Range> open(returned_.begin(), returned_.end());
  int64_t accounted = done_;
  for (const auto& [id, lease] : leases_) {
    Range range = lease.range;
    range.start += lease.done;
    if (range.size() > 0) open.push_back(range);
  }
  std::sort(open.begin(), open.end(), [](const Range& a, const Range& b) {
    return std::pair(a.epoch, a.start) < std::pair(b.epoch, b.start);
  });
  for (size_t i = 0; i < open.size(); ++i) {
    accounted += open[i].size();
    if (open[i].epoch > epoch_) return false;
    if (i > 0 && open[i - 1].epoch == open[i].epoch && open[i - 1].end > open[i].start) {
      return false;
    }
  }
  if (epoch_ > options_.epochs || next_ < 0 || next_ >= TasksPerEpoch()) return false;
  accounted += (options_.epochs - epoch_) * options_.records;
  if (epoch_ == options_.epochs) return next_ == 0 && accounted == options_.records * epoch_;
  // All tasks but the data set's last one are of the same size.
  int64_t taken = next_ * options_.records_per_task;
  const int64_t last = TasksPerEpoch() - 1;
  const uint64_t seed = options_.seed ^ (static_cast<uint64_t>(epoch_ + 1) * 0xd1342543de82ef95ULL);
  for (int64_t i = 0; options_.shuffle && i < next_; ++i) {
    if (Shuffled(i, TasksPerEpoch(), seed) != last) continue;
    taken -= options_.records_per_task * TasksPerEpoch() - options_.records;
    break;
  }
  return accounted - taken == options_.records * options_.epochs;
}

Status ShardLedger::ReadSnapshot(const json::Value& snapshot) {
  const Status torn(Code::kInvalid, "the snapshot of the ledger does not add up");
  auto number = [&snapshot](std::string_view field) { return json::GetInt(snapshot, {field}, -1); };
  epoch_ = number("epoch");
  next_ = number("next");
  next_lease_ = std::max(next_lease_, number("nextLease"));
  done_ = number("done");
  handed_out_ = number("handedOut");
  returned_count_ = number("returnedCount");
  repeated_max_ = number("repeatedMax");
  slowest_ = std::chrono::milliseconds(std::clamp<int64_t>(number("slowestMs"), 0, 86'400'000));
  failure_ = json::GetString(snapshot, {"failure"});
  if (epoch_ < 0 || done_ < 0) return torn;
  for (const json::Value& one : json::GetArray(snapshot, {"returned"})) {
    if (!ReadRange(one, options_, returned_.emplace_back())) return torn;
  }
  for (const json::Value& one : json::GetArray(snapshot, {"workers"})) {
    Worker& worker = workers_[std::string(json::GetString(one, {"name"}))];
    worker.seen = {json::GetInt(one, {"seen"})};
    worker.records = json::GetInt(one, {"records"});
    const json::Value* speed = json::Find(one, {"recordsPerSecond"});
    if (speed != nullptr && speed->is_number()) worker.records_per_s = speed->to_number<double>();
  }
  for (const json::Value& one : json::GetArray(snapshot, {"leases"})) {
    Lease lease{.id = json::GetInt(one, {"id"}),
                .worker = std::string(json::GetString(one, {"worker"})),
                .done = json::GetInt(one, {"done"}),
                .since = {json::GetInt(one, {"since"})},
                .begun = {json::GetInt(one, {"begun"})}};
    const json::Value* range = json::Find(one, {"range"});
    auto worker = workers_.find(lease.worker);
    if (range == nullptr || !ReadRange(*range, options_, lease.range) || lease.id < 1 ||
        lease.id >= next_lease_ || lease.done < 0 || lease.done >= lease.range.size() ||
        worker == workers_.end()) {
      return torn;
    }
    worker->second.leases.insert(lease.id);
    leases_[lease.id] = std::move(lease);
  }
  return AddsUp() ? Status::Ok() : torn;
}

Result<ShardLedger> ShardLedger::Restore(const json::Value& snapshot, int64_t first_lease) {
  if (json::GetInt(snapshot, {"version"}) != kSnapshotVersion) {
    return Status(Code::kInvalid,
                  StrCat("version: Invalid value: ", json::GetInt(snapshot, {"version"}),
                         ": must be ", kSnapshotVersion));
  }
  auto ms = [&snapshot](std::string_view field) {
    return std::chrono::milliseconds(json::GetInt(snapshot, {field}));
  };
  const json::Value* seed = json::Find(snapshot, {"seed"});
  LedgerOptions options{.records = json::GetInt(snapshot, {"records"}),
                        .records_per_task = json::GetInt(snapshot, {"recordsPerTask"}),
                        .epochs = json::GetInt(snapshot, {"epochs"}),
                        .shuffle = json::GetBool(snapshot, {"shuffle"}),
                        .tries_max = json::GetInt(snapshot, {"triesMax"}),
                        .hang_factor = json::GetInt(snapshot, {"hangFactor"}),
                        .hang_floor = ms("hangFloorMs"),
                        .worker_timeout = ms("workerTimeoutMs"),
                        .exact_progress = json::GetBool(snapshot, {"exactProgress"}),
                        .workers_max = json::GetInt(snapshot, {"workersMax"})};
  if (seed != nullptr && seed->is_uint64()) options.seed = seed->get_uint64();
  if (seed != nullptr && seed->is_int64()) options.seed = static_cast<uint64_t>(seed->get_int64());
  SWELL_RETURN_IF_ERROR(options.Check());
  ShardLedger ledger(options, first_lease);
  SWELL_RETURN_IF_ERROR(ledger.ReadSnapshot(snapshot));
  return ledger;
}

}  // namespace swell::elastic
