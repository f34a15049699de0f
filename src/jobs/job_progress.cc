// JobController: how far a job is, whether it hangs, and whether it can save itself.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "jobs/job_controller.h"
#include "jobs/job_pass.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kHung = "Hung";
constexpr std::string_view kCheckpointFailed = "CheckpointFailed";
constexpr std::string_view kNotFinite = "MetricNotFinite";
constexpr std::string_view kSuspensionWaits = "SuspensionWaits";
constexpr std::string_view kWorldMismatch = "WorldMismatch";
constexpr std::string_view kStraggler = "Straggler";
// A rank is a straggler when it makes less than this part of its peers' steps for so long, until it
// makes more than the second part. Speeds are those of one to two minutes already.
constexpr double kSlowPart = 0.75;
constexpr double kEvenPart = 0.85;
constexpr Duration kSlowFor = std::chrono::minutes(2);
// Ranks that wait for each other in every step have one speed. There a rank is a straggler when its
// own part of a step takes so much longer than its peers', and steps that much too long.
constexpr double kCostPart = 0.1;
constexpr double kCostsLittlePart = 0.05;
// Windows in which it does so after the first; each is of half a minute at the least.
constexpr int64_t kSlowWindows = 4;
// Restarts without a step that no earlier attempt had reached.
constexpr int64_t kHangRestartsMax = 3;
constexpr size_t kRanksNamed = 4;
constexpr size_t kStacksKept = 16;

struct Member {
  json::SharedValue pod;
  api::RankProgress rank;
};

// The ranks of the pods that run, by rank; one that two records name counts once, as it was last.
std::vector<Member> MembersOf(const std::map<std::string, json::SharedValue>& pods,
                              bool also_ended = false) {
  std::vector<Member> members;
  for (const auto& [name, pod] : pods) {
    const bool runs = Phase(*pod) == "Running" && !api::IsDeleting(*pod);
    if (!runs && !(also_ended && HasEnded(*pod))) continue;
    for (api::RankProgress& rank : api::RanksOf(*pod)) members.push_back({pod, std::move(rank)});
  }
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return std::tuple(a.rank.rank, b.rank.changed) < std::tuple(b.rank.rank, a.rank.changed);
  });
  members.erase(
      std::unique(members.begin(), members.end(),
                  [](const Member& a, const Member& b) { return a.rank.rank == b.rank.rank; }),
      members.end());
  return members;
}

// A job hangs when none of its ranks moves: one alone may wait for what another does. So all must
// be known.
bool Hangs(const std::vector<Member>& members) {
  bool stalled = false;
  if (members.empty() || static_cast<int64_t>(members.size()) < members.front().rank.world) {
    return false;
  }
  for (const Member& one : members) {
    if (one.rank.done() || HasEnded(*one.pod)) continue;
    if (!one.rank.stalled) return false;
    stalled = true;
  }
  return stalled;
}

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
std::set<int64_t> RanksElsewhere(const std::vector<Member>& stalled) {
  std::vector<std::vector<std::string>> calls;
  std::map<std::string, std::set<int64_t>> at;
  size_t deepest = 0;
  for (const Member& one : stalled) {
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
  for (const Member& one : stalled) at[one.rank.Top()].insert(one.rank.rank);
  return NotWithMost(at);
}

// Those that the others wait for: the ranks with the fewest steps, or else those that are somewhere
// else than most. All, if nothing tells them apart.
std::vector<Member> Suspects(const std::vector<Member>& members) {
  std::vector<Member> stalled;
  for (const Member& one : members) {
    if (one.rank.stalled && !HasEnded(*one.pod)) stalled.push_back(one);
  }
  if (stalled.empty()) return {};
  int64_t least = stalled.front().rank.step, most = least;
  for (const Member& one : stalled) {
    least = std::min(least, one.rank.step);
    most = std::max(most, one.rank.step);
  }
  const std::set<int64_t> elsewhere = RanksElsewhere(stalled);
  std::vector<Member> behind;
  for (const Member& one : stalled) {
    if (least < most ? one.rank.step == least : elsewhere.contains(one.rank.rank)) {
      behind.push_back(one);
    }
  }
  return behind.empty() ? stalled : behind;
}

std::string RankText(const Member& member) {
  const api::RankProgress& rank = member.rank;
  const std::string top = rank.Top();
  return StrCat("rank ", rank.rank, " (pod ", api::Name(*member.pod), " on ",
                api::NodeName(*member.pod), ") has been in phase ", rank.phase, " since ",
                api::FormatTime(rank.changed), ", after step ", rank.step, "; its deadline is ",
                rank.deadline_seconds, "s", top.empty() ? "" : StrCat("; it is at ", top));
}

std::string HungMessage(const std::vector<Member>& suspects) {
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
std::vector<std::string> SuspectNodes(const std::vector<Member>& members,
                                      const std::vector<Member>& suspects) {
  if (suspects.size() * 2 >= members.size()) return {};
  std::set<std::string> nodes;
  for (const Member& one : suspects) nodes.emplace(api::NodeName(*one.pod));
  return {nodes.begin(), nodes.end()};
}

json::Value Evidence(const std::vector<Member>& members, const std::vector<Member>& suspects) {
  std::set<int64_t> suspected;
  for (const Member& one : suspects) suspected.insert(one.rank.rank);
  json::Array ranks;
  for (const Member& one : members) {
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

bool Trains(const Member& one) {
  return !one.rank.done() && !HasEnded(*one.pod) &&
         (one.rank.phase == "step" || one.rank.phase == "data");
}

std::string RankPlace(const Member& one) {
  return StrCat("rank ", one.rank.rank, " (pod ", api::Name(*one.pod), " on ",
                api::NodeName(*one.pod), ")");
}

double MedianSpeed(const std::vector<Member>& members, const Member& except) {
  std::vector<double> speeds;
  for (const Member& one : members) {
    if (&one != &except && Trains(one) && !one.rank.stalled && one.rank.steps_per_second > 0) {
      speeds.push_back(one.rank.steps_per_second);
    }
  }
  if (speeds.empty()) return 0;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

// The median of what `of` takes from the other ranks of the group; 0: they have no such number.
template <typename Of>
double MedianOfPeers(const std::vector<Member>& members, const Member& except, const Of& of) {
  std::vector<double> numbers;
  for (const Member& one : members) {
    if (&one == &except || !Trains(one) || one.rank.stalled) continue;
    if (one.rank.own.windows == 0 || one.rank.world != except.rank.world) continue;
    if (const double number = of(one.rank.own); number > 0) numbers.push_back(number);
  }
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
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
std::string SlowPart(const std::vector<Member>& members, const Member& one, bool known) {
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

struct SlowRank {
  std::string text;
  int64_t windows = 0;  // of its own part of a step, if that makes it slow
};

// Ranks that are much slower than their peers, with what is said of them. One that does not move
// counts if most of its peers are past it: else they may wait for each other.
std::map<int64_t, SlowRank> SlowRanks(const std::vector<Member>& members, bool known) {
  const double part = known ? kEvenPart : kSlowPart;
  std::map<int64_t, SlowRank> slow;
  for (const Member& one : members) {
    if (!Trains(one)) continue;
    if (std::string text = SlowPart(members, one, known); !text.empty() && !one.rank.stalled) {
      slow[one.rank.rank] = {std::move(text), one.rank.own.windows};
      continue;
    }
    if (one.rank.stalled) {
      const auto past = std::count_if(members.begin(), members.end(), [&one](const Member& other) {
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

// "loss is NaN at step 120" of what a pod reports; JSON has no such numbers, so they are texts.
// Numbers that came with a checkpoint alone are of its step.
std::string NotFiniteIn(const json::Value& pod) {
  const std::string_view metrics_text = api::Annotation(pod, keys::kMetrics);
  if (metrics_text.find("NaN") == std::string_view::npos &&
      metrics_text.find("Infinity") == std::string_view::npos) {
    return "";
  }
  const auto metrics = json::Parse(metrics_text, {.depth = 8, .bytes = 64 << 10});
  if (!metrics.ok() || !metrics->is_object()) return "";
  for (const auto& metric : metrics->get_object()) {
    if (!metric.value().is_string()) continue;
    const std::string_view value = json::View(metric.value().get_string());
    if (value != "NaN" && value != "Infinity" && value != "-Infinity") continue;
    const int64_t saved = ParseInt(api::Annotation(pod, api::keys::kStep)).value_or(0);
    const int64_t step = json::GetInt(*metrics, {"not_finite_since"},
                                      json::GetInt(*metrics, {"training_step"}, saved));
    constexpr size_t kNameMax = 64;
    return StrCat(std::string_view(metric.key()).substr(0, kNameMax), " is ", value,
                  step > 0 ? StrCat(" at step ", step) : "");
  }
  return "";
}

std::string OnHang(const json::Value& job) {
  const std::string_view field = json::GetString(job, {"spec", "health", "onHang"});
  return std::string(field.empty() ? api::Annotation(job, api::keys::kOnHang) : field);
}

}  // namespace

void JobController::NoteProgress(Pass& pass) {
  NoteSaves(pass);
  NoteNotFinite(pass);
  NoteWorld(pass);
  NoteStragglers(pass);
  NoteGradients(pass);
  const std::vector<Member> members = MembersOf(pass.pods, /*also_ended=*/true);
  if (members.empty()) return;
  const api::JobProgress progress = api::JobProgress::Of(members.front().rank);
  // A script that counts no steps says nothing by its phase alone.
  if (progress.step == 0 && members.front().rank.total == 0) return;
  json::Set(pass.status, {"progress"}, progress.ToJson());
  // Steps that no attempt had reached end the count of restarts to no avail.
  if (json::GetInt(pass.status, {"hang", "restarts"}) > 0 &&
      progress.step > json::GetInt(pass.status, {"hang", "bestStep"})) {
    json::Remove(pass.status, {"hang", "restarts"});
  }
}

void JobController::NoteGpuTime(Pass& pass, bool over) {
  // Their statuses read as in KubeDL's documents.
  if (kind_->kubedl_style_status()) return;
  const std::string uid(api::Uid(*pass.job));
  gpu_time_.Note(uid, pass.pods, GangRuns(pass), pass.now, over, pass.status);
  if (over) gpu_time_.Forget(uid);
}

// Every member that the gang needs runs, or has done its part.
bool JobController::GangRuns(const Pass& pass) {
  for (size_t i = 0; i < pass.spec.replicas.size(); ++i) {
    const ReplicaSpec& replica = pass.spec.replicas[i];
    const int64_t needed = std::min(replica.min_member.value_or(0), replica.replicas);
    if (pass.counts[i].running + pass.counts[i].succeeded < needed) return false;
  }
  return true;
}

// True when the job is over, or starts again, because it hangs.
bool JobController::DecideHang(Pass& pass) {
  const std::vector<Member> members = MembersOf(pass.pods, /*also_ended=*/true);
  if (!Hangs(members)) {
    if (pass.IsTrue(kHung)) {
      SetFirst(pass, kHung, false, "Moving", "The ranks move again, or were started again.");
    }
    return AwaitsEndOfHungPods(pass);
  }
  const std::vector<Member> suspects = Suspects(members);
  const std::string message = HungMessage(suspects);
  // The stacks are read after the stall is told; what is done about it waits for them.
  const bool read = std::all_of(members.begin(), members.end(), [](const Member& one) {
    return !one.rank.stalled || !one.rank.stack.empty();
  });
  const bool known = pass.IsTrue(kHung);
  json::Set(pass.status, {"hang", "ranks"}, Evidence(members, suspects));
  SetFirst(pass, kHung, true, "NoProgress", message);
  const bool told = known && json::GetBool(pass.status, {"hang", "told"});
  json::Set(pass.status, {"hang", "told"}, told || read);
  if (read && !told) pass.AddEvent("Warning", kHung, message);
  return ActOnHang(pass, members.front().rank.step, SuspectNodes(members, suspects), message);
}

bool JobController::ActOnHang(Pass& pass,
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
    Finish(pass, "Failed", kHung,
           StrCat(kind_->kind(), " ", pass.name, " is failed because it hangs",
                  restarts > 0 ? StrCat(" after ", restarts, " restarts without progress") : "",
                  ". ", message));
    return true;
  }
  json::Set(pass.status, {"hang", "restarts"}, restarts + 1);
  json::Set(pass.status, {"hang", "bestStep"},
            std::max(step, json::GetInt(pass.status, {"hang", "bestStep"})));
  std::string text = StrCat(kind_->kind(), " ", pass.name, " is restarting because it hangs, ",
                            restarts + 1, " of ", kHangRestartsMax, " times. ", message);
  for (const std::string& node : suspect_nodes) AvoidNode(pass, node);
  if (!suspect_nodes.empty()) {
    text += StrCat(" Its pods go to other nodes than ", Join(suspect_nodes, ", "),
                   " where those have room.");
  }
  SetFirst(pass, kHung, false, "Restarted", text);
  SetRestarting(pass, kind_->Reason("Restarting"), text);
  pass.AddEvent("Warning", "HangRestart", text);
  StopPods(pass, Which::kAll);
  return true;
}

// A restart is over when the last of the old pods is gone: the new ones start together.
bool JobController::AwaitsEndOfHungPods(Pass& pass) {
  if (json::GetInt(pass.status, {"hang", "restarts"}) == 0 || !pass.IsTrue("Restarting")) {
    return false;
  }
  const bool old_ones = std::any_of(pass.pods.begin(), pass.pods.end(), [](const auto& named) {
    return api::IsDeleting(*named.second);
  });
  if (old_ones) StopPods(pass, Which::kAll);
  return old_ones;
}

// A gradient of an older model is refused and computed again, which is work for nothing.
void JobController::NoteGradients(Pass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    const std::string_view text = api::Annotation(*pod, keys::kMetrics);
    if (text.find("stale_gradients") == std::string_view::npos) continue;
    const auto metrics = json::Parse(text, {.depth = 8, .bytes = 64 << 10});
    if (!metrics.ok()) continue;
    constexpr int64_t kCountMax = int64_t{1} << 53;
    const int64_t stale =
        std::clamp<int64_t>(json::GetInt(*metrics, {"stale_gradients"}), 0, kCountMax);
    const int64_t accepted =
        std::clamp<int64_t>(json::GetInt(*metrics, {"accepted_gradients"}), 0, kCountMax);
    json::Object gradients{{"accepted", accepted}, {"stale", stale}};
    if (accepted + stale > 0) gradients["stalePercentage"] = stale * 100 / (accepted + stale);
    json::Set(pass.status, {"gradients"}, std::move(gradients));
    return;
  }
}

// A save that failed is told until one goes well.
void JobController::NoteSaves(Pass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    const auto failed = api::FailedSaveOf(*pod);
    if (!failed) continue;
    const std::string message =
        StrCat("Pod ", name, " could not save step ", failed->step, ": ", failed->reason,
               ". Training continues; what was done since the last good checkpoint would be lost.");
    const bool known = pass.IsTrue(kCheckpointFailed);
    SetFirst(pass, kCheckpointFailed, true, "SaveFailed", message);
    if (!known) pass.AddEvent("Warning", kCheckpointFailed, message);
    return;
  }
  // Pods that are gone say nothing: what they could not save is still not saved.
  if (pass.pods.empty() || !pass.IsTrue(kCheckpointFailed)) return;
  SetFirst(pass, kCheckpointFailed, false, "Saved", "The last save went well.");
}

// The script decides whether to stop; users must see that steps may be wasted.
void JobController::NoteNotFinite(Pass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    const std::string what = NotFiniteIn(*pod);
    if (what.empty()) continue;
    // The condition keeps the step at which it was first seen.
    if (pass.IsTrue(kNotFinite)) return;
    const std::string message =
        StrCat("Pod ", name, " reports that ", what,
               ". Training continues, but its steps may be worth nothing: see the learning rate "
               "and the data, and start again from a checkpoint before that step.");
    SetFirst(pass, kNotFinite, true, "NotANumber", message);
    pass.AddEvent("Warning", kNotFinite, message);
    return;
  }
  if (pass.pods.empty() || !pass.IsTrue(kNotFinite)) return;
  SetFirst(pass, kNotFinite, false, "Finite", "All reported numbers are finite.");
}

// A job that cannot save itself would lose what it did: it runs until it can, or is told to stop
// all the same.
bool JobController::SuspensionWaits(Pass& pass) {
  const bool runs = std::any_of(pass.pods.begin(), pass.pods.end(), [](const auto& named) {
    return Phase(*named.second) == "Running" && !api::IsDeleting(*named.second);
  });
  const bool forced = api::Annotation(*pass.job, api::keys::kSuspendUnsaved) == "true";
  const bool waits = runs && !forced && pass.IsTrue(kCheckpointFailed);
  if (!waits) {
    if (pass.IsTrue(kSuspensionWaits)) {
      SetFirst(pass, kSuspensionWaits, false, "Suspended",
               "The suspension does not wait any more.");
    }
    return false;
  }
  if (!pass.IsTrue(kSuspensionWaits)) {
    const std::string message =
        StrCat("The suspension of ", pass.name,
               " waits until a save goes well, since its last one failed. Without waiting: swell "
               "suspend ",
               pass.name, " --force");
    SetFirst(pass, kSuspensionWaits, true, "SaveFailed", message);
    pass.AddEvent("Warning", kSuspensionWaits, message);
  }
  return true;
}

// Only told: what a slow rank costs depends on how the ranks share their work.
void JobController::NoteStragglers(Pass& pass) {
  const std::string uid(api::Uid(*pass.job));
  const bool known = pass.IsTrue(kStraggler);
  const std::vector<Member> members = MembersOf(pass.pods);
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
    SetFirst(pass, kStraggler, true, "SlowRank", message);
    if (!known) pass.AddEvent("Warning", kStraggler, message);
  } else if (known) {
    SetFirst(pass, kStraggler, false, "Even", "No rank is much slower than its peers any more.");
  }
}

// Ranks that did not find each other train as several jobs, each with all the data.
void JobController::NoteWorld(Pass& pass) {
  if (pass.spec.elastic) return;
  const std::vector<Member> members = MembersOf(pass.pods);
  int64_t reporting = 0;
  for (const auto& [name, pod] : pass.pods) {
    const auto ranks = api::RanksOf(*pod);
    const bool trains = std::any_of(ranks.begin(), ranks.end(), [](const api::RankProgress& rank) {
      return rank.phase != "init" && rank.step > 0;
    });
    if (trains) ++reporting;
  }
  // Each of several pods says that it is alone, or the first of fewer ranks than there are.
  const bool all = reporting == pass.spec.TotalReplicas() && reporting > 1;
  const bool wrong = all && !members.empty() && members.front().rank.world < reporting;
  if (wrong && !pass.IsTrue(kWorldMismatch)) {
    const std::string message = StrCat(
        reporting, " pods train, but rank ", members.front().rank.rank, " says that the group has ",
        members.front().rank.world,
        " ranks: the pods may train apart, each on all the data. The script must join the group "
        "that WORLD_SIZE and MASTER_ADDR describe.");
    SetFirst(pass, kWorldMismatch, true, "RanksApart", message);
    pass.AddEvent("Warning", kWorldMismatch, message);
  } else if (!wrong && all && pass.IsTrue(kWorldMismatch)) {
    SetFirst(pass, kWorldMismatch, false, "Together", "The ranks form one group.");
  }
}

}  // namespace swell::controllers
