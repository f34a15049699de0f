// ResourceClaimController: makes the claims that pods ask for by template, and takes devices back
// from pods that are over, as kube-controller-manager's resourceclaim-controller does.
//
// A claim made for a pod belongs to it: it goes with the pod, or when the pod has ended. A claim
// that somebody made stays; when the last pod that used it is over, its devices are free.
//
// - Threads: core executor only.
// - Invariants: a user of a claim is dropped only when the server says that the pod is gone or
//   over, whatever the cache says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/api/objects/device_claim.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class ResourceClaimController {
 public:
  explicit ResourceClaimController(Context context);

 private:
  struct Pass;  // over one claim
  using PassPtr = std::shared_ptr<Pass>;

  void OnPod(const json::Value& pod);
  void QueueWaiting(const json::Value& claim_template);
  void ReconcilePod(const std::string& key, client::WorkQueue::Done done);
  void MakeClaim(const json::SharedValue& pod,
                 const api::PodClaim& wanted,
                 const client::WorkQueue::Done& done);
  void TellPod(const json::Value& pod,
               std::string_view name,
               std::string_view claim,
               client::WorkQueue::Done done);
  json::SharedValue FindMade(const json::Value& pod, std::string_view name) const;
  void ReconcileClaim(const std::string& key, client::WorkQueue::Done done);
  void CheckUsers(const PassPtr& pass);
  void Free(const PassPtr& pass);
  void Settle(const json::Value& claim, const client::WorkQueue::Done& done);

  Context context_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& templates_;
  client::WorkQueue pod_queue_;
  client::WorkQueue claim_queue_;
  client::EventRecorder events_;
  client::Client client_;
};

}  // namespace swell::controllers
