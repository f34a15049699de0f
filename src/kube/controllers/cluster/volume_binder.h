// VolumeBinder: brings claims and volumes together, as kube-controller-manager's
// persistentvolume-binder does, and makes volumes where a class asks for it.
//
// A claim gets the volume it names, else the one that was kept for it, else the smallest that has
// its class, its modes and room. Classes of the provisioner local.swell.dev get a new volume, which
// is a directory of this machine: node agents know it by its handle. A class may wait for the first
// pod; a claim that names no class waits for one, too, and then gets the default class when no
// volume without a class fits. Phases follow from what is seen; each pass writes the next step only
// and the watch event of that write brings the one after it.
//
// What is in use is protected by finalizers that the API server adds: they go when no pod on a node
// uses the claim, and when the volume is bound to none.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <string>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class VolumeBinder {
 public:
  // `remove` is called with the handle of a provisioned volume that is deleted with its claim.
  VolumeBinder(Context context, std::function<void(const std::string&)> remove);

 private:
  struct Pass;

  void Watch();
  void QueueClaimsOf(const json::Value& pod);
  void QueueVolumeOf(const json::Value& claim);
  void QueueUnbound();
  void ReconcileClaim(const std::string& key, client::WorkQueue::Done done);
  void ReconcileVolume(const std::string& name, client::WorkQueue::Done done);

  void BindNamed(Pass& pass, std::string_view volume_name);
  void FindVolume(Pass& pass);
  void Provision(Pass& pass, const json::Value& storage_class);
  void Bind(Pass& pass, const json::Value& volume);
  void SetClaimStatus(Pass& pass, std::string_view phase, const json::Value* volume);
  void SetVolumePhase(Pass& pass, std::string_view phase, std::string_view message = {});
  void Reclaim(Pass& pass);
  bool HasConsumer(const json::Value& claim, bool on_node) const;
  const json::Value* DefaultClass() const;

  Context context_;
  std::function<void(const std::string&)> remove_;
  client::Informer& claims_;
  client::Informer& volumes_;
  client::Informer& classes_;
  client::Informer& pods_;
  client::WorkQueue claim_queue_;
  client::WorkQueue volume_queue_;
  client::EventRecorder events_;
  client::Client client_;
};

}  // namespace swell::controllers
