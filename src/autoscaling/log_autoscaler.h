// LogAutoscaler: sets the number of members of an elastic job from its training log.
// elastic::DecideScale() decides, once per interval and job.
//
// It reads the tail of the first member's log through the API, or the metric that the member pushed
// (SWELL_REPORT_FILE). It writes the role's `replicas` and its own memory, an annotation, in one
// write, so both agree after a restart. Then it writes status.elasticScaling; a status that was not
// written is corrected in the next interval.
//
// If the log does not arrive within some seconds, the interval has no observation; other jobs do
// not wait. Jobs that do not run, or are not scaled by metrics, are left alone.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscaling/job_scaler.h"
#include "autoscaling/scale_target.h"
#include "elastic/log_metrics.h"

namespace swell::autoscaling {

class LogAutoscaler final : public JobScaler {
 public:
  LogAutoscaler(controllers::Context context, client::Resource resource, ReadScaleTarget read);

 private:
  // State of a job between two intervals.
  struct Known : ScaleObservation {
    std::string memory;  // the annotation, as written
    elastic::ScaleState state;
    elastic::LogPosition position;
    std::string pushed_step;
  };
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  void ObserveAndDecide(const std::string& key,
                        const json::SharedValue& job,
                        client::WorkQueue::Done done) override;
  ScaleObservation* Recall(const std::string& key) override;
  void Forget(const std::string& key) override { known_.erase(key); }
  Known& Remember(const std::string& key, const json::Value& job, const ScaleTarget& target);
  void CountPods(Round& round) const;
  int64_t RoomFor(const json::Value& pod_template, int64_t most) const;
  static std::optional<double> FreshlyPushed(const Round& round, Known& known);
  void ReadLog(const RoundPtr& round);
  void OnLog(const RoundPtr& round, std::string_view log);
  void Decide(const RoundPtr& round);
  void Write(const RoundPtr& round, const elastic::ScaleDecision& decision);
  void WriteStatus(const RoundPtr& round);

  ReadScaleTarget read_;
  client::Informer& nodes_;
  std::map<std::string, Known> known_;  // by the job's key
  std::set<std::string> reading_;       // pods whose log is being read
};

}  // namespace swell::autoscaling
