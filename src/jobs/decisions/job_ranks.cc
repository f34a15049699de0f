#include "jobs/decisions/job_ranks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "base/median.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

// A rank is a straggler when it makes less than this part of its peers' steps for so long, until it
// makes more than the second part. Speeds are those of one to two minutes already.
constexpr double kSlowPart = 0.75;
constexpr double kEvenPart = 0.85;
// Ranks that wait for each other in every step have one speed. There a rank is a straggler when its
// own part of a step takes so much longer than its peers', and steps that much too long.
constexpr double kCostPart = 0.1;
constexpr double kCostsLittlePart = 0.05;

// The ranks that are not where most are. None if most are in no one place, or all are in it.
std::set<int64_t> NotWithMost(const std::map<std::string, std::set<int64_t>>& ranks_at) {
  size_t all = 0;
  for (const auto& [place, ranks] : ranks_at) all += ranks.size();
  std::set<int64_t> others;
  for (const auto& [place, ranks] : ranks_at) {
    if (ranks.size() * 2 <= all) others.insert(ranks.begin(), ranks.end());
  }
  return others.size() == all ? std::set<int64_t>() : others;
}

// The ranks that are in other calls than most. The outermost call that differs decides: what lies
// below a wait that they share differs from moment to moment. If it leaves most in no one place,
// as stacks may that were cut at different calls, the innermost one decides.
std::set<int64_t> RanksElsewhere(const std::vector<RankMember>& stalled) {
  std::vector<std::vector<std::string>> calls;
  std::map<std::string, std::set<int64_t>> at;
  size_t deepest = 0;
  for (const RankMember& one : stalled) {
    calls.push_back(one.rank.Calls());
    deepest = std::max(deepest, calls.back().size());
  }
  for (size_t depth = 0; depth < deepest && at.size() < 2; ++depth) {
    at.clear();
    for (size_t i = 0; i < calls.size(); ++i) {
      at[depth < calls[i].size() ? calls[i][depth] : ""].insert(stalled[i].rank.rank);
    }
  }
  std::set<int64_t> elsewhere = NotWithMost(at);
  if (!elsewhere.empty()) return elsewhere;
  at.clear();
  for (const RankMember& one : stalled) at[one.rank.Top()].insert(one.rank.rank);
  return NotWithMost(at);
}

bool Trains(const RankMember& one) {
  return !one.rank.done() && !api::HasEnded(*one.pod) &&
         (one.rank.phase == "step" || one.rank.phase == "data");
}

std::string RankPlace(const RankMember& one) {
  return StrCat("rank ", one.rank.rank, " (pod ", api::Name(*one.pod), " on ",
                api::NodeName(*one.pod), ")");
}

double MedianSpeed(const std::vector<RankMember>& members, const RankMember& except) {
  std::vector<double> speeds;
  for (const RankMember& one : members) {
    if (&one != &except && Trains(one) && !one.rank.stalled && one.rank.steps_per_second > 0) {
      speeds.push_back(one.rank.steps_per_second);
    }
  }
  return UpperMedian(std::move(speeds));
}

// The median of what `of` takes from the other ranks of the group; 0: they have no such number.
template <typename Of>
double MedianOfPeers(const std::vector<RankMember>& members,
                     const RankMember& except,
                     const Of& of) {
  std::vector<double> numbers;
  for (const RankMember& one : members) {
    if (&one == &except || !Trains(one) || one.rank.stalled) continue;
    if (one.rank.own.windows == 0 || one.rank.world != except.rank.world) continue;
    if (const double number = of(one.rank.own); number > 0) numbers.push_back(number);
  }
  return UpperMedian(std::move(numbers));
}

double OwnMs(const api::OwnPart& own) { return own.own_ms; }
double MsPerElement(const api::OwnPart& own) {
  return own.elements > 0 ? own.own_ms / own.elements : 0;
}

// Two digits after the point.
std::string Decimal(double value) {
  const auto hundredths = static_cast<int64_t>(std::llround(value * 100));
  const int64_t rest = hundredths % 100;
  return StrCat(hundredths / 100, rest < 10 ? ".0" : ".", rest);
}

// What is said of a rank whose own part of a step takes long, although all ranks have one speed.
// Empty: it does not, or no longer than its share of the data explains.
std::string SlowPart(const std::vector<RankMember>& members, const RankMember& one, bool known) {
  const double part = known ? kEvenPart : kSlowPart;
  const api::OwnPart& own = one.rank.own;
  if (own.windows == 0 || own.own_ms <= 0) return "";
  const double peers = MedianOfPeers(members, one, OwnMs);
  if (peers <= 0 || peers / own.own_ms >= part) return "";
  const double excess = own.own_ms - peers;
  if (excess < own.step_ms * (known ? kCostsLittlePart : kCostPart)) return "";
  const double each = MsPerElement(own), each_of_peers = MedianOfPeers(members, one, MsPerElement);
  if (each > 0 && each_of_peers > 0 && each_of_peers / each >= part) return "";
  return StrCat(RankPlace(one), " takes ", Decimal(own.own_ms / peers),
                " times as long as its peers for its own part of a step: ", Decimal(own.own_ms),
                " ms, where half of them take ", Decimal(peers),
                " ms or less and then wait for it. A step takes ", Decimal(own.step_ms),
                " ms, and about ", Decimal(std::max(0.0, own.step_ms - excess)), " without it");
}

}  // namespace

std::vector<RankMember> RankMembersOf(const std::map<std::string, json::SharedValue>& pods,
                                      EndedPods ended) {
  std::vector<RankMember> members;
  for (const auto& [name, pod] : pods) {
    const bool runs = api::Phase(*pod) == "Running" && !api::IsDeleting(*pod);
    if (!runs && !(ended == EndedPods::kToo && api::HasEnded(*pod))) continue;
    for (api::RankProgress& rank : api::RanksOf(*pod)) members.push_back({pod, std::move(rank)});
  }
  std::stable_sort(members.begin(), members.end(), [](const RankMember& a, const RankMember& b) {
    return std::tuple(a.rank.rank, b.rank.changed) < std::tuple(b.rank.rank, a.rank.changed);
  });
  members.erase(std::unique(members.begin(), members.end(),
                            [](const RankMember& a, const RankMember& b) {
                              return a.rank.rank == b.rank.rank;
                            }),
                members.end());
  return members;
}

bool Hangs(const std::vector<RankMember>& members) {
  bool stalled = false;
  if (members.empty() || static_cast<int64_t>(members.size()) < members.front().rank.world) {
    return false;
  }
  for (const RankMember& one : members) {
    if (one.rank.done() || api::HasEnded(*one.pod)) continue;
    if (!one.rank.stalled) return false;
    stalled = true;
  }
  return stalled;
}

std::vector<RankMember> Suspects(const std::vector<RankMember>& members) {
  std::vector<RankMember> stalled;
  for (const RankMember& one : members) {
    if (one.rank.stalled && !api::HasEnded(*one.pod)) stalled.push_back(one);
  }
  if (stalled.empty()) return {};
  int64_t least = stalled.front().rank.step, most = least;
  for (const RankMember& one : stalled) {
    least = std::min(least, one.rank.step);
    most = std::max(most, one.rank.step);
  }
  const std::set<int64_t> elsewhere = RanksElsewhere(stalled);
  std::vector<RankMember> behind;
  for (const RankMember& one : stalled) {
    if (least < most ? one.rank.step == least : elsewhere.contains(one.rank.rank)) {
      behind.push_back(one);
    }
  }
  return behind.empty() ? stalled : behind;
}

std::string RankText(const RankMember& member) {
  const api::RankProgress& rank = member.rank;
  const std::string top = rank.Top();
  return StrCat("rank ", rank.rank, " (pod ", api::Name(*member.pod), " on ",
                api::NodeName(*member.pod), ") has been in phase ", rank.phase, " since ",
                api::FormatTime(rank.changed), ", after step ", rank.step, "; its deadline is ",
                rank.deadline_seconds, "s", top.empty() ? "" : StrCat("; it is at ", top));
}

std::map<int64_t, SlowRank> SlowRanks(const std::vector<RankMember>& members, bool known) {
  const double part = known ? kEvenPart : kSlowPart;
  std::map<int64_t, SlowRank> slow;
  for (const RankMember& one : members) {
    if (!Trains(one)) continue;
    if (std::string text = SlowPart(members, one, known); !text.empty() && !one.rank.stalled) {
      slow[one.rank.rank] = {std::move(text), one.rank.own.windows};
      continue;
    }
    if (one.rank.stalled) {
      const auto past =
          std::count_if(members.begin(), members.end(), [&one](const RankMember& other) {
            return Trains(other) && !other.rank.stalled && other.rank.step > one.rank.step;
          });
      if (2 * past < static_cast<std::ptrdiff_t>(members.size()) || past == 0) continue;
      slow[one.rank.rank].text =
          StrCat(RankText(one), ", while ", past, past == 1 ? " rank" : " ranks",
                 " that are further move on");
      continue;
    }
    const double peers = MedianSpeed(members, one);
    const double own = one.rank.steps_per_second;
    if (own <= 0 || peers <= 0 || own / peers >= part) continue;
    slow[one.rank.rank].text =
        StrCat(RankPlace(one), " makes ", Decimal(own / peers),
               " of the steps of its peers: ", Decimal(own), " a second, where half of them make ",
               Decimal(peers), " or more");
  }
  return slow;
}

}  // namespace swell::jobs
