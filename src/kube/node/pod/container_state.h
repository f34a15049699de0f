// ContainerState: what a pod worker knows about one container.
// - Threads: core executor only.
// - Ownership: the PodRecord's; only ContainerManager changes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timer.h"
#include "kube/node/pod/probes.h"
#include "kube/node/runtime/runtime.h"

namespace swell::node {

struct ContainerState {
  enum class Phase {
    kWaiting,   // not started yet, or waiting for its next start
    kStarting,  // the runtime was asked
    kRunning,
    kExited,  // not started again unless its restart policy says so
  };

  explicit ContainerState(Executor& executor) : start_timer(executor), kill_timer(executor) {}

  std::string name;
  std::string image;
  bool init = false;
  bool sidecar = false;    // an init container with restartPolicy Always
  bool ephemeral = false;  // added to a running pod for debugging; runs once

  Phase phase = Phase::kWaiting;
  // While it waits: the runtime looks for its image, or has it and the container is to start.
  bool finding_image = false;
  std::optional<ImageReady> image_ready;
  int attempt = -1;  // of the newest start; -1 before the first
  std::string waiting_reason;
  std::string waiting_message;
  ContainerStarted started;
  SteadyTime started_steady;
  std::optional<ContainerExit> exit;       // of the newest attempt, once it has ended
  std::optional<ContainerExit> last_exit;  // of the attempt before the newest
  bool startup_passed = false;
  bool ready = false;

  // The next start is not before `not_before`, after a crash or a failed pull.
  Duration back_off{0};
  Duration pull_back_off{0};
  SteadyTime not_before;
  Timer start_timer;
  std::vector<std::unique_ptr<ProbeRunner>> probes;
  bool resizing = false;     // it is stopped to start with other amounts
  bool stopping = false;     // its preStop hook runs, or SIGTERM was sent
  std::string failed_probe;  // "liveness", "startup": why it is stopped; else empty
  Timer kill_timer;

  bool running() const { return phase == Phase::kRunning || phase == Phase::kStarting; }
  bool main() const { return !init && !ephemeral; }
  // Its list in the pod's status.
  std::string_view StatusList() const {
    if (ephemeral) return "ephemeralContainerStatuses";
    return init ? "initContainerStatuses" : "containerStatuses";
  }
  bool stopped() const { return !running(); }
  bool succeeded() const { return phase == Phase::kExited && exit->code == 0; }
  int restart_count() const { return attempt < 0 ? 0 : attempt; }
};

}  // namespace swell::node
