// CronController: starts the jobs of KubeDL's Crons (apps.kubedl.io/v1alpha1) at their times, and
// keeps the last ones that have finished. Jobs are of any kind that Swell runs itself.
//
// All state is in the Cron's status and in the names of its jobs, which are those of their times:
// a restarted controller finds the job of a time made, and makes no second one.
//
// - Threads: core executor only.
// - Ownership: the informers outlive it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jobs/crons/cron_run.h"
#include "kube/api/objects/cron_schedule.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/workload.h"

namespace swell::jobs {

class CronController {
 public:
  // After the controllers of the kinds of jobs: it shares their informers.
  explicit CronController(controllers::Context context);

  // Finished runs that are kept where the Cron does not say.
  static constexpr int64_t kHistoryLimit = 10;
  // The newest runs in each list of the status, which has to fit an object.
  static constexpr size_t kListedMax = 100;

 private:
  using Done = client::WorkQueue::Done;
  struct Pass;
  struct Run {
    json::SharedValue job;
    const client::Resource* of;
  };

  // What the Cron's status may not show yet: watches of jobs and of Crons are not in step.
  struct Unconfirmed {
    std::optional<WallTime> started;  // the time of the latest run
    std::set<std::string> ended;      // uids of active runs whose end has been recorded
  };
  // Reason → what the event was about. Each status of a job makes a pass, and a Cron's budget of
  // events would be spent on the same words.
  using Reported = std::map<std::string, std::string, std::less<>>;

  void Reconcile(const std::string& key, Done done);
  // Records the event, unless the Cron's last one of this reason was about the same.
  void ReportOnce(const json::Value& cron,
                  std::string_view type,
                  std::string_view reason,
                  std::string_view about,
                  std::string_view message);
  void Observe(Pass& pass);
  void UpdateHistory(Pass& pass);
  // Whether a run was sent off, which writes the status when it is answered.
  bool StartDue(const std::shared_ptr<Pass>& pass, const api::CronSchedule& schedule);
  bool StartRun(const std::shared_ptr<Pass>& pass, WallTime at);
  // Whether the job that is there under the run's name is the Cron's.
  bool Has(const json::Value& cron, const NewRun& run) const;
  void Create(const std::shared_ptr<Pass>& pass, const NewRun& run, WallTime at);
  void OnCreated(const std::shared_ptr<Pass>& pass,
                 const NewRun& run,
                 WallTime at,
                 const Status& status);
  void DeleteRun(Pass& pass, const Run& run);
  void WriteStatus(Pass& pass);
  // Null where another operator runs the kind.
  client::Informer* InformerOf(const NewRun& run) const;
  json::SharedValue Find(const NewRun& run) const;

  controllers::Context context_;
  client::Informer& crons_;
  std::vector<client::Informer*> jobs_;  // of each kind
  controllers::Expectations expected_;   // what the caches do not show yet
  // Both by the Cron's uid.
  std::map<std::string, Unconfirmed> unconfirmed_;
  std::map<std::string, Reported> reported_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::jobs
