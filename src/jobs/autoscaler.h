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
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscaling/scale_target.h"
#include "elastic/log_metrics.h"
#include "jobs/job_scaler.h"

namespace swell::controllers {

class Autoscaler final : public JobScaler {
 public:
  Autoscaler(Context context, client::Resource resource, ReadScaleTarget read);

 private:
  // What is known of a job between looks.
  struct Known : ScaleObservation {
    std::string memory;  // the annotation, as written
    elastic::ScaleState state;
    elastic::LogPosition position;
    std::string pushed_step;
  };
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  void Look(const std::string& key,
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
  std::set<std::string> reading_;       // pods whose log is under way
};

}  // namespace swell::controllers
