// Scheduler: runs scheduling cycles, actions from least to most disruptive over a Model, giving
// decisions.
//
//   Scheduler scheduler(settings);
//   CycleResult result = scheduler.RunCycle(model, clock.Now());
//   for (const Decision& d : result.decisions) ...   // bind, nominate, evict through the API
//
// The decisions are already assumed in the model when RunCycle returns; the caller forgets those
// that the API refused (Model::Forget) and lets the watch confirm the others.
//
// - Threads: none; one thread owns model and scheduler. Never blocks, does no I/O.
// - Invariants: same model contents and time, same result byte for byte, whatever order the model
//   learned them in. A cycle over a model in which nothing changed since the last one does nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sched/cycle/cycle.h"
#include "sched/cycle/search_key.h"
#include "sched/model.h"

namespace swell::sched {

class Recorder;
struct CycleContext;

class Scheduler {
 public:
  explicit Scheduler(Settings settings, CycleMemory memory = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  CycleResult RunCycle(Model& model, WallTime now, const CycleOptions& options = {});
  const CycleStats& stats() const { return stats_; }
  const Settings& settings() const { return settings_; }
  // Sends every later cycle that does anything to this recorder, and the model's changes; null
  // stops that.
  void Record(Recorder* recorder) { recorder_ = recorder; }

 private:
  void BeginCycle(State& state, WallTime now, bool due);
  void Decide(CycleContext& context, const CycleOptions& options);
  void EndCycle(CycleContext& context);

  Settings settings_;
  Recorder* recorder_ = nullptr;
  CycleMemory memory_;
  CycleStats stats_;
  uint64_t seen_version_ = 0;
  uint32_t seen_actions_ = 0;
  std::optional<WallTime> wake_at_;
  // Searches that failed at this version of the model, and what they said. They are not repeated
  // before something changes, so an unfinished cycle gets further each time it is resumed.
  std::map<SearchKey, std::string> failed_searches_;
  uint64_t failed_version_ = 0;
};

}  // namespace swell::sched
