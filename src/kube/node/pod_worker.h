// PodWorker: one pod's life on a node, from admission to the last word about it.
//
// A state machine driven by events (the pod object changed, a container exited, a timer fired);
// every event ends in Sync(), which looks at the whole record and does what is next. It is
// idempotent, so that events may come in any order and twice.
//
//   admit → volumes → sandbox → init containers, one by one → containers → … → stopped → removed
//
// The status that the API sees is built from the record after every Sync and sent when it differs
// from what was sent last: one patch under way at a time, the newest state always wins, failures
// retried with back-off. A patch names the version that it was made from; where the pod has changed
// since, the pod is read and the patch made anew.
//
// - Threads: core executor only.
// - Ownership: shared by its node agent and weakly held by the runtime. The node (PodHost) outlives
//   it; after Detach() it does nothing any more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "json/value.h"
#include "kube/client/client.h"
#include "kube/node/container_state.h"
#include "kube/node/node_config.h"
#include "kube/node/pod_sources.h"
#include "kube/node/pod_spec.h"
#include "kube/node/runtime.h"

namespace swell::node {

class PodWorker;
class ServiceNames;

// What a pod needs of its node. Implemented by NodeAgent.
class PodHost {
 public:
  struct Verdict {
    enum class Kind { kAdmitted, kWait, kRefused } kind = Kind::kAdmitted;
    std::string reason;  // OutOfcpu, …
    std::string message;
    std::vector<int> gpus;  // indices of the node's devices
  };

  virtual ~PodHost() = default;
  virtual Executor& executor() = 0;
  virtual Clock& clock() = 0;
  virtual client::Client& client() = 0;
  virtual Runtime& runtime() = 0;
  virtual ServiceNames* names() = 0;  // may be null
  virtual const NodeConfig& config() const = 0;
  virtual const Amounts& allocatable() const = 0;
  // Whether the node has room; kWait while only pods that are on their way out are in the way.
  virtual Verdict Admit(const PodWorker& pod) = 0;
  virtual std::string GpuDeviceId(int index) const = 0;
  virtual int64_t GpuMemoryMib() const = 0;  // of each device; 0: not known
  virtual void Event(const json::Value& pod,
                     std::string_view type,
                     std::string_view reason,
                     std::string_view message) = 0;
  // The pod holds nothing of the node any more: those who wait may look again.
  virtual void OnResourcesFreed() = 0;
  // Everything about the pod is done and removed; the host drops the worker.
  virtual void OnWorkerDone(const std::string& uid) = 0;
};

class PodWorker final : public PodObserver, public std::enable_shared_from_this<PodWorker> {
 public:
  PodWorker(PodHost& host, json::SharedValue pod);
  ~PodWorker() override;

  // Exactly one of them, once.
  void Start();
  void StartAdopted(const FoundPod& found);

  void Update(json::SharedValue pod);
  // The object is gone from the API: whatever still runs is killed.
  void Gone();
  // Room was freed: asks for admission again when it was refused for now.
  void RetryAdmission();
  // The host goes away; running containers stay.
  void Detach();

  const std::string& uid() const { return uid_; }
  const json::Value& pod() const { return *pod_; }
  // The object with the status that this node knows, which the API may not have yet.
  json::Value PodWithStatus() const;
  const Amounts& requests() const { return requests_; }
  const std::vector<int>& gpus() const { return gpus_; }
  // Holds its requests on the node: admitted and not all stopped.
  bool holds_resources() const { return admitted_ && !released_; }
  bool terminating() const { return terminating_; }
  // The newest attempt of a container that was started; -1 when there is none.
  int AttemptOf(std::string_view container) const;
  bool IsRunning(std::string_view container) const;

  void OnContainerExit(const ContainerRef& container, const ContainerExit& exit) override;
  void OnReport(const std::string& report_json) override;

 private:
  enum class Stage { kAdmission, kSources, kSandbox, kRunning, kStopped, kRemoving, kDone };

  std::string Key() const;
  void InitContainers();
  void AddEphemeralContainers();
  EnvContext Context() const;

  // Start-up.
  void TryAdmit();
  void FetchSources();
  void OnSources(std::shared_ptr<const PodSources> sources);
  void CreateSandbox(std::vector<VolumeSpec> volumes);
  void RetryLater(std::string_view event_reason, const std::string& message);
  void SubscribeNames();
  void UpdateHosts();
  std::vector<HostsEntry> Hosts() const;
  void WatchDeadline();
  void RefreshVolumes();

  // The machine.
  void Sync();
  void SyncEphemeral();
  void SyncInit();
  void SyncMain();
  bool SyncRestart(ContainerState& container, bool always);
  void SyncTerminating();
  bool NothingToRun() const;
  bool WantsRestart(const ContainerState& container) const;
  void ScheduleRestart(ContainerState& container);
  bool Due(const ContainerState& container) const;

  // Containers.
  void StartContainer(ContainerState& container);
  void OnStarted(const std::string& name, int attempt, Result<ContainerStarted> result);
  void OnStartFailed(ContainerState& container, const Status& why);
  void ConfigError(ContainerState& container, const Status& why);
  void WaitForImage(ContainerState& container, const Status& why);
  void AddGpuEnv(const ContainerState& container, ContainerSpec& spec) const;
  void AddGpuShareEnv(ContainerSpec& spec) const;
  void RunPostStart(ContainerState& container);
  void StartProbes(ContainerState& container);
  void AddProbe(ContainerState& container, ProbeKind kind, std::string_view field);
  void OnProbeVerdict(const std::string& name, int attempt, ProbeKind kind, bool healthy);
  // `why`: for the event; empty where the whole pod ends.
  void StopContainer(ContainerState& container, Duration grace, std::string_view why = "");
  void Terminate(ContainerState& container, int attempt);
  void Arm(ContainerState& container, Duration delay);
  ContainerState* Find(std::string_view name);
  const json::Value& SpecOf(const ContainerState& container) const;
  ContainerRef RefOf(const ContainerState& container) const;

  // The end.
  void BeginTermination(Duration grace, bool notice);
  void ShortenGrace(Duration grace);
  std::string Notice(Duration grace) const;
  void KillEverything();
  void Fail(std::string reason, std::string message, Duration grace);
  void OnAllStopped();
  void Release();
  void DeleteFromApi();
  void RemoveFromRuntime();
  bool AllStopped() const;

  // Status (pod_status.cc).
  json::Object BuildStatus() const;
  std::string_view Phase() const;
  bool InitDone() const;
  json::Array Conditions(std::string_view phase) const;
  json::Object ContainerStatus(const ContainerState& container) const;
  json::Object StateOf(const ContainerState& container) const;
  void Publish();
  void Send();
  void Write(json::Value patch, std::function<void(const Status&)> done);
  void KnowVersionOf(const json::Value& pod);
  bool KnowsVersionOf(const json::Value& pod) const;
  void ReadAnew();
  void Lost();
  void SendSoon();
  void SendLater(const Status& why);
  void SendStatus();
  bool Overwritten() const;
  void WatchOverwrites();
  bool SendReport();

  void Later(Duration delay, TimerId& timer, std::function<void()> fn);

  PodHost& host_;
  json::SharedValue pod_;
  std::string uid_;
  Amounts requests_;
  std::vector<int> gpus_;
  // Init containers first, in order, ephemeral ones last. They stay where they are: timers and
  // probes refer to them.
  std::deque<ContainerState> containers_;

  Stage stage_ = Stage::kAdmission;
  bool started_ = false;
  bool detached_ = false;
  bool admitted_ = false;
  bool released_ = false;
  bool gone_ = false;         // from the API
  bool terminating_ = false;  // everything is to stop
  bool finishing_ = false;    // containers are done, sidecars are to stop
  bool in_sync_ = false;
  bool sync_again_ = false;
  std::string failed_reason_;  // the agent ended the pod: phase Failed with this reason
  std::string failed_message_;
  std::string waiting_reason_ = "ContainerCreating";
  std::shared_ptr<const PodSources> sources_;
  SandboxInfo sandbox_;
  bool has_sandbox_ = false;
  std::string start_time_;
  SteadyTime kill_at_;
  TimerId kill_timer_ = kNoTimer;
  TimerId retry_timer_ = kNoTimer;
  TimerId deadline_timer_ = kNoTimer;
  TimerId refresh_timer_ = kNoTimer;
  int retries_ = 0;
  std::shared_ptr<void> names_subscription_;
  std::string volumes_digest_;

  // Status delivery.
  mutable json::Array conditions_;
  std::optional<uint64_t> sent_status_;  // a hash of what the API has
  bool told_ = false;  // the API had the pod's end before this worker: nothing to add
  bool sending_ = false;
  bool send_posted_ = false;
  bool final_sent_ = false;
  int send_failures_ = 0;
  TimerId send_timer_ = kNoTimer;
  TimerId reconcile_timer_ = kNoTimer;
  std::string base_version_;  // of the object that the next write is made from
  std::map<std::string, std::string> annotations_;  // not yet with the API
  bool deleting_from_api_ = false;
  TimerId annotate_timer_ = kNoTimer;
};

}  // namespace swell::node
