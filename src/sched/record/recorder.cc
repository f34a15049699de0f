#include "sched/record/recorder.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "sched/record/keyframe.h"

namespace swell::sched {
namespace {

uint64_t HashNumber(uint64_t number, uint64_t basis) {
  char raw[sizeof number];
  std::memcpy(raw, &number, sizeof raw);
  return StableHash({raw, sizeof raw}, basis);
}

uint64_t HashOf(const Decision& decision) {
  uint64_t hash = StableHash(decision.Reason());
  const std::string none;
  const std::string& gains = decision.beneficiary ? decision.beneficiary->group : none;
  for (const std::string* text : {&decision.pod_uid, &decision.group, &gains}) {
    hash = StableHash(*text, hash);
  }
  return HashNumber(std::bit_cast<uint64_t>(decision.lost_gpu_seconds), hash);
}

uint64_t HashOfRest(const CycleResult& result) {
  uint64_t hash = HashNumber(result.more, StableHash(""));
  for (const Waiting& waiting : result.waiting) {
    for (const std::string* text : {&waiting.group, &waiting.reason, &waiting.least_change}) {
      hash = StableHash(*text, hash);
    }
    for (const std::string& pod : waiting.pods) hash = StableHash(pod, hash);
  }
  for (const std::string& pod : result.nominations_cleared) hash = StableHash(pod, hash);
  for (const CycleResult::Stale& stale : result.stale) {
    hash = HashNumber(static_cast<uint64_t>(stale.since.unix_ns), StableHash(stale.group, hash));
  }
  for (const std::string& group : result.moved) hash = StableHash(group, hash);
  const int64_t wake_ns = result.wake_at ? result.wake_at->unix_ns : 0;
  return HashNumber(static_cast<uint64_t>(wake_ns), hash);
}

}  // namespace

CycleMark MarkOf(const CycleResult& result) {
  CycleMark mark;
  mark.decisions.reserve(result.decisions.size());
  for (const Decision& d : result.decisions) {
    mark.decisions.push_back({d.type, d.pod, d.node, d.gpu_devices, d.rule,
                              d.beneficiary ? d.beneficiary->pod : std::string(), HashOf(d)});
  }
  mark.rest = HashOfRest(result);
  return mark;
}

Recorder::Recorder(Options options, uint64_t next_cycle, Sink sink)
    : options_(options), sink_(std::move(sink)), next_cycle_(next_cycle) {}

void Recorder::AssumedBound(std::string_view pod,
                            std::string_view node,
                            const std::vector<int>& devices) {
  if (going_) told_(Tape::kAssumeBound, std::string(pod), std::string(node), devices);
}

void Recorder::BeforeCycle(const State& state,
                           const Settings& settings,
                           const CycleMemory& memory,
                           bool may_begin) {
  const bool full = segment_bytes_ >= std::max(options_.segment_bytes, keyframe_bytes_);
  if (!may_begin || (going_ && !full)) return;
  shared_.numbers.clear();
  told_.Take();  // the keyframe has it
  Packer out(shared_);
  WriteKeyframe(out, state, settings, memory);
  keyframe_ = out.Take();
  keyframe_bytes_ = 2 * keyframe_.size();
  segment_bytes_ = 0;
  going_ = true;
}

void Recorder::AfterCycle(WallTime now, const CycleOptions& options, const CycleResult& result) {
  if (!going_) return;
  CycleMark mark = MarkOf(result);
  mark.number = next_cycle_++;
  mark.now = now;
  mark.actions = options.actions;
  HandOver(&mark);
}

void Recorder::HandOver(const CycleMark* cycle) {
  const bool begins = !keyframe_.empty();
  Packer head(shared_);
  head(kRecordVersion, next_cycle_, begins);
  if (cycle != nullptr) {
    told_(Tape::kCycle, *cycle);
  } else {
    told_(Tape::kEnd);
  }
  std::string record = head.Take();
  record.reserve(record.size() + keyframe_.size() + told_.bytes().size());
  record += keyframe_;
  record += told_.bytes();
  told_.Take();
  keyframe_.clear();
  segment_bytes_ += record.size();
  sink_(std::move(record), begins);
}

}  // namespace swell::sched
