// DeploymentController: rolls a Deployment from one ReplicaSet to the next, and reports progress.
//
// Every pass reads the whole state and writes absolute numbers with the resourceVersion it has
// read. The name of a new ReplicaSet is a hash of its template. So a pass on stale data changes
// nothing twice: it ends in a conflict and is retried.
//
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {

class DeploymentController {
 public:
  explicit DeploymentController(Context context);

 private:
  using Done = client::WorkQueue::Done;
  struct Pass;

  void OnReplicaSet(const json::Value& set);
  void OnPod(const json::Value& pod);
  void Reconcile(const std::string& key, Done done);
  void Observe(Pass& pass);

  // One step towards what the Deployment asks for.
  void Step(Pass& pass);
  void CreateNew(Pass& pass, int64_t replicas);
  bool SyncRevision(Pass& pass);
  void ScaleAll(Pass& pass);
  void RollOver(Pass& pass);
  bool ScaleUpNew(Pass& pass);
  void ScaleDownOld(Pass& pass);
  void Recreate(Pass& pass);
  void RemoveHistory(Pass& pass);
  bool Scale(Pass& pass, const json::SharedValue& set, int64_t replicas);
  bool OldPodsRun(const Pass& pass) const;

  void WriteStatus(Pass& pass);
  // How far its newest ReplicaSet has come.
  enum class Rollout { kComplete, kProgressing, kStalled };
  void SetProgress(Pass& pass, json::Value& status, Rollout rollout);
  void SetProgressOfNew(Pass& pass, json::Value& status, Rollout rollout);

  Context context_;
  client::Informer& deployments_;
  client::Informer& sets_;
  client::Informer& pods_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
  Adoption adoption_;
};

}  // namespace swell::controllers
