// ContainerManager: starts, restarts, probes and stops the containers of one pod.
//
// It acts when its PodWorker asks it to, and reports every change through `on_change`.
//
// - Threads: core executor only.
// - Ownership: a member of its PodWorker. Host and record outlive it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/callback_scope.h"
#include "kube/node/pod/pod_host.h"
#include "kube/node/pod/pod_record.h"

namespace swell::node {

class ContainerManager {
 public:
  // What is left between SIGTERM and SIGKILL where a preStop hook, or the containers whose sidecar
  // it is, took all of the grace period: as long as on Kubernetes.
  static constexpr Duration kGraceLeast = std::chrono::seconds(2);

  ContainerManager(PodHost& host, PodRecord& record, std::function<void()> on_change);

  // Adds the containers of the pod's spec that are not known yet.
  void AddFromSpec();
  // Takes over what the API knows of containers whose node went down. True: one of them was
  // running, an init container apart.
  bool RestoreFromStatus();
  // Init containers that have ended run once more: a new sandbox has nothing of what they did.
  void InitializeAgain();
  // Takes over the containers that an earlier agent started. True: one of them ran until the
  // machine went down.
  bool Adopt(const FoundPod& found);
  void StartProbesOfRunning();

  // Every main container has exited and none is to be restarted.
  bool NothingToRun() const;
  // Starts every container whose turn it is. Returns whether the pod's work is done.
  bool StartDue();

  // Stops a running container: preStop hook, SIGTERM, SIGKILL after the grace period. The time of
  // the hook counts. `event` is the event's text; empty: the usual one.
  void Stop(ContainerState& container, Duration grace, std::string_view event = "");
  // Stops it to start it again at once, whatever the restart policy says of its end.
  void Restart(ContainerState& container, std::string_view event);
  // Stops all containers but sidecars, and cancels starts that wait.
  void StopAll(Duration grace);
  // Stops what is left of a pod that ends: ephemeral containers, then sidecars in reverse order.
  void StopRest();
  void KillAll();
  void OnExit(const ContainerRef& ref, const ContainerExit& exit);
  // Running containers stay; no callback runs any more.
  void Detach();

 private:
  void StartEphemeral();
  bool StartInit();
  bool StartMain();
  bool StartOrRestart(ContainerState& container);
  void ScheduleRestart(ContainerState& container);
  void StartAfter(ContainerState& container, Duration delay);

  void Start(ContainerState& container);
  void FindImage(ContainerState& container);
  void OnImage(const std::string& name, Result<ImageReady> result);
  void OnStarted(const std::string& name, int attempt, Result<ContainerStarted> result);
  void OnStartFailed(ContainerState& container, const Status& why);
  void OnConfigError(ContainerState& container, const Status& why);
  void OnImageError(ContainerState& container, const Status& why);
  void BackOffPulling(ContainerState& container, Duration rest);
  // Starts it later, with what its sources are then.
  void StartWithFreshSources(ContainerState& container, Duration delay);

  void RunPostStart(ContainerState& container);
  void StartProbes(ContainerState& container);
  void AddProbe(ContainerState& container, ProbeKind kind, std::string_view field);
  void OnProbeResult(const std::string& name, int attempt, ProbeKind kind, bool healthy);
  void SendTerm(const std::string& name, int attempt, Duration grace);
  void StartKillTimer(ContainerState& container, Duration grace);
  void KillLate(const std::string& name, int attempt, Duration grace);

  ContainerState* FindAttempt(std::string_view name, int attempt);
  ContainerRef RefOf(const ContainerState& container) const;
  Duration GracePeriod() const;
  Duration TimeToKill() const;
  void Warn(std::string_view reason, std::string_view message);

  PodHost& host_;
  PodRecord& record_;
  std::function<void()> on_change_;
  CallbackScope scope_;
};

// What environment and volumes may refer to. `sources` outlives the answer, and so does the record.
// `pod` is the record's, with the amounts in question.
EnvContext EnvContextOf(PodHost& host,
                        const PodRecord& record,
                        const json::Value& pod,
                        const PodSources& sources);

}  // namespace swell::node
