// ReplicaSetController: keeps the requested number of pods of a template.
//
// Pods get their names before they are created, so a pass knows which creations the cache does not
// show yet and never repeats them. Creations are sent in batches that double (1, 2, 4, …), so a
// quota refuses a few requests, not five hundred.
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

// ReplicationControllers are the same thing with an older selector.
struct ReplicaKind {
  client::Resource resource;
  std::string kind;
  std::string component;
};
ReplicaKind ReplicaSets();
ReplicaKind ReplicationControllers();

class ReplicaSetController {
 public:
  ReplicaSetController(Context context, ReplicaKind kind);

 private:
  using Done = client::WorkQueue::Done;
  struct Pass;

  void OnPod(const json::Value& pod);
  void Reconcile(const std::string& key, Done done);
  std::vector<json::SharedValue> PodsOf(const json::Value& set);
  void CreatePods(const std::shared_ptr<Pass>& pass, int64_t batch);
  void DeletePods(Pass& pass, int64_t count);
  void WriteStatus(Pass& pass);

  Context context_;
  ReplicaKind kind_;
  client::Informer& sets_;
  client::Informer& pods_;
  Expectations expected_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
  Adoption adoption_;
};

}  // namespace swell::controllers
