#include "goodput/type_move.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace swell::goodput {
namespace {

constexpr double kGainLeast = 0.10;
// What others measured says less.
constexpr double kGainLeastByRatio = 0.25;
constexpr double kTimesTheCost = 3;
constexpr Duration kStayFirst = std::chrono::minutes(10);
constexpr int kDoublingsMax = 6;

// Empty: it pays.
std::string WhyNot(const TypeOffer& offer, double gain, const MoveTerms& terms) {
  if (offer.members < 1) return "there is no room for it now";
  const double least = offer.by_ratio ? kGainLeastByRatio : kGainLeast;
  if (gain < least) {
    return StrCat("a move pays from +", std::llround(least * 100), " % on",
                  offer.by_ratio ? ", where the job has never run" : "");
  }
  if (terms.moves > 0 && terms.since_move < StaysFor(terms.moves)) {
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(StaysFor(terms.moves));
    return StrCat("it stays for ", minutes.count(), " min after a move");
  }
  const double lasts_s = std::chrono::duration<double>(terms.lasts).count();
  const double restart_s = std::chrono::duration<double>(terms.restart).count();
  if (gain * lasts_s >= kTimesTheCost * restart_s) return "";
  return StrCat("it must gain 3 times what the restart of ",
                std::max<int64_t>(1, std::llround(restart_s)), " s costs");
}

}  // namespace

Duration StaysFor(int moves) {
  return kStayFirst * (int64_t{1} << std::clamp(moves - 1, 0, kDoublingsMax));
}

MoveChoice ChooseMove(const std::vector<TypeOffer>& offers, const MoveTerms& terms) {
  MoveChoice choice;
  for (size_t i = 0; i < offers.size(); ++i) {
    const double gain = terms.goodput > 0 ? offers[i].goodput / terms.goodput - 1 : 0;
    if (!(gain > 0) || !std::isfinite(gain)) continue;
    std::string why_not = WhyNot(offers[i], gain, terms);
    const bool pays = why_not.empty();
    if (pays == choice.pays ? gain <= choice.gain : !pays) continue;
    choice = {static_cast<int>(i), pays, gain, std::move(why_not)};
  }
  return choice;
}

}  // namespace swell::goodput
