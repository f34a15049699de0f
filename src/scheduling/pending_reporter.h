// PendingReporter: tells jobs why they wait: their pods' condition PodScheduled, an event, and the
// PodGroup's status.
//
// Why a job waits changes with every pod that comes or goes, and hundreds may wait. So a job is
// told at once when it begins to wait, and after that in turn: the latest reason wins, nothing is
// written twice, new words come soon and ever later while they keep changing, and where nothing but
// numbers differ they are brought up to date now and then, without an event. Of those told again so
// many writes a second go out, and never more than a few jobs' and few writes at once, so that a
// server that is slow, or starts again, is not kept busy by this: a gang of thousands that others
// make room for would be in its own way. What it refuses is told again later.
//
// - Threads: core executor only. Bounds: one entry for each job, and one for each pod of those few
//   being told; those that have nothing to say any more are dropped.
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

namespace swell::controllers {

struct PendingReporterOptions {
  Duration words_pause = std::chrono::seconds(2);  // doubles with each change, up to:
  Duration numbers_pause = std::chrono::seconds(30);
  double again_per_second = 20;  // writes to those that were told before
  int jobs_at_once = 16;
  int pods_at_once = 4;  // writes under way; a server in this process is asked at once
};

class PendingReporter {
 public:
  // The pod of that key while it waits; null when it does not any more.
  using FindWaiting = std::function<json::SharedValue(const std::string& pod)>;

  PendingReporter(const Context& context,
                  client::EventRecorder& events,
                  FindWaiting find,
                  PendingReporterOptions options = {});

  void Tell(const sched::Waiting& waiting);
  // The node where a waiting pod's room is being made: a hint for people, which goes out with what
  // the pod is told in the same turn, or alone after TellHints. Empty: there is none any more.
  void Hint(const std::string& pod, const std::string& node);
  void TellHints();

 private:
  struct Job {
    std::string group;  // empty: a pod by itself
    std::vector<std::string> pods;
    std::string message;  // the latest
    std::string told;     // the one told last; empty: none, or it was refused
    SteadyTime told_at;
    int changes = 0;                     // of words, since it was last calm
    std::optional<SteadyTime> again_at;  // when it is told again, if it is
    int writing = 0;                     // writes under way
    Status refused;                      // one of them
  };

  bool Unaware(const Job& job) const;
  void TellAgainAt(const std::string& key, Job& job, std::optional<SteadyTime> when);
  void Pump();
  void Write(const std::string& key, Job& job);
  void WritePods();
  void WritePod(const json::Value& pod, json::Value status, const std::string& job);
  json::Value Conditions(const json::Value& pod, const std::string& message) const;
  void WriteGroup(const std::string& key, bool new_words, Job& job);
  void OnWritten(const std::string& key, const Status& status);
  void Sweep();

  Context context_;
  client::EventRecorder& events_;
  client::Informer& groups_;
  FindWaiting find_;
  PendingReporterOptions options_;
  std::map<std::string, Job> jobs_;  // by group, else by pod
  std::set<std::string> unaware_;    // to be told at once: it was told nothing yet
  std::set<std::pair<SteadyTime, std::string>> again_;
  struct PodOfJob {
    std::string job;  // key; empty: a hint alone
    std::string pod;
    bool new_words;
  };
  std::deque<PodOfJob> to_write_;
  std::map<std::string, std::string> hints_;  // by pod the node, until it is written
  std::vector<std::string> hinted_;           // pods of new hints
  int pods_writing_ = 0;
  SteadyTime again_from_;  // nobody is told again before
  int writing_ = 0;        // jobs with writes under way
  size_t swept_ = 0;       // jobs that the last sweep left
  Timer timer_{context_.executor};
  client::Client client_;
};

}  // namespace swell::controllers
