// JobWrites: carries out what a pass decided. The status is written first, against the version that
// the pass has read; then objects are deleted and created. So no observation is lost and no pass
// acts on stale data.
// - Threads: core executor only.
// - Ownership: belongs to the JobController; the kind outlives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jobs/pass/job_pass.h"
#include "kube/client/client.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::jobs {

class JobWrites {
 public:
  // What follows from answers of the API server.
  struct Answers {
    std::function<void(const JobPass&)> on_annotated;      // the job has the pass's annotations
    std::function<void(const JobPass&)> on_status;         // the job has the pass's status
    std::function<void(const std::string& key)> on_again;  // the job needs another pass
  };
  JobWrites(controllers::Context& context, const JobKind& kind, Answers answers);

  void Write(const std::shared_ptr<JobPass>& pass, client::WorkQueue::Done done);

  // Whether a pod of the job was created that the watch has not shown yet.
  bool IsExpected(JobPass& pass, const std::string& pod);
  void OnPodSeen(const std::string& job_uid, std::string_view pod);
  // Tells in the status that members are missing because the API server refuses them.
  void NoteRefusal(JobPass& pass);
  void Forget(const std::string& job_uid);

 private:
  using PassPtr = std::shared_ptr<JobPass>;
  using BatchPtr = std::shared_ptr<controllers::WriteBatch>;

  void WriteStatus(const PassPtr& pass,
                   const json::Value& job,
                   const BatchPtr& writes,
                   const std::function<void()>& then);
  void WriteRest(const PassPtr& pass, const BatchPtr& writes);
  void WriteServices(const PassPtr& pass, const BatchPtr& writes);
  void UpdateService(const PassPtr& pass,
                     const json::Value& there,
                     const json::Value& service,
                     const BatchPtr& writes);
  void LeaveService(const PassPtr& pass, const json::Value& there, const BatchPtr& writes);
  // Why one of the job's Services is not as it should be: an event for each new cause.
  void SayOfService(const JobPass& pass,
                    const std::string& service,
                    std::string_view reason,
                    std::string message);
  // The Service is as it should be: what was said of it may be said again.
  void ForgetSaid(const JobPass& pass, const std::string& service);
  void WriteMembers(const PassPtr& pass, const BatchPtr& writes);
  void WriteGroups(const PassPtr& pass, const BatchPtr& writes);
  void WriteGroupAndPods(const PassPtr& pass, const BatchPtr& writes, const std::string& name);
  void CreatePods(const PassPtr& pass, const BatchPtr& writes, const std::string& group);
  // Kubeflow's and KubeDL's users look for it on the job. One event a write, however many there
  // are.
  void SayCreated(const JobPass& pass,
                  std::string_view reason,
                  std::string_view what,
                  const std::vector<std::string>& names);
  bool IsOfAnotherJob(const JobPass& pass, const json::Value& group);
  void OnRefused(const JobPass& pass, std::string_view reason, const std::string& message);
  void GiveBackMemory(const PassPtr& pass, const Status& refused);

  Clock& clock_;
  const JobKind& kind_;
  Answers answers_;
  client::Informer& pods_;
  client::Informer& groups_;
  client::Informer& services_;
  client::EventRecorder events_;
  client::Client client_;
  // Pods created, "JOB_UID/NAME", until the watch shows them. The watch lags when the API server is
  // busy; without this each of them would be created once more.
  controllers::Expectations expected_;
  std::map<std::string, std::string> refused_;  // why members cannot be created, by their job's uid
  // What was last said of a job's Services: by its uid and their names.
  std::map<std::string, std::map<std::string, std::string>> told_;
};

}  // namespace swell::jobs
