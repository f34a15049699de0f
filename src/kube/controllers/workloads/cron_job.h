// CronJobController: creates Jobs at the times of a schedule, and keeps only the most recent ones.
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/api/objects/cron_schedule.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {

class CronJobController {
 public:
  explicit CronJobController(Context context);

 private:
  using Done = client::WorkQueue::Done;
  struct Pass;

  void Reconcile(const std::string& key, Done done);
  void Observe(Pass& pass);
  void RemoveHistory(Pass& pass);
  void StartDue(Pass& pass, const api::CronSchedule& schedule, const TimeZone& zone);
  void StartJob(Pass& pass, WallTime at);
  void DeleteJob(Pass& pass, const json::SharedValue& job);
  void WriteStatus(Pass& pass);

  Context context_;
  client::Informer& cron_jobs_;
  client::Informer& jobs_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
