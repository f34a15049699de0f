// StatefulSetController: pods with stable names and volumes, in order.
//
// Names follow from ordinals, so no pod is created twice. A pass reads the pods from 0 up and makes
// the first step that is due (all steps with podManagementPolicy Parallel). The next pass follows
// when the cache shows it.
//
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/workloads/revisions.h"

namespace swell::controllers {

class StatefulSetController {
 public:
  explicit StatefulSetController(Context context);

 private:
  using Done = client::WorkQueue::Done;
  struct Pass;

  void Reconcile(const std::string& key, Done done);
  void Observe(Pass& pass);
  bool Fill(Pass& pass);
  bool Shrink(Pass& pass);
  void RollOver(Pass& pass);
  void CreatePod(Pass& pass, int64_t ordinal);
  void DeletePod(Pass& pass, const json::SharedValue& pod);
  std::vector<json::SharedValue> ClaimsOf(const Pass& pass, int64_t ordinal);
  void OwnClaims(Pass& pass, const json::Value& pod, int64_t ordinal, bool leaving);
  void CreateClaims(Pass& pass, int64_t ordinal, json::Value& pod);
  void WriteStatus(Pass& pass);

  Context context_;
  client::Informer& sets_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
  Adoption adoption_;
  Revisions revisions_;
};

}  // namespace swell::controllers
