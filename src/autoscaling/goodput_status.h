// GoodputState: what is known of a job's goodput between two observations, and status.goodput, from
// which a restarted controller reads it.
//
// Measured speeds vary with every observation. The status changes only when that is worth a write:
// while a size is new, and when its speed has moved by 5 %. Decisions follow the status alone, so
// they can be understood from it.
//
// - Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autoscaling/goodput_target.h"
#include "base/clock.h"
#include "goodput/measurements.h"
#include "json/value.h"

namespace swell::autoscaling {

// The last time that the job was moved to GPUs of another type.
struct GoodputMove {
  std::string from, to;  // types; `to` empty: never
  int64_t from_members = 0, to_members = 0;
  double expected = 0;  // 0.61: 61 % more goodput
  int64_t count = 0;    // of moves so far
  WallTime at;          // when it was decided
  bool over = false;    // it is known what came of it

  static GoodputMove FromStatus(const json::Value& status);
  json::Value ToStatus() const;
};

struct GoodputState {
  std::string unit;      // records or steps
  std::string gpu_type;  // that was measured: of the first member's node; empty: not known
  goodput::Measurements measured;
  goodput::Measurements published;          // as the status shows it: small changes are left out
  goodput::MeasurementsByType other_types;  // published, of GPUs that it had before
  int64_t members = 0;                      // at the last look
  int64_t measured_at = 0;                  // the size that was measured last; 0: none
  int64_t wanted = 0;                       // asked for; 0: nothing yet
  double resize_s = 0;                      // 0: not known
  double noise = 0;  // the noise scale of the gradient, in records; 0: not known
  std::string decision;
  WallTime decided_at;
  double restart_s = 0;       // how long the job took to train again after a start; 0: not known
  std::string held_to;        // the type of GPU to which its members are held; empty: to none
  std::string type_decision;  // why it has the type that it has, for people
  GoodputMove move;

  // Adds a measurement, and publishes it if it says something new.
  void Add(int64_t at, const goodput::Observation& seen);
  // Keeps the noise scale where it is news.
  void AddNoise(double records);
  // The size changes: publishes all that is known of the size that it had.
  void LeaveSize();
  // The members have GPUs of this type from now on. What was measured of that type before is known
  // again, and the size that the job has is measured anew.
  void ChangeGpuType(std::string_view type);
  // The speeds that were measured say nothing any more. The noise is the model's and the data's.
  void Forget();

  static GoodputState FromStatus(const json::Value& status);
};

// What follows from a state.
struct GoodputOutlook {
  goodput::Fit fit;
  std::vector<goodput::SizeSpeed> speeds;  // empty: nothing is measured yet
  goodput::Curve curve;

  // Whether the speed of a size follows from what was measured; else it is an assumption.
  bool Tried(int64_t members) const;
};
GoodputOutlook OutlookOf(const GoodputState& state, const GoodputRole& role);
// The goodput of that number of members, in units of work per second. 0: nothing is measured.
double GoodputAt(const GoodputOutlook& outlook, int64_t members);
// What the job would make of another type, by what it measured there; if it has never run there,
// `ratio` times what it makes here. 0: not known, and the outlook is empty.
GoodputOutlook OutlookOnType(GoodputState state,
                             const GoodputRole& role,
                             std::string_view type,
                             double ratio);
goodput::BatchFacts BatchOf(const GoodputState& state, const GoodputRole& role);

json::Value ToStatus(const GoodputState& state,
                     const GoodputRole& role,
                     const GoodputOutlook& outlook);

}  // namespace swell::autoscaling
