// TargetAutoscaler: keeps the metrics that a job names at their targets by changing the number of
// members of a role. elastic::DecideByTargets() decides, once per interval and job.
//
// Resource usage comes from metrics.k8s.io. A pod metric is the number that members push by that
// name (SWELL_REPORT_FILE). Without one it is the last match of the job's pattern in their logs,
// and without a pattern the value from custom.metrics.k8s.io. Object metrics come from
// custom.metrics.k8s.io, external metrics from external.metrics.k8s.io. A metric that cannot be
// read is reported in an event and prevents shrinking.
//
// Answers that do not arrive within some seconds are left out. Other changes of `replicas` are
// overwritten in the next interval, as a HorizontalPodAutoscaler does.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autoscaling/job_scaler.h"
#include "autoscaling/metric_specs.h"
#include "elastic/log_metrics.h"

namespace swell::autoscaling {

class TargetAutoscaler final : public JobScaler {
 public:
  TargetAutoscaler(controllers::Context context, client::Resource resource, ReadTargetRole read);

 private:
  struct Known : ScaleObservation {
    elastic::TargetState state;
    std::string faults;
    bool recovered = false;  // there were faults at the look before this one
  };
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  void ObserveAndDecide(const std::string& key,
                        const json::SharedValue& job,
                        client::WorkQueue::Done done) override;
  ScaleObservation* Recall(const std::string& key) override;
  void Forget(const std::string& key) override { known_.erase(key); }
  void FindMembers(Round& round) const;
  void ReadMetrics(const RoundPtr& round);
  void ReadUsage(const RoundPtr& round);
  void ReadPodMetric(const RoundPtr& round, size_t metric);
  void ReadLogs(const RoundPtr& round, size_t metric);
  void ReadExternalMetric(const RoundPtr& round, size_t metric);
  void ReadObjectMetric(const RoundPtr& round, size_t metric);
  // A GET whose answer, or the lack of one in time, is counted in the round.
  void Get(const RoundPtr& round,
           std::string path,
           std::string query,
           std::function<void(const Result<std::string>&)> heard);
  static void UseUsage(Round& round, const Result<std::string>& answer);
  static void UsePods(Round& round, size_t metric, const Result<std::string>& answer);
  static void UseSeries(elastic::MetricSample& look,
                        std::string_view api_group,
                        const Result<std::string>& answer);
  void Decide(const RoundPtr& round);
  void Write(const RoundPtr& round, const elastic::TargetDecision& decision);
  void WriteStatus(const RoundPtr& round, const elastic::TargetDecision& decision);

  ReadTargetRole read_;
  std::map<std::string, Known> known_;  // by the job's key
};

}  // namespace swell::autoscaling
