#include "jobs/decisions/job_health.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "jobs/decisions/job_ranks.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

// Slow for so long is a straggler. Speeds are those of one to two minutes already.
constexpr Duration kSlowFor = std::chrono::minutes(2);
// Windows in which it does so after the first; each is of half a minute at the least.
constexpr int64_t kSlowWindows = 4;
// Restarts without a step that no earlier attempt had reached.
constexpr int64_t kHangRestartsMax = 3;
constexpr size_t kRanksNamed = 4;
constexpr size_t kStacksKept = 16;

std::string HungMessage(const std::vector<RankMember>& suspects) {
  std::string text = "No rank moves: ";
  for (size_t i = 0; i < suspects.size() && i < kRanksNamed; ++i) {
    text += StrCat(i == 0 ? "" : "; ", RankText(suspects[i]));
  }
  if (suspects.size() > kRanksNamed) {
    text += StrCat("; and ", suspects.size() - kRanksNamed, " more");
  }
  return text + ".";
}

// The nodes of the suspects, where these are few: else the script is to blame, or nothing tells the
// ranks apart.
std::vector<std::string> SuspectNodes(const std::vector<RankMember>& members,
                                      const std::vector<RankMember>& suspects) {
  if (suspects.size() * 2 >= members.size()) return {};
  std::set<std::string> nodes;
  for (const RankMember& one : suspects) nodes.emplace(api::NodeName(*one.pod));
  return {nodes.begin(), nodes.end()};
}

json::Value Evidence(const std::vector<RankMember>& members,
                     const std::vector<RankMember>& suspects) {
  std::set<int64_t> suspected;
  for (const RankMember& one : suspects) suspected.insert(one.rank.rank);
  json::Array ranks;
  for (const RankMember& one : members) {
    if (!one.rank.stalled || ranks.size() == kStacksKept) continue;
    ranks.push_back(json::Object{{"rank", one.rank.rank},
                                 {"pod", api::Name(*one.pod)},
                                 {"node", api::NodeName(*one.pod)},
                                 {"phase", one.rank.phase},
                                 {"step", one.rank.step},
                                 {"since", api::FormatTime(one.rank.changed)},
                                 {"deadlineSeconds", one.rank.deadline_seconds},
                                 {"suspect", suspected.contains(one.rank.rank)},
                                 {"stack", one.rank.stack}});
  }
  return ranks;
}

std::string OnHang(const json::Value& job) {
  const std::string_view field = json::GetString(job, {"spec", "health", "onHang"});
  return std::string(field.empty() ? api::Annotation(job, api::keys::kOnHang) : field);
}

bool ActOnHang(JobPass& pass,
               int64_t step,
               const std::vector<std::string>& suspect_nodes,
               const std::string& message) {
  const std::string act = OnHang(*pass.job);
  if (act != "Restart" && act != "Stop") return false;
  const auto hung = api::FindConditionIn(pass.status, kHung);
  constexpr Duration kStacksTime = std::chrono::seconds(8);
  const WallTime since = hung ? hung->Since().value_or(pass.now) : pass.now;
  if (const Duration left = since + kStacksTime - pass.now;
      left > Duration(0) && !json::GetBool(pass.status, {"hang", "told"})) {
    pass.RequeueAfter(left);
    return false;
  }
  const int64_t restarts = json::GetInt(pass.status, {"hang", "restarts"});
  if (act == "Stop" || restarts >= kHangRestartsMax) {
    pass.Finish(
        "Failed", kHung,
        StrCat(pass.kind.kind(), " ", pass.name, " is failed because it hangs",
               restarts > 0 ? StrCat(" after ", restarts, " restarts without progress") : "", ". ",
               message));
    return true;
  }
  json::Set(pass.status, {"hang", "restarts"}, restarts + 1);
  json::Set(pass.status, {"hang", "bestStep"},
            std::max(step, json::GetInt(pass.status, {"hang", "bestStep"})));
  std::string text = StrCat(pass.kind.kind(), " ", pass.name, " is restarting because it hangs, ",
                            restarts + 1, " of ", kHangRestartsMax, " times. ", message);
  for (const std::string& node : suspect_nodes) pass.AvoidNode(node);
  if (!suspect_nodes.empty()) {
    text += StrCat(" Its pods go to other nodes than ", Join(suspect_nodes, ", "),
                   " where those have room.");
  }
  pass.SetFirst(kHung, false, "Restarted", text);
  pass.SetRestarting(pass.kind.Reason("Restarting"), text);
  pass.AddEvent("Warning", "HangRestart", text);
  pass.StopPods(JobPass::Which::kAll);
  return true;
}

// A restart is over when the last of the old pods is gone: the new ones start together.
bool AwaitsEndOfHungPods(JobPass& pass) {
  if (json::GetInt(pass.status, {"hang", "restarts"}) == 0 || !pass.IsTrue("Restarting")) {
    return false;
  }
  const bool old_ones = std::any_of(pass.pods.begin(), pass.pods.end(), [](const auto& named) {
    return api::IsDeleting(*named.second);
  });
  if (old_ones) pass.StopPods(JobPass::Which::kAll);
  return old_ones;
}

}  // namespace

void JobHealth::NoteStragglers(JobPass& pass) {
  const std::string uid = pass.uid();
  const bool known = pass.IsTrue(kStraggler);
  const std::vector<RankMember> members = RankMembersOf(pass.pods);
  const auto slow = SlowRanks(members, known);
  std::map<int64_t, SlowSince>& since = slow_since_[uid];
  std::erase_if(since, [&slow](const auto& one) { return !slow.contains(one.first); });
  std::vector<std::string> said;
  for (const auto& [rank, found] : slow) {
    const SlowSince now{pass.now, found.windows};
    const SlowSince began = since.try_emplace(rank, now).first->second;
    const Duration left = began.time + kSlowFor - pass.now;
    // New windows come with a new report.
    const bool seen_again = found.windows == 0 || found.windows >= began.windows + kSlowWindows;
    const bool long_enough = known || (left <= Duration(0) && seen_again);
    if (left > Duration(0)) pass.RequeueAfter(left);
    if (long_enough && said.size() < kRanksNamed) said.push_back(found.text);
  }
  if (since.empty()) slow_since_.erase(uid);
  if (!said.empty()) {
    const std::string message = StrCat("Much slower than its peers: ", Join(said, "; "), ".");
    pass.SetFirst(kStraggler, true, "SlowRank", message);
    if (!known) pass.AddEvent("Warning", kStraggler, message);
  } else if (known) {
    pass.SetFirst(kStraggler, false, "Even", "No rank is much slower than its peers any more.");
  }
}

bool JobHealth::DecideHang(JobPass& pass) {
  const std::vector<RankMember> members = RankMembersOf(pass.pods, EndedPods::kToo);
  if (!Hangs(members)) {
    if (pass.IsTrue(kHung)) {
      pass.SetFirst(kHung, false, "Moving", "The ranks move again, or were started again.");
    }
    return AwaitsEndOfHungPods(pass);
  }
  const std::vector<RankMember> suspects = Suspects(members);
  const std::string message = HungMessage(suspects);
  // The stacks are read after the stall is told; what is done about it waits for them.
  const bool read = std::all_of(members.begin(), members.end(), [](const RankMember& one) {
    return !one.rank.stalled || !one.rank.stack.empty();
  });
  const bool known = pass.IsTrue(kHung);
  json::Set(pass.status, {"hang", "ranks"}, Evidence(members, suspects));
  pass.SetFirst(kHung, true, "NoProgress", message);
  const bool told = known && json::GetBool(pass.status, {"hang", "told"});
  json::Set(pass.status, {"hang", "told"}, told || read);
  if (read && !told) pass.AddEvent("Warning", kHung, message);
  return ActOnHang(pass, members.front().rank.step, SuspectNodes(members, suspects), message);
}

}  // namespace swell::jobs
