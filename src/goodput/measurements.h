// Measurements: what a live job was seen to do at each size that it had, and the speeds and the
// goodput that follow for sizes that it has not had.
//
// A measured size has the mean of its newest observations. Sizes between two of these are on the
// line between them. Larger ones, up to twice the largest measured, follow the fitted StepModel
// where it is healthy; else they continue as the last measured members did, which is optimistic, so
// that it is tried. Smaller ones are in proportion. No size beyond twice the largest is promised
// anything. Sizes that were measured on GPUs of another type alone have the speed that follows from
// the ratio of both types (as Sia, SOSP 2023, starts jobs on types that they have not seen).
//
// Goodput is speed times statistical efficiency. A constant batch has an efficiency of 1. Where the
// batch grows with the members, or the job chooses it, that is (φ + M0) / (φ + M): φ the noise
// scale of the gradient, M the batch, M0 the batch of the least size.
//
// - Threads: plain values and pure functions.
// - Invariants: at most kSizesMax sizes; numbers are finite and positive.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "goodput/curve.h"
#include "goodput/step_model.h"

namespace swell::goodput {

inline constexpr size_t kSizesMax = 32;

struct Observation {
  int nodes = 1;
  double speed = 0;              // work per second: records, or steps that are worth the same
  double step_s = 0;             // of one step
  std::optional<double> sync_s;  // of it: exchanging gradients; none: not known
  double batch = 0;              // records of a step; 0: not known
  int64_t at_s = 0;              // when it was seen, in seconds since 1970
};

struct Measured : Observation {  // means of the newest ones
  int64_t observations = 0;
  bool other_type = false;  // on GPUs of another type; the speed is what these would reach
};

class Measurements {
 public:
  // Numbers that are not finite and positive are left out.
  void Add(int members, const Observation& seen);
  void Restore(int members, const Measured& measured);
  // Sizes larger than that which were seen last before that second: they are tried again.
  void ForgetLarger(int than, int64_t before_s);
  const std::map<int, Measured>& sizes() const { return sizes_; }
  int largest() const { return sizes_.empty() ? 0 : sizes_.rbegin()->first; }

 private:
  std::map<int, Measured> sizes_;
};

// By type of GPU.
using MeasurementsByType = std::map<std::string, Measurements, std::less<>>;
// `here`, and the sizes that were measured on other types alone. Nothing follows from a type that
// was measured at no size of `here`.
Measurements WithOtherTypes(const Measurements& here, const MeasurementsByType& others);
// How many times as fast as on `there` a job is here: the mean over the sizes that were measured
// here and lie among those measured there. Nothing if no size does.
std::optional<double> SpeedRatio(const Measurements& here, const Measurements& there);
// The measurements of another type, converted to a type that is `ratio` times as fast.
Measurements Scaled(const Measurements& there, double ratio);

// How the work of a step is split: the whole job's batch is constant, or each member's is, or the
// job chooses a batch for each size.
enum class BatchRule { kConstant, kPerMember, kChosen };

struct BatchFacts {
  BatchRule rule = BatchRule::kConstant;
  double noise = 0;  // φ in records; 0: not known
  int least = 1;     // members, whose batch is M0
  int others = 0;    // members with a batch besides those that are counted
};
// What a record is worth at a size, as a part of what it is worth at the least size. 1 where the
// batch is constant, or where noise or batch are not known.
double EfficiencyAt(const Measurements& measurements, const BatchFacts& batch, int members);

struct Fit {
  bool healthy = false;
  double error = 0;  // the root of the mean square of relative errors over measured sizes
  std::string message;
  StepParameters parameters;
};
inline constexpr double kFitErrorMax = 0.15;
Fit FitOf(const Measurements& measurements, BatchRule rule);

enum class Source { kMeasured, kOtherType, kBetween, kFitted, kOptimistic, kProportional };
std::string_view SourceName(Source source);  // "Measured", "OtherType", …

struct SizeSpeed {
  int members = 1;
  double speed = 0;
  Source source = Source::kMeasured;
  double efficiency = 1;  // of a record, against one of the batch of the least size

  double goodput() const { return speed * efficiency; }
};

struct SizeBounds {
  int least = 1;
  int most = 1;
};

// By members, from the least to the most that may be tried; at most kCurvePointsMax. Empty while
// nothing is measured.
std::vector<SizeSpeed> SpeedsOf(const Measurements& measurements,
                                const SizeBounds& bounds,
                                const Fit& fit,
                                const BatchFacts& batch);
Curve CurveOf(const std::vector<SizeSpeed>& speeds);

// The number of members to ask for: the most that raise goodput by at least a tenth of the best
// possible gain. The present number stays while no other is clearly better. `speeds` is not empty.
int SizeToRequest(const std::vector<SizeSpeed>& speeds, int now);

}  // namespace swell::goodput
