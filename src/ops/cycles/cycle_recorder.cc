#include "ops/cycles/cycle_recorder.h"

#include "base/log.h"
#include "base/strings.h"
#include "sched/replay.h"

namespace swell::ops {
namespace {

constexpr size_t kWaitingBytesMax = size_t{64} << 20;
constexpr uint64_t kSegments = 8;
constexpr uint64_t kSegmentBytesMin = 64 << 10;

// The number that follows the newest recorded cycle.
Result<uint64_t> NextCycle(const std::string& dir) {
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> segments, RecordRing::Segments(dir));
  for (auto path = segments.rbegin(); path != segments.rend(); ++path) {
    auto segment = RecordRing::Read(*path);
    if (!segment.ok() || segment->records.empty()) continue;
    if (auto next = sched::NextCycleOf(segment->records.back())) return *next;
  }
  return uint64_t{1};
}

}  // namespace

Result<std::unique_ptr<CycleRecorder>> CycleRecorder::Open(const std::string& dir,
                                                           uint64_t bytes_max) {
  SWELL_ASSIGN_OR_RETURN(auto ring, RecordRing::Open(dir, bytes_max));
  SWELL_ASSIGN_OR_RETURN(uint64_t next, NextCycle(dir));
  return std::unique_ptr<CycleRecorder>(new CycleRecorder(std::move(ring), bytes_max, next));
}

CycleRecorder::CycleRecorder(std::unique_ptr<RecordRing> ring,
                             uint64_t bytes_max,
                             uint64_t next_cycle)
    : ring_(std::move(ring)),
      queue_(kWaitingBytesMax,
             Duration::zero(),
             [this](const std::vector<Item>& items) {
               for (const Item& item : items) Write(item);
             }),
      recorder_({.segment_bytes = std::max(kSegmentBytesMin, bytes_max / kSegments)},
                next_cycle,
                [this](std::string record, bool begins) { Take(std::move(record), begins); }) {}

void CycleRecorder::Take(std::string record, bool begins) {
  if (skipping_ && !begins) return;
  const size_t bytes = record.size();
  skipping_ = !queue_.Push({std::move(record), begins}, bytes);
}

void CycleRecorder::Write(const Item& item) {
  if (failed_ && !item.second) return;
  Status written = item.second ? ring_->Begin() : Status::Ok();
  if (written.ok()) written = ring_->Append(item.first);
  if (!written.ok() && !failed_) {
    SWELL_LOG_WARNING("scheduler", "cycles are not recorded for now",
                      {"error", written.ToString()});
  }
  failed_ = !written.ok();
}

Status CycleRecorders::Check() {
  if (!on()) return Status::Ok();
  return CycleRecorder::Open(dir_, static_cast<uint64_t>(mib_) << 20).status();
}

sched::Recorder* CycleRecorders::Begin() {
  current_.reset();
  if (!on()) return nullptr;
  auto opened = CycleRecorder::Open(dir_, static_cast<uint64_t>(mib_) << 20);
  if (!opened.ok()) {
    SWELL_LOG_WARNING("scheduler", "cycles are not recorded",
                      {"error", opened.status().ToString()});
    return nullptr;
  }
  current_ = std::move(*opened);
  return current_->recorder();
}

}  // namespace swell::ops
