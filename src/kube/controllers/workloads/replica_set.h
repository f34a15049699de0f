// ReplicaSetController: as many pods of a template as asked for.
//
// Pods get their names here, before they are created: so a pass knows what it has asked for until
// the cache shows it, and never asks twice. Creations go out in batches that double (1, 2, 4, …):
// what a quota refuses is asked for once, not five hundred times.
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
  Claims claims_;
};

}  // namespace swell::controllers
