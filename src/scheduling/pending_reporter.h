// PendingReporter: reports why jobs wait: in their pods' PodScheduled condition, in an event, and
// in the PodGroup's status.
//
// The reason changes with every pod that starts or ends, and hundreds of jobs may wait. So the
// first reason is reported at once. That of a gang whose members are still being created is
// reported when none came for a second, or after half a minute. After that the latest reason is
// reported, and nothing is written twice. A new reason is reported soon, and with growing delays
// while it keeps changing. If only numbers differ, they are updated now and then, without an event.
// The number of repeats is bounded: per second, and by jobs and writes at a time. So they burden
// neither a slow server nor a gang of thousands for which others make room.
// A refused report is repeated later.
//
// - Threads: core executor only.
// - Invariants: it holds one entry for each job and one for each pod that is being written. Entries
//   of jobs with nothing to report are dropped.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/timer.h"
#include "kube/client/event_recorder.h"
#include "kube/controllers/context.h"
#include "sched/cycle/cycle.h"

namespace swell::scheduling {

struct PendingReporterOptions {
  Duration members_pause = std::chrono::seconds(1);   // for the next member to be created
  Duration members_limit = std::chrono::seconds(30);  // for all of them
  Duration reason_pause = std::chrono::seconds(2);    // doubles with each change, up to:
  Duration numbers_pause = std::chrono::seconds(30);
  double repeats_per_second = 20;  // writes for jobs that have a report
  int jobs_at_once = 16;
  int pods_at_once = 4;  // writes under way; no limit for a server in this process
};

class PendingReporter {
 public:
  // The pod of that key while it waits; else null.
  using FindWaiting = std::function<json::SharedValue(const std::string& pod)>;

  PendingReporter(const controllers::Context& context,
                  client::EventRecorder& events,
                  FindWaiting find,
                  PendingReporterOptions options = {});

  void Report(const sched::Waiting& waiting);
  // The node on which room is made for a waiting pod, for its status.nominatedNodeName. It is
  // written with a report of the same turn, or by WriteNominations. An empty node takes it back.
  void Nominate(const std::string& pod, const std::string& node);
  void WriteNominations();

 private:
  struct Job {
    std::string group;  // empty: a pod by itself
    std::vector<std::string> pods;
    bool surplus = false;  // it runs without them
    std::string message;   // the latest
    std::string reported;  // the last one reported; empty: none was, or it was refused
    SteadyTime reported_at;
    std::optional<SteadyTime> coming_since;  // members, of which nothing was reported
    size_t came = 0;                         // of them
    int changes = 0;                         // of the reason, since it was last stable
    std::optional<SteadyTime> repeat_at;     // when it is reported again, if at all
    int writing = 0;                         // writes under way
    Status refused;                          // one of them
  };

  bool HasUnreportedPod(const Job& job) const;
  void AwaitMembers(const std::string& key, Job& job);
  void ReportAgainAt(const std::string& key, Job& job, std::optional<SteadyTime> when);
  void Pump();
  void Write(const std::string& key, Job& job);
  void WritePods();
  void WritePod(const json::Value& pod, json::Value status, const std::string& job);
  void RecordWaiting(const json::Value& pod, const Job& job);
  json::Value Conditions(const json::Value& pod, const std::string& message) const;
  json::Object FirstCounts(const json::Value& group) const;
  void WriteGroup(const std::string& key, bool new_reason, Job& job);
  void OnWritten(const std::string& key, const Status& status);
  void Sweep();

  controllers::Context context_;
  client::EventRecorder& events_;
  client::Informer& groups_;
  client::Informer& pods_;
  FindWaiting find_;
  PendingReporterOptions options_;
  std::map<std::string, Job> jobs_;   // by group, else by pod
  std::set<std::string> unreported_;  // to be reported at once: nothing was yet
  std::set<std::pair<SteadyTime, std::string>> repeats_;
  struct PodOfJob {
    std::string job;  // key; empty: only a nomination
    std::string pod;
    bool new_reason;
  };
  std::deque<PodOfJob> to_write_;
  std::map<std::string, std::string> nominations_;  // pod → node, until it is written
  std::vector<std::string> new_nominations_;        // pods
  int pods_writing_ = 0;
  SteadyTime next_repeat_;    // no report is repeated before
  int writing_ = 0;           // jobs with writes under way
  size_t kept_by_sweep_ = 0;  // jobs that the last sweep left
  Timer timer_{context_.executor};
  client::Client client_;
};

}  // namespace swell::scheduling
