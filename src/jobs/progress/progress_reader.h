// ProgressReader: reads progress from the logs of jobs whose script does not use the SDK. A job
// enables it with a pattern (elastic/log_progress.h), in spec.progress.logPattern or the
// annotation swell.dev/progress-pattern.
//
// Every 15 s it reads the end of the leading pod's log through the API and writes what it found to
// the annotations of that pod which the SDK's reports are in. So status, columns, metrics and pages
// have one source. A pod with reports of the SDK is left alone.
//
// - Threads: core executor only.
// - Ownership: the context's informers outlive it.
// - Invariants: at most 16 logs are read at once, of each 512 KiB.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/callback_scope.h"
#include "elastic/log_progress.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::jobs {

class ProgressReader {
 public:
  ProgressReader(controllers::Context context, client::Resource resource);

  static constexpr Duration kInterval = std::chrono::seconds(15);

 private:
  // State of a job between two readings.
  struct Known {
    std::string pattern;
    std::optional<elastic::LogProgress> reader;  // empty: the pattern cannot be used
    std::string pod_uid;
    int64_t running = 0;  // pods
    elastic::LoggedProgress progress;
    SteadyTime next;
  };
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  Known& Recall(const std::string& key, const json::Value& job, std::string_view pattern);
  json::SharedValue LeadOf(const json::Value& job, int64_t& running) const;
  void ReadLog(const RoundPtr& round);
  void OnLog(const RoundPtr& round, std::string_view log);
  void Write(const RoundPtr& round, const elastic::LoggedProgress& progress);

  controllers::Context context_;
  client::Informer& jobs_;
  client::Informer& pods_;
  client::EventRecorder events_;
  std::map<std::string, Known> known_;  // by the job's key
  CallbackScope scope_;
  client::WorkQueue queue_;
  client::Client client_;
};

// Empty: the job does not ask for it.
std::string_view ProgressPatternOf(const json::Value& job);
// The name of the field that the pattern is in.
std::string ProgressPatternField(const json::Value& job);

}  // namespace swell::jobs
