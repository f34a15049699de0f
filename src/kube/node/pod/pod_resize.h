// PodResize: gives a pod on its node other amounts of CPU and memory (KEPs 1287 and 5419).
//
// The spec says what the pod wants. Its containers, and the pod as a whole, keep what the node gave
// them until the node has room for all of it. Then they get it in place, or by a restart where a
// container's resizePolicy says so.
//
// - Threads: core executor only.
// - Ownership: the PodWorker's. It keeps PodRecord::resize; nobody else changes that.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "json/value.h"
#include "kube/node/pod/container_manager.h"
#include "kube/node/pod/pod_host.h"
#include "kube/node/pod/pod_record.h"

namespace swell::node {

class PodResize {
 public:
  struct Callbacks {
    // Whether the node can give the pod these amounts in place of those that it has.
    std::function<PodHost::Room(const Amounts&)> room;
    std::function<void()> on_change;
  };
  PodResize(PodHost& host, PodRecord& record, ContainerManager& containers, Callbacks callbacks);

  // The pod's object has changed; `before` is the object as it was.
  void OnPodChanged(const json::Value& before);
  // An earlier agent may have given the pod other amounts than its spec says.
  void Adopt();
  // Gives the pod what its spec wants, if there is room for it now.
  void TryResize();
  // Continues with containers that could not be changed before.
  void ApplyChanges();
  void Detach();

 private:
  PodHost::Room RoomFor(const PodResources& wanted, const Amounts& requests) const;
  void WaitFor(const PodHost::Room& room);
  void PlanContainers(const PodResources& wanted);
  void PlanWholePod(const PodResources& wanted);
  void Change(const std::string& container);
  void OnChanged(const std::string& container, const Status& status);
  void ChangeWholePod(const CpuAndMemory& wanted);
  void Retry(const std::string& what, const Status& status);
  void Complete();
  std::string RequestsText() const;

  PodHost& host_;
  PodRecord& record_;
  ContainerManager& containers_;
  Callbacks callbacks_;
  Timer retry_timer_;
  CallbackScope scope_;
};

}  // namespace swell::node
