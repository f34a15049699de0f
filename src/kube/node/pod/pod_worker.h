// PodWorker: runs one pod on a node, from admission to the final status update and removal.
//
// Every event (the object changed, a container exited, a timer fired) ends in Sync(), which
// compares the whole record with the wanted state and takes the next steps. It is idempotent:
// events may come in any order and twice. The parts have the details: the states are
// PodStateMachine's, the containers ContainerManager's, the status in the API PodStatusPublisher's.
//
// - Threads: core executor only.
// - Ownership: shared by its node agent and weakly held by the runtime. The host outlives it; after
//   Detach() it does nothing any more.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "json/value.h"
#include "kube/node/pod/container_manager.h"
#include "kube/node/pod/pod_host.h"
#include "kube/node/pod/pod_progress.h"
#include "kube/node/pod/pod_record.h"
#include "kube/node/pod/pod_resize.h"
#include "kube/node/pod/pod_status_publisher.h"

namespace swell::node {

// As an event of the pod; what is lost is logged, too.
void TellDelayedState(PodHost& host, const json::Value& pod, const Status& why);
void TellLostState(PodHost& host, const json::Value& pod, const Status& why);

class PodWorker final : public PodObserver, public std::enable_shared_from_this<PodWorker> {
 public:
  PodWorker(PodHost& host, json::SharedValue pod);
  ~PodWorker() override;

  // Exactly one of them, once.
  void Start();
  void StartAdopted(const FoundPod& found);

  void Update(json::SharedValue pod);
  void OnDeletedFromApi();
  // Resources were freed: tries again to admit a pod that waits for them.
  void RetryAdmission();
  // The node shuts down: its containers are told to save and end, and are killed after `limit`. The
  // API is told nothing more.
  void StopWithNode(Duration limit);
  // The host is about to be destroyed; running containers stay.
  void Detach();

  const std::string& uid() const { return record_.uid; }
  const json::Value& pod() const { return *record_.pod; }
  // The object with the status that this node knows, which the API may not have yet.
  json::Value PodWithStatus() const;
  const Amounts& requests() const { return record_.requests; }
  const std::vector<int>& gpus() const { return record_.gpus; }
  const ClaimDevices& claims() const { return record_.claims; }
  bool holds_resources() const { return record_.state.holds_resources(); }
  // Its volumes are mounted, or are about to be.
  bool has_volumes() const {
    return record_.state.state() >= PodState::kCreatingSandbox && !record_.state.stopped();
  }
  bool terminating() const { return record_.state.terminating(); }
  // No container runs, and nothing of the pod is only in memory.
  bool stopped() const { return record_.state.stopped() && persisted_; }
  // The newest attempt of a container that was started, or -1.
  int AttemptOf(std::string_view container) const;
  bool IsRunning(std::string_view container) const;

  void OnContainerExit(const ContainerRef& container, const ContainerExit& exit) override;
  void OnReport(const std::string& report_json) override;
  void OnProgress(const ProgressRecords& records) override;

 private:
  void FetchClaims();
  void OnClaims(Result<ClaimDevices> claims);
  void TryAdmit();
  void FetchSources();
  void Refuse(std::string_view reason, const std::string& message);
  void OnSources(std::shared_ptr<const PodSources> sources);
  std::string VolumeInUse() const;
  void CreateSandbox(std::vector<VolumeSpec> volumes);
  void OnSandbox(Result<SandboxInfo> result);
  void RetryFetch(std::string_view event_reason, const std::string& message);
  void RetrySandbox(const std::string& message);
  void Retry(std::string_view event_reason, const std::string& message, Duration rest);
  void SubscribeNames();
  std::vector<HostsEntry> Hosts() const;
  void RefreshVolumes();
  void ApplyVolumes(const std::shared_ptr<const PodSources>& sources);

  void Sync();
  void SyncOnce();

  void WatchDeadline();
  void WatchDisk();
  void OnDiskUse(const DiskUse& use);
  bool EndsWithItsNode() const;  // of one that was cut off
  void FailWithNode();
  void Fail(std::string reason, std::string message, Duration grace);
  void Terminate(Duration grace, bool notice);
  void StopContainers(Duration grace, bool notice);
  void ShortenGrace(Duration grace);
  std::string Notice(Duration grace) const;
  void OnAllStopped();
  void OnPersisted(const Status& persisted);
  void DeleteFromApi();
  void RemoveFromRuntime();

  PodHost& host_;
  PodRecord record_;
  ContainerManager containers_;
  PodStatusPublisher publisher_;
  PodProgress progress_;
  PodResize resize_;
  enum class Syncing { kNo, kYes, kOnceMore } syncing_ = Syncing::kNo;
  bool detached_ = false;
  bool stops_with_node_ = false;
  bool claims_known_ = false;  // or it has none
  bool persisted_ = false;     // what its processes left in memory is on disk, or lost
  int retries_ = 0;            // of fetching claims and sources, then of deleting the object
  int sandbox_failures_ = 0;   // in a row
  std::shared_ptr<void> names_subscription_;
  std::string volumes_digest_;
  Timer kill_timer_, retry_timer_, deadline_timer_, refresh_timer_, disk_timer_;
  CallbackScope scope_;
};

}  // namespace swell::node
