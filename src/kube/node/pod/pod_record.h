// PodRecord: what a pod's worker and its parts know about one pod.
// - Threads: core executor only.
// - Ownership: the PodWorker's, which changes it; ContainerManager changes the containers.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"
#include "kube/node/devices/claim_devices.h"
#include "kube/node/pod/container_state.h"
#include "kube/node/pod/pod_state_machine.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/spec/pod_sources.h"
#include "kube/node/spec/pod_spec.h"

namespace swell::node {

// Requests and limits of a pod, as its spec has them.
struct PodResources {
  std::map<std::string, json::Value, std::less<>> containers;  // by name
  json::Value whole_pod;                                       // null: it has none of its own

  bool operator==(const PodResources&) const = default;
};

// How far a resize of the pod is; PodResize keeps it.
struct ResizeState {
  // A running container whose amounts in force are not yet those that it was given.
  struct Change {
    json::Value was;      // in force
    json::Value was_all;  // the same with the pod's limits where the container has none
    int attempt = 0;      // the container's
    bool sent = false;    // to the runtime
  };
  // The amounts of the pod as a whole. They grow before those of its containers and shrink after
  // them: the kernel wants a container's quota of CPU within its pod's.
  struct WholeChange {
    json::Value was;  // as the status tells it, until all is done
    CpuAndMemory in_force;
    CpuAndMemory most;  // that it or its containers may have had, or are to have
    bool grown = false;
    bool sent = false;  // to the runtime
  };
  bool changing() const { return !changes.empty() || whole_change.has_value(); }

  std::optional<PodResources>
      given;                   // by the node; none: no resize has come, so what the spec says
  std::string pending_reason;  // Deferred or Infeasible: the spec wants more; empty: nothing waits
  std::string pending_message;
  std::map<std::string, Change, std::less<>> changes;
  std::optional<WholeChange> whole_change;
  std::string error;  // why one of the changes could not be made
};

struct PodRecord {
  explicit PodRecord(json::SharedValue pod_in);

  std::string Key() const;
  const ContainerState* Find(std::string_view container) const;
  ContainerState* Find(std::string_view container);
  const json::Value& SpecOf(const ContainerState& container) const;
  // The pod's object with the amounts that the node gave the pod.
  json::SharedValue GivenPod() const;

  // The restart policy asks for another start of a container that has exited.
  bool WantsRestart(const ContainerState& container) const;
  // The same for any of the pod's own containers, had they ended with their node.
  bool RestartsAfterItsNode() const;
  // Every init container has succeeded and every sidecar has started, once. A sidecar that restarts
  // later changes nothing about it.
  bool Initialized() const;
  bool AllStopped() const;

  json::SharedValue pod;
  const std::string uid;
  Amounts requests;  // that the node gave it
  PodStateMachine state;
  std::vector<int> gpus;  // indices of the node's devices, those of claims included
  ClaimDevices claims;
  std::shared_ptr<const PodSources> sources;
  std::optional<SandboxInfo> sandbox;
  bool mains_started = false;  // in this sandbox: the pod was initialized
  std::string start_time;      // as in the status; empty before admission
  SteadyTime kill_at;          // end of the grace period of a terminating pod
  std::string setup_problem;   // why its volumes or sandbox are not made yet; tried again
  // The node ended the pod: its phase is Failed, with this reason.
  std::string failed_reason;
  std::string failed_message;
  ResizeState resize;
  // Init containers first, in order, ephemeral ones last. Timers and probes refer to them.
  std::deque<ContainerState> containers;
};

}  // namespace swell::node
