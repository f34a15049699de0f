// NodeHealth: the conditions of one node and the GPUs that get no new work, from the reports of its
// checks. A check that fails now and then changes nothing: a condition turns bad at the second bad
// result in a row, unless the check is certain, and good again at the third good one. A GPU stays
// bad while a check that blamed it does not know.
//
// - Threads: core executor only.
// - Ownership: executor, clock and source outlive it.
// - Invariants: one round of checks is under way at most. Bounded in conditions and GPUs.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/timer.h"
#include "json/value.h"
#include "kube/api/meta/meta.h"
#include "kube/node/runtime/health_source.h"

namespace swell::node {

class NodeHealth {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(30);
  // While a result contradicts what is reported.
  static constexpr Duration kInDoubt = std::chrono::seconds(5);
  // A round that takes longer makes what is known of its checks unknown.
  static constexpr Duration kRoundLimit = std::chrono::minutes(3);
  static constexpr int kBadInARow = 2;
  static constexpr int kGoodInARow = 3;
  static constexpr size_t kConditionsMax = 64;
  static constexpr size_t kGpusMax = 1024;

  struct Change {
    bool warning = false;
    std::string reason, message;  // as an event says it
  };
  // `on_round` hears what a round changed; the first one also when nothing is wrong.
  using OnRound = std::function<void(const std::vector<Change>& changes, bool first)>;

  NodeHealth(Executor& executor, Clock& clock, HealthSource& source, OnRound on_round);

  // `gpus`: how many the node has; a check that blames another one is told so.
  void Start(const std::string& node, int64_t gpus);

  // As status.conditions has them; empty before the first round.
  std::vector<json::Value> Conditions() const;
  // Those that an earlier agent reported and that no check reports any more.
  std::vector<std::string> Stale(const json::Value& node) const;
  // Whether an agent with checks of its own wrote the condition.
  static bool IsOfAgent(const api::Condition& condition);
  bool IsBad(std::string_view type) const;
  const std::set<int>& bad_gpus() const { return bad_gpus_; }
  bool known() const { return rounds_ > 0; }

 private:
  enum class Finding { kGood, kBad, kCertainlyBad };
  // One thing that is good or bad.
  struct Streak {
    bool known = false, bad = false;
    int against = 0;  // results in a row that contradict it
    // Whether it changed.
    bool Add(Finding finding);
  };
  struct Condition {
    Streak streak;
    Verdict verdict = Verdict::kUnknown;  // as it is told
    std::string reason, message;
    WallTime since;
  };

  void Round();
  bool InDoubt() const;
  void OnReports(std::vector<HealthReport> reports);
  void RefuseUnknownGpus(HealthReport& report) const;
  void OnTimeout();
  void Take(const HealthReport& report, std::vector<Change>& changes);
  void TakeGpus(const std::vector<HealthReport>& reports, std::vector<Change>& changes);
  void Tell(const std::string& type,
            Condition& condition,
            Verdict verdict,
            const HealthReport& report,
            std::vector<Change>& changes);
  std::string GpusText() const;

  Clock& clock_;
  HealthSource& source_;
  OnRound on_round_;
  std::string node_;
  int64_t gpu_count_ = 0;
  std::map<std::string, Condition, std::less<>> conditions_;  // by type
  struct Gpu {
    Streak streak;
    std::string message;
    std::set<std::string> blamed_by;  // types of the checks that did
  };
  std::map<int, Gpu> gpus_;
  std::set<int> bad_gpus_;
  uint64_t rounds_ = 0;
  uint64_t asked_ = 0;
  Timer timer_, limit_;
  CallbackScope scope_;
};

}  // namespace swell::node
