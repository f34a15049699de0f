// EphemeralVolumes: makes the claims of pods' ephemeral volumes, as kube-controller-manager's
// ephemeral-volume-controller does. A claim belongs to its pod and goes with it.
// - Threads: core executor only.
// - Invariants: a claim of the same name that is not the pod's is left alone, and the pod waits. It
//   also waits while the volume of an earlier claim of that name is removed: both volumes have the
//   same directory.
#pragma once

#include <string>

#include "kube/api/objects/pod_claims.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class EphemeralVolumes {
 public:
  explicit EphemeralVolumes(Context context);

 private:
  void OnPod(const json::Value& pod);
  // Pods that want a claim of that key.
  void QueueUsers(const std::string& claim);
  bool LeavesVolume(const std::string& claim) const;
  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void MakeClaim(const json::SharedValue& pod,
                 const api::MountedClaim& wanted,
                 const client::WorkQueue::Done& done);
  void Tell(const json::Value& pod, const std::string& claim, std::string_view why);

  Context context_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& volumes_;
  client::WorkQueue queue_;
  client::EventRecorder events_;
  client::Client client_;
};

}  // namespace swell::controllers
