// Recorder: what a model was told and what its scheduler decided, as records from which the same
// cycles can be run again (sched/replay.h).
//
//   Recorder recorder({}, next_cycle, [&](std::string record, bool begins) { ... });
//   model.Record(&recorder);
//   scheduler.Record(&recorder);
//
//   record   version, whether a keyframe leads it, [keyframe], told*, [cycle]
//   keyframe everything the model and the scheduler know before a cycle (keyframe.h)
//   told     a tag (Tape) and what came from the watches, or was assumed or forgotten
//   cycle    number, time, actions, each decision, and a hash of all words
//
// A record that begins with a keyframe begins a segment: it is understood without those before it.
// Cycles over an unchanged model do nothing and are not recorded.
//
// - Threads: none; the scheduler's thread.
// - Ownership: the caller's; outlives what it records.
// - Invariants: memory is bounded: what is told between two cycles is handed over by the mebibyte.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sched/cycle/cycle.h"
#include "sched/record/codec.h"
#include "sched/record/fields.h"

namespace swell::sched {

struct State;

inline constexpr uint64_t kRecordVersion = 7;

enum class Tape : uint8_t {
  kEnd,
  kCycle,
  kNode,
  kNodeGone,
  kPod,
  kPodGone,
  kGroup,
  kGroupGone,
  kQueue,
  kQueueGone,
  kPool,
  kPoolGone,
  kTopology,
  kTopologyGone,
  kBudget,
  kBudgetGone,
  kAssumeBound,
  kAssumeEvicted,
  kLiftPromise,
  kForget
};
inline Tape EnumMax(Tape) { return Tape::kForget; }

// A decision as it is compared.
struct DecisionMark {
  Decision::Type type = Decision::Type::kBind;
  std::string pod;
  std::string node;
  std::vector<int> devices;
  std::string rule;
  std::string beneficiary;
  uint64_t words = 0;  // hash of its reason and its other texts
  bool operator==(const DecisionMark&) const = default;
};
struct CycleMark {
  uint64_t number = 0;
  WallTime now;
  uint32_t actions = 0;
  std::vector<DecisionMark> decisions;
  uint64_t rest = 0;  // hash of the rest of the cycle's result
};
CycleMark MarkOf(const CycleResult& result);

class Recorder {
 public:
  struct Options {
    // A segment ends when it has at least this size and is at least as long as its keyframe.
    size_t segment_bytes = size_t{8} << 20;
  };
  using Sink = std::function<void(std::string record, bool begins)>;

  Recorder(Options options, uint64_t next_cycle, Sink sink);

  // A change of the model. Nothing is recorded before the first keyframe.
  template <class Info>
  void Told(Tape tag, const Info& info) {
    if (!going_) return;
    told_(tag, info);
    if (told_.bytes().size() > kToldBytesMax) HandOver(nullptr);
  }
  void Named(Tape tag, std::string_view name) { Told(tag, std::string(name)); }
  void AssumedBound(std::string_view pod, std::string_view node, const std::vector<int>& devices);

  // A cycle of the scheduler. `may_begin`: everything it knows is in the model and in `memory`.
  void BeforeCycle(const State& state,
                   const Settings& settings,
                   const CycleMemory& memory,
                   bool may_begin);
  void AfterCycle(WallTime now, const CycleOptions& options, const CycleResult& result);

  uint64_t next_cycle() const { return next_cycle_; }

 private:
  static constexpr size_t kToldBytesMax = size_t{1} << 20;

  void HandOver(const CycleMark* cycle);

  const Options options_;
  const Sink sink_;
  uint64_t next_cycle_;
  SharedOut shared_;
  Packer told_{shared_};
  bool going_ = false;
  std::string keyframe_;  // to lead the next record
  size_t segment_bytes_ = 0;
  size_t keyframe_bytes_ = 0;
};

template <class C, Is<DecisionMark> T>
void Fields(C& c, T& d) {
  c(d.type, d.pod);
  c.Shared(d.node);
  c(d.devices);
  c.Shared(d.rule);
  c.Shared(d.beneficiary);
  c(d.words);
}
template <class C, Is<CycleMark> T>
void Fields(C& c, T& m) {
  c(m.number, m.now, m.actions, m.decisions, m.rest);
}

}  // namespace swell::sched
