// Curve: the goodput of a job by its number of members, relative to its least size, and what one
// member more or less is worth.
//
// Goodput is in millionths of that of the first point. Utility is its logarithm to base 2 as a
// whole number, so a member is worth as much to a small job as to a large one that it makes faster
// by the same part, and machines agree on every decision to the last bit.
//
// - Threads: plain values and pure functions.
// - Invariants: members and goodput of the points are positive, and members grow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace swell::goodput {

inline constexpr int64_t kOne = 1'000'000;                // of relative goodput
inline constexpr int64_t kUtilityOne = int64_t{1} << 20;  // twice the goodput is worth so much
inline constexpr size_t kCurvePointsMax = 32;

// For how long a size can be expected to last: two minutes, and a twentieth of the time that the
// job has run. What a resize costs is weighed against this.
Duration LastsFor(Duration run);
// How long a job has run when a size can be expected to last so long: the inverse.
Duration RunUntilLasts(Duration lasts);

struct CurvePoint {
  int32_t members = 1;
  int64_t goodput = kOne;
  bool operator==(const CurvePoint&) const = default;
};

class Curve {
 public:
  Curve() = default;
  // Points that break the invariants, and those beyond kCurvePointsMax, are left out.
  explicit Curve(const std::vector<CurvePoint>& points);

  bool empty() const { return points_.empty(); }
  const std::vector<CurvePoint>& points() const { return points_; }
  int32_t members_max() const { return points_.empty() ? 0 : points_.back().members; }

  // Linear between points, in proportion below the first, constant beyond the last. The curve is
  // not empty.
  int64_t At(int64_t members) const;
  int64_t Utility(int64_t members) const;
  // What a member more is worth: the most utility per member over all larger sizes, so that steps
  // are seen beyond a size that does not pay. Never negative; 0 beyond the last point.
  int64_t Gain(int64_t members) const;
  // What the job loses without its last `count` members. Negative where it is faster without them.
  int64_t Loss(int64_t members, int64_t count) const;

  bool operator==(const Curve&) const = default;

 private:
  std::vector<CurvePoint> points_;
};

// The logarithm to base 2 of positive `value` / kOne, in kUtilityOne-ths.
int64_t UtilityOf(int64_t value);

// "+61 %", "-4 %", "0 %": by what part goodput changes from one size to another.
std::string ChangeText(const Curve& curve, int64_t from, int64_t to);
// The same as "61 % more", "4 % less", "no more".
std::string MoreText(const Curve& curve, int64_t from, int64_t to);

}  // namespace swell::goodput
