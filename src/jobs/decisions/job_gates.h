// JobGates: lets suspended jobs run when their time has come: after other jobs, after a time, some
// of an array at once (kube/api/meta/gate_keys.h). Jobs of every kind that can be suspended.
//
// All state is in the jobs' own labels and annotations, so a restarted controller continues where
// the last one stopped. A job whose gate has been opened is a job like any other.
//
// - Threads: core executor only.
// - Ownership: the informers outlive it.
// - Invariants: without a closed gate it does nothing; it writes kWritesMax jobs at most in one
//   round, and a round follows another after kSettle at the earliest.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/controllers/context.h"

namespace swell::jobs {

// Why the job, which shall fail then, can never be let run; empty: it is not such a job.
std::string_view NeverOpens(const json::Value& job);

class JobGates {
 public:
  // After the controllers of the kinds of jobs: it shares their informers.
  explicit JobGates(controllers::Context context);

  // Once the informers are in sync.
  void Start();

  static constexpr Duration kSettle = std::chrono::milliseconds(100);
  static constexpr int kWritesMax = 200;
  // A job that is named and not known counts as deleted when its dependent is this old: watches of
  // different kinds are not in step.
  static constexpr Duration kUnknownGrace = std::chrono::seconds(20);
  // How many jobs that have gone within that time are remembered; of others the grace is waited
  // for.
  static constexpr size_t kGoneMax = 10'000;

 private:
  struct Kind {
    client::Informer* jobs;
    std::string suspend;  // the field below spec
  };
  using JobKey = std::pair<size_t, std::string>;  // index of its kind, "ns/name"
  enum class Answer { kYes, kNotYet, kNever };
  struct Verdict {
    Answer answer = Answer::kYes;
    std::string reason;
  };

  void OnJob(size_t kind, const json::SharedValue& job);
  void OnGone(size_t kind, const json::SharedValue& job);
  void ScheduleRound();
  void Round();
  std::vector<std::pair<JobKey, json::SharedValue>> ClosedInOrder() const;
  Verdict Judge(const json::Value& job);
  Verdict JudgeTerm(const json::Value& job, std::string_view term);
  // How many jobs a term of the dependency names, and how many of them meet it.
  struct Tally {
    size_t all = 0, met = 0;
  };
  // Jobs that count as one.
  Verdict JudgeArray(const json::Value& job,
                     std::string_view type,
                     const std::vector<std::string_view>& names,
                     Tally& tally);
  // "; 4 of the 6 jobs of array sweep have"
  std::string TallyText(const json::Value& job, std::string_view one_of_them, Tally tally) const;
  Verdict JudgeOther(const json::Value& job, std::string_view type, std::string_view name);
  json::SharedValue FindJob(std::string_view ns, std::string_view name) const;
  // A job of that name has gone since the other was created.
  bool HasGoneSince(const json::Value& other, std::string_view name) const;
  void NoteGone(const std::string& key);
  bool TakesTurn(const json::Value& job, std::map<std::string, int64_t>& running);
  int64_t RunningOf(std::string_view ns, std::string_view array) const;
  void Open(const JobKey& key, const json::Value& job);
  bool Report(const JobKey& key, const json::Value& job, const Verdict& verdict);
  // No later than this, a round has something new to look at.
  void WakeAt(WallTime time);

  controllers::Context context_;
  std::vector<Kind> kinds_;
  std::set<JobKey> closed_;
  std::set<std::string> opening_;         // uids of jobs whose gates the watch still shows closed
  std::map<std::string, WallTime> gone_;  // "ns/name" of jobs that were there until then
  std::optional<WallTime> wake_;
  bool started_ = false;
  client::Client client_;
  Timer settle_{context_.executor};
  Timer wake_timer_{context_.executor};
  CallbackScope scope_;
};

}  // namespace swell::jobs
