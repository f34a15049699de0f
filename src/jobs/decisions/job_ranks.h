// JobRanks: what the ranks of a job report together: which hang, whom the others wait for, which
// are slow.
// - Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "json/value.h"
#include "kube/api/objects/progress.h"

namespace swell::jobs {

// A rank, and the pod that reports it.
struct RankMember {
  json::SharedValue pod;
  api::RankProgress rank;
};

enum class EndedPods { kLeftOut, kToo };
// The ranks of the pods that run, by rank; one that two records name counts once, as it was last.
std::vector<RankMember> RankMembersOf(const std::map<std::string, json::SharedValue>& pods,
                                      EndedPods ended = EndedPods::kLeftOut);

// A job hangs when none of its ranks moves: one alone may wait for what another does. So all must
// be known.
bool Hangs(const std::vector<RankMember>& members);
// Those that the others wait for: the ranks with the fewest steps, or else those that are somewhere
// else than most. All, if nothing tells them apart.
std::vector<RankMember> Suspects(const std::vector<RankMember>& members);
// "rank 3 (pod … on …) has been in phase step since …".
std::string RankText(const RankMember& member);

struct SlowRank {
  std::string text;
  int64_t windows = 0;  // of its own part of a step, if that makes it slow
};
// Ranks that are much slower than their peers, by rank, with what is said of them. `known`: some
// were slow before; they are until they are nearly even. A rank that does not move counts if most
// of its peers are past it: else they may wait for each other.
std::map<int64_t, SlowRank> SlowRanks(const std::vector<RankMember>& members, bool known);

}  // namespace swell::jobs
