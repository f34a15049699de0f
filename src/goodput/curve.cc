#include "goodput/curve.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/strings.h"

namespace swell::goodput {
namespace {

constexpr Duration kLastsAtLeast = std::chrono::seconds(120);
constexpr int kLastsOfRun = 20;

// Bounds what comes from outside, so that no product below overflows.
constexpr int64_t kGoodputMax = kOne * 1'000'000;
constexpr int32_t kMembersMax = 1'000'000;
constexpr int kFractionBits = 20;  // of kUtilityOne

int64_t PercentOf(const Curve& curve, int64_t from, int64_t to) {
  const int64_t before = std::max<int64_t>(1, curve.At(from));
  const int64_t change = curve.At(to) - before;
  const int64_t half = change < 0 ? -before / 2 : before / 2;
  return (100 * change + half) / before;
}

}  // namespace

int64_t UtilityOf(int64_t value) {
  // Bit by bit: squaring a number in [1, 2) doubles its logarithm.
  auto log2 = [](uint64_t x) {
    const int whole = std::bit_width(x) - 1;
    constexpr int kUnit = 30;
    uint64_t part = whole > kUnit ? x >> (whole - kUnit) : x << (kUnit - whole);
    int64_t result = whole;
    for (int bit = 0; bit < kFractionBits; ++bit) {
      part = (part * part) >> kUnit;
      result *= 2;
      if (part >> (kUnit + 1) != 0) {
        part >>= 1;
        ++result;
      }
    }
    return result;
  };
  static const int64_t one = log2(static_cast<uint64_t>(kOne));
  return log2(static_cast<uint64_t>(std::max<int64_t>(1, value))) - one;
}

Curve::Curve(const std::vector<CurvePoint>& points) {
  for (const CurvePoint& point : points) {
    if (points_.size() == kCurvePointsMax) break;
    const int32_t before = points_.empty() ? 0 : points_.back().members;
    if (point.members <= before || point.members > kMembersMax) continue;
    if (point.goodput <= 0 || point.goodput > kGoodputMax) continue;
    points_.push_back(point);
  }
}

int64_t Curve::At(int64_t members) const {
  const auto after =
      std::upper_bound(points_.begin(), points_.end(), members,
                       [](int64_t m, const CurvePoint& point) { return m < point.members; });
  if (after == points_.begin()) {
    return std::max<int64_t>(0, points_.front().goodput * members / points_.front().members);
  }
  const CurvePoint& low = *std::prev(after);
  if (after == points_.end()) return low.goodput;
  return low.goodput +
         (after->goodput - low.goodput) * (members - low.members) / (after->members - low.members);
}

int64_t Curve::Utility(int64_t members) const { return UtilityOf(At(members)); }

int64_t Curve::Gain(int64_t members) const {
  int64_t best = 0;
  const int64_t now = Utility(members);
  auto consider = [&](int64_t to) {
    if (to > members) best = std::max(best, (Utility(to) - now) / (to - members));
  };
  consider(members + 1);
  for (const CurvePoint& point : points_) consider(point.members);
  return members >= members_max() ? 0 : best;
}

int64_t Curve::Loss(int64_t members, int64_t count) const {
  return Utility(members) - Utility(members - count);
}

Duration LastsFor(Duration run) {
  return kLastsAtLeast + std::max(Duration::zero(), run) / kLastsOfRun;
}

Duration RunUntilLasts(Duration lasts) {
  return std::max(Duration::zero(), lasts - kLastsAtLeast) * kLastsOfRun;
}

std::string ChangeText(const Curve& curve, int64_t from, int64_t to) {
  const int64_t percent = PercentOf(curve, from, to);
  return StrCat(percent > 0 ? "+" : "", percent, " %");
}

std::string MoreText(const Curve& curve, int64_t from, int64_t to) {
  const int64_t percent = PercentOf(curve, from, to);
  if (percent == 0) return "no more";
  return StrCat(std::abs(percent), " % ", percent < 0 ? "less" : "more");
}

}  // namespace swell::goodput
