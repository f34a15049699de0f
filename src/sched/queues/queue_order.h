// QueueOrder: the order in which the waiting jobs of all queues are served.
//
// Jobs with promised room are served first, because others may have been stopped for them. Among
// queues with promised jobs, one whose head is the promised job goes first. Then, between queues:
// below the fair share first; within quota with the job; higher priority; one with a fair share
// before one without; lower dominant share with the job, then without; smaller allocatable share;
// older; name. Within a queue: priority, except that a job which was moved for others comes after
// them; promised room; where the project is fair to its users, the user who holds the fewest GPUs,
// then CPUs; below its minimum first; age.
//
// A line of jobs that are alike (state/waiting_lines.h) is served job by job, until the caller sets
// the rest of it aside, because one of them could not be helped. They come back when a job starts
// that changes the order in which they would have had their turns: all jobs are served in the same
// order as if each stood alone.
//
// - Threads: none. Lives for one action.
// - Invariants: popping a job renews the keys of its queue and of the queues above. The caller says
//   when it started, and when the usage of other queues changed too.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "sched/queues/fair_share.h"
#include "sched/state/state.h"

namespace swell::sched {

struct WaitingJob {
  GroupId group = kNone;
  std::vector<PodId> pods;  // what would be placed next
  QueueAmounts need{};      // what its queue would be charged
  bool surplus = false;     // the pods are beyond the group's minimum
  int32_t turn = 0;         // among jobs of the same group
  bool had_turn = false;    // a member was placed in its turn, perhaps another job's
  bool more_alike = false;  // others of its line are still to come; `pods` of such a job are the
                            // caller's to find
};

class QueueOrder {
 public:
  // `promised_first`: in all queues those go first that were promised room.
  QueueOrder(State& state, const QueueShares& shares, bool promised_first);

  void Push(WaitingJob job);
  // Pushes the jobs of a line except those in `but`. The line must not change while this lives.
  // False: `but` has all of them.
  bool PushLine(const WaitingLine& line, const std::set<GroupId>& but);
  bool Empty() const { return size_ == 0; }
  // The next job; not empty.
  WaitingJob Pop();
  // The job popped last, of a line, got nothing. The rest of its line would get nothing, too.
  void SetAside();
  // The job popped last started.
  void Started();
  // Usage changed in other queues, too, than those above the job popped last.
  void Reorder();

 private:
  // The order of jobs in a queue; the least goes first.
  struct JobKey {
    bool behind_promised = false;  // where promised jobs go before all others
    int32_t negative_priority = 0;
    bool not_promised = false;
    bool surplus = false;
    bool above_minimum = false;
    GroupId group = kNone;  // in job order: age, then uid
    int32_t turn = 0;
    auto Class() const {
      return std::tuple(behind_promised, negative_priority, not_promised, surplus, above_minimum);
    }
  };
  struct HeldJob {
    JobKey key;
    WaitingJob job;
    const JobQueue* line = nullptr;  // null: the job stands alone
    const std::set<GroupId>* but = nullptr;
    size_t at = 0;  // index of the job in its line
  };
  struct JobLess {
    const State* state;
    bool operator()(const HeldJob& a, const HeldJob& b) const { return Less(a.key, b.key); }
    bool Less(const JobKey& a, const JobKey& b) const;
  };
  // The order of queues under one parent, each by its next job; the least goes first.
  struct QueueKey {
    bool nothing_promised = false;   // Among queues with promised jobs, one whose head is the
    bool head_not_promised = false;  // promised job goes first.
    bool over_fair_share = false;
    bool beyond_quota = false;  // with the job
    int32_t negative_priority = 0;
    bool uses_undue = false;    // of a resource of which its fair share is 0
    double share_with_job = 0;  // the dominant share
    double share_without = 0;
    int64_t allocatable_gpus = 0;
    int32_t rank = 0;  // age, then name
    auto operator<=>(const QueueKey&) const = default;
  };
  // The jobs of one user, or of all where the project makes no difference.
  struct UserJobs {
    UserId user = kNone;
    int64_t gpus = 0, cpus = 0;  // that the user holds, where it matters
    std::set<HeldJob, JobLess> jobs;
    std::vector<HeldJob> aside;  // lines, each from the first job that had not had its turn
  };
  // The job that had the last turn in a queue, or has the next: those before it had theirs.
  struct Turn {
    const UserJobs* user = nullptr;
    JobKey key;
  };
  struct Lane {
    std::vector<UserJobs> users;                    // with jobs of the queue itself
    std::set<std::pair<QueueKey, QueueId>> served;  // children with jobs
    int promised = 0;                               // jobs here and below that were promised room
    QueueKey key;
    bool listed = false;  // in its parent's `served`
    bool pushed = false;  // among `pushed_`
  };

  bool Promised(const WaitingJob& job) const;
  // A job that was moved for another comes after it, whatever its priority: it could take its old
  // place back otherwise.
  int32_t PriorityOf(const GroupState& group) const;
  // The user whose turn it is among the queue's own jobs; null if it has none.
  UserJobs* NextUser(QueueId queue);
  const UserJobs* NextUser(QueueId queue) const;
  bool GoesBefore(const UserJobs& a,
                  const JobKey& job,
                  const UserJobs& b,
                  const JobKey& other) const;
  UserJobs& JobsOf(QueueId queue, const GroupState& group);
  void ReadUse(QueueId queue, UserJobs& jobs) const;
  JobKey KeyOf(const WaitingJob& job) const;
  // Skips jobs that are not to come. False: the line has no more.
  bool FindNext(HeldJob& held) const;
  // Lines of the queue that were set aside come back.
  void BringBack(QueueId queue);
  bool HadTurn(const UserJobs& user, HeldJob& held, const Turn& turn) const;
  QueueId RootOf(QueueId queue) const;
  const WaitingJob* Head(QueueId queue) const;
  QueueKey KeyOf(QueueId queue, const WaitingJob& head) const;
  // Lists a queue under its parent by its present key, or takes it out when it has no jobs.
  void Relist(QueueId queue);
  void RelistPath(QueueId queue);
  void NotePushed(QueueId queue);
  void RelistPushed();
  void CountPromised(QueueId queue, const WaitingJob& job, int sign);
  std::set<std::pair<QueueKey, QueueId>>& SiblingsOf(QueueId queue);

  State& state_;
  const QueueShares& shares_;
  const bool promised_first_;
  std::vector<Lane> lanes_;                       // by QueueId
  std::set<std::pair<QueueKey, QueueId>> roots_;  // with jobs
  size_t size_ = 0;
  QueueId stale_ = kNone;        // popped from last; its path is relisted before the next look
  std::vector<QueueId> pushed_;  // have another head; relisted before the next look, too
  std::set<QueueId> with_aside_;
  UserId popped_user_ = kNone;
  JobKey popped_;
  std::optional<std::set<HeldJob, JobLess>::iterator> popped_line_;
};

}  // namespace swell::sched
