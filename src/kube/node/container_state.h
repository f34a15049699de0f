// What a pod worker knows about one container: the record that the state machine reads and writes
// and that the status is built from.
// - Threads: none; owned by one PodWorker.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "kube/node/probes.h"
#include "kube/node/runtime.h"

namespace swell::node {

struct ContainerState {
  enum class Phase {
    kWaiting,   // not started yet, or waiting for its next start
    kStarting,  // the runtime was asked
    kRunning,
    kExited,  // and will not start again unless the state machine says so
  };

  std::string name;
  std::string image;
  bool init = false;
  bool sidecar = false;    // an init container with restartPolicy Always
  bool ephemeral = false;  // added to look into the pod: it runs once, and the pod not for it

  Phase phase = Phase::kWaiting;
  int attempt = -1;  // of the newest start; -1 before the first
  std::string waiting_reason;
  std::string waiting_message;
  ContainerStarted started;
  SteadyTime started_steady;
  std::optional<ContainerExit> exit;       // of the newest attempt, once it has ended
  std::optional<ContainerExit> last_exit;  // of the attempt before the newest
  bool startup_passed = false;
  bool ready = false;

  // Restart and image back-off: the next start is not before `not_before`.
  Duration back_off{0};
  SteadyTime not_before;
  TimerId timer = kNoTimer;
  std::vector<std::unique_ptr<ProbeRunner>> probes;
  bool signalled = false;  // SIGTERM or its preStop hook is under way
  bool killed_by_probe = false;
  TimerId kill_timer = kNoTimer;

  bool running() const { return phase == Phase::kRunning || phase == Phase::kStarting; }
  // What the pod is there for.
  bool main() const { return !init && !ephemeral; }
  // Its list in the pod's status.
  std::string_view StatusList() const {
    if (ephemeral) return "ephemeralContainerStatuses";
    return init ? "initContainerStatuses" : "containerStatuses";
  }
  // Nothing of it is running and nothing was asked to.
  bool stopped() const { return !running(); }
  int restart_count() const { return attempt < 0 ? 0 : attempt; }
};

}  // namespace swell::node
