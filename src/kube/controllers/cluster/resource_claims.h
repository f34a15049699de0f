// ResourceClaimController: makes the claims that pods ask for by template, and takes devices back
// from pods that are over, as kube-controller-manager's resourceclaim-controller does.
//
// The pods of a PodGroup (scheduling.k8s.io) share the claims that the group makes: those that pod
// and group name alike. Such a claim belongs to the group, and is reserved for each pod that uses
// it.
//
// A claim made for a pod belongs to it: it goes with the pod, or when the pod has ended. A claim
// that somebody made stays; when the last pod that used it is over, its devices are free.
//
// - Threads: core executor only.
// - Invariants: a user of a claim is dropped only when the server says that the pod is gone or
//   over, whatever the cache says.
#pragma once

#include <memory>
#include <optional>
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
  void OnGang(const json::Value& gang);
  void ReconcilePod(const std::string& key, client::WorkQueue::Done done);
  void ReconcileGang(const std::string& key, client::WorkQueue::Done done);
  // The claim that the pod's group makes for it; empty: not yet. Nothing: the pod has its own.
  std::optional<std::string> OfGang(const json::Value& pod, const api::PodClaim& wanted) const;
  // For `holder`, a pod or a gang.
  void MakeClaim(const json::SharedValue& holder,
                 const api::PodClaim& wanted,
                 const client::WorkQueue::Done& done);
  void Tell(const json::Value& holder,
            std::string_view name,
            std::string_view claim,
            client::WorkQueue::Done done);
  json::SharedValue FindMade(const json::Value& holder, std::string_view name) const;
  void ReconcileClaim(const std::string& key, client::WorkQueue::Done done);
  void CheckUsers(const PassPtr& pass);
  void Free(const PassPtr& pass);
  void Settle(const json::Value& claim, const client::WorkQueue::Done& done);

  Context context_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& templates_;
  client::Informer* gangs_ = nullptr;  // where they are served
  client::WorkQueue pod_queue_;
  client::WorkQueue gang_queue_;
  client::WorkQueue claim_queue_;
  client::EventRecorder events_;
  client::Client client_;
};

}  // namespace swell::controllers
