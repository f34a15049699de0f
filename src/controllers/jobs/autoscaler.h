// Autoscaler: sets how many members of an elastic job there are to be, by what its training log
// says: elastic::Look() decides, once per interval and job.
//
// It looks at the tail of the first member's log through the API, or at the metric that the member
// pushed (SWELL_REPORT_FILE), and writes the role's `replicas`, status.elasticScaling, and what it
// remembers into an annotation, in one write with the replicas. So whoever goes on after a restart
// finds number and memory in step; a status that fell behind is mended at the next look.
//
// A log that does not come within some seconds is a look without an observation; other jobs wait
// for nothing. Jobs that do not run, or are not scaled by metrics, are left alone.
//
// Thread-safety: core executor only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/event_recorder.h"
#include "client/work_queue.h"
#include "controllers/context.h"
#include "controllers/jobs/scale_look.h"
#include "controllers/jobs/scale_target.h"
#include "elastic/log_metrics.h"

namespace swell::controllers {

class Autoscaler {
 public:
  Autoscaler(Context context, client::Resource resource, ReadScaleTarget read);

 private:
  // What is known of a job between looks.
  struct Known : ScaleLook {
    std::string memory;  // the annotation, as written
    elastic::ScaleState state;
    elastic::LogPosition position;
    std::string pushed_step;
  };
  struct Round;  // one look at one job
  using RoundPtr = std::shared_ptr<Round>;

  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  Known& Recall(const std::string& key, const json::Value& job, const ScaleTarget& target);
  void CountPods(Round& round) const;
  int64_t RoomFor(const json::Value& pod_template, int64_t most) const;
  static std::optional<double> FreshlyPushed(const Round& round, Known& known);
  void ReadLog(const RoundPtr& round);
  void OnLog(const RoundPtr& round, std::string_view log);
  void Decide(const RoundPtr& round);
  void WriteJob(const RoundPtr& round, const elastic::ScaleDecision& decision);
  void WriteStatus(const RoundPtr& round);
  void Finish(const RoundPtr& round, const Status& status);

  Context context_;
  client::Resource resource_;
  ReadScaleTarget read_;
  client::Informer& jobs_;
  client::Informer& pods_;
  client::Informer& nodes_;
  client::EventRecorder events_;
  std::map<std::string, Known> known_;  // by the job's key
  std::set<std::string> reading_;       // pods whose log is under way
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
