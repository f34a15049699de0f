// TargetAutoscaler: keeps metrics that a job names at their targets by the number of a role's
// members: elastic::LookAtTargets() decides, once per interval and job.
//
// What members use comes from the metrics API (metrics.k8s.io). A metric of pods is a number that
// members push by that name (SWELL_REPORT_FILE), else the last one that a pattern finds in their
// logs where the job has one, else what custom.metrics.k8s.io says, as it does of other objects.
// External metrics come from external.metrics.k8s.io. What can not be read is told in an event, and
// stops shrinking.
//
// Answers that do not come within some seconds are a look without them. Who sets `replicas`
// otherwise is overruled at the next look, as by a HorizontalPodAutoscaler.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autoscaling/metric_specs.h"
#include "elastic/log_metrics.h"
#include "jobs/job_scaler.h"

namespace swell::controllers {

class TargetAutoscaler final : public JobScaler {
 public:
  TargetAutoscaler(Context context, client::Resource resource, ReadTargetRole read);

 private:
  struct Known : ScaleObservation {
    elastic::TargetState state;
    std::string faults;
    bool recovered = false;  // there were faults at the look before this one
  };
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  void Look(const std::string& key,
            const json::SharedValue& job,
            client::WorkQueue::Done done) override;
  ScaleObservation* Recall(const std::string& key) override;
  void Forget(const std::string& key) override { known_.erase(key); }
  void FindMembers(Round& round) const;
  void Ask(const RoundPtr& round);
  void AskUsage(const RoundPtr& round);
  void AskPods(const RoundPtr& round, size_t metric);
  void AskLogs(const RoundPtr& round, size_t metric);
  void AskExternal(const RoundPtr& round, size_t metric);
  void AskObject(const RoundPtr& round, size_t metric);
  // A GET whose answer, or the lack of one in time, is counted in the round.
  void Get(const RoundPtr& round,
           std::string path,
           std::string query,
           std::function<void(const Result<std::string>&)> heard);
  static void UseUsage(Round& round, const Result<std::string>& answer);
  static void UsePods(Round& round, size_t metric, const Result<std::string>& answer);
  static void UseSeries(elastic::MetricLook& look,
                        std::string_view api_group,
                        const Result<std::string>& answer);
  void Decide(const RoundPtr& round);
  void Write(const RoundPtr& round, const elastic::TargetDecision& decision);
  void WriteStatus(const RoundPtr& round, const elastic::TargetDecision& decision);

  ReadTargetRole read_;
  std::map<std::string, Known> known_;  // by the job's key
};

}  // namespace swell::controllers
