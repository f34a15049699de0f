// PodStateMachine: the states of one pod on its node, and the events that lead from one to another.
//
// The table of transitions is in the .cc file. An event without a row for the state is ignored, so
// that events may come late, twice and in any order.
//
// - Threads: a plain value.
#pragma once

#include <cstdint>

namespace swell::node {

// In the order in which a pod passes through them; it may skip some.
enum class PodState : uint8_t {
  kNew,
  kAdmitting,        // waits until the node has room
  kPreparing,        // fetches config maps, secrets, claims and tokens
  kCreatingSandbox,  // network, directories, volumes
  kRunning,          // containers are started and restarted
  kCompleting,       // the main containers are done, sidecars are to stop
  kTerminating,      // every container is to stop within the grace period
  kKilling,          // the object was deleted from the API: every container is killed
  kStopped,          // no container runs; the node's resources are released
  kDeleting,         // the API was asked to delete the object
  kRemoving,         // the runtime removes the pod's directories
  kRemoved,
};

enum class PodEvent : uint8_t {
  kQueued,   // a new pod with containers to run
  kAdopted,  // an earlier agent started it: sandbox and containers exist
  kAdmitted,
  kSourcesFetched,  // and there is no sandbox yet
  kSandboxReady,
  kSandboxFailed,
  kContainersDone,  // none of the main containers will start again
  kTerminate,
  kAllStopped,
  kDeleteSent,
  kDeleteFailed,
  kDeletedFromApi,
  kRemovedFromRuntime,
};

class PodStateMachine {
 public:
  PodState state() const { return state_; }
  bool Is(PodState state) const { return state_ == state; }

  // Whether the event changed the state.
  bool Handle(PodEvent event);

  // The pod counts against the node's resources.
  bool holds_resources() const {
    return state_ >= PodState::kPreparing && state_ <= PodState::kKilling;
  }
  // No container is started any more.
  bool ending() const { return state_ >= PodState::kCompleting; }
  // Every container was told to stop before it was done, or is about to be.
  bool terminating() const {
    return state_ == PodState::kTerminating || state_ == PodState::kKilling;
  }
  // No container runs, for good.
  bool stopped() const { return state_ >= PodState::kStopped; }
  // The API has no such object: there is no status to report.
  bool deleted_from_api() const {
    return state_ == PodState::kKilling || state_ >= PodState::kRemoving;
  }

 private:
  PodState state_ = PodState::kNew;
};

}  // namespace swell::node
