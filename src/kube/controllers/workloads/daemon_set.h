// DaemonSetController: runs one pod of a template on every node that the pod fits.
//
// Each pod has an affinity to its node's name, so the scheduler places it like any other pod.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/workloads/revisions.h"

namespace swell::controllers {

class DaemonSetController {
 public:
  explicit DaemonSetController(Context context);

 private:
  using Done = client::WorkQueue::Done;
  struct Pass;

  void Reconcile(const std::string& key, Done done);
  void Observe(Pass& pass);
  void Manage(Pass& pass);
  void RollOver(Pass& pass);
  void CreatePod(Pass& pass, const std::string& node);
  void DeletePod(Pass& pass, const json::SharedValue& pod);
  void WriteStatus(Pass& pass);

  Context context_;
  client::Informer& sets_;
  client::Informer& pods_;
  client::Informer& nodes_;
  Expectations expected_;
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
  Adoption adoption_;
  Revisions revisions_;
};

}  // namespace swell::controllers
