// ContainerHost: the half of a runtime that runs on the I/O thread, as far as it is the same for
// all runtimes: pods' directories (PodStore), logs, reports, progress, probes, connections and
// measurements. ProcessHost starts containers as processes of this machine; CriHost has a container
// engine start them.
//
// Every method answers through callbacks on the same thread; HostedRuntime carries calls and
// answers between the threads.
//
// - Threads: the reactor's.
// - Ownership: core and reactor outlive the host. Running containers outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/runtime/service_route.h"
#include "kube/process/background/idle_worker.h"
#include "kube/process/files/file_watch.h"
#include "kube/process/machine/usage_meter.h"
#include "kube/process/network/net_probe.h"
#include "kube/process/pod_dialer.h"
#include "kube/process/pod_store.h"
#include "kube/process/state_writer.h"
#include "kube/process/streams/fd_stream.h"

namespace swell::process {

class ContainerHost {
 public:
  struct Events {
    std::function<void(const node::ContainerRef&, const node::ContainerExit&)> on_exit;
    std::function<void(const std::string& pod_uid, const std::string& report)> on_report;
    std::function<void(const std::string& pod_uid, const node::ProgressRecords&)> on_progress;
  };

  // `core` is the executor that uses the streams of Dial.
  ContainerHost(Executor& core, net::Reactor& reactor, PodStore::Options options, Events events);
  virtual ~ContainerHost();

  // ---- different for each runtime ----

  virtual void CreateSandbox(const node::SandboxSpec& spec,
                             std::function<void(Result<node::SandboxInfo>)> done) = 0;
  virtual void StartContainer(const node::ContainerSpec& spec,
                              std::function<void(Result<node::ContainerStarted>)> done) = 0;
  virtual void Signal(const node::ContainerRef& ref, int signal) = 0;
  virtual void Resize(const node::ContainerRef& ref,
                      const node::CpuAndMemory& amounts,
                      std::function<void(const Status&)> done) = 0;
  virtual void Stop(const std::string& uid) = 0;
  // What its processes left in memory is written to disk before.
  virtual void Remove(const std::string& uid, std::function<void(const Status&)> done) = 0;
  virtual void Exec(const node::ContainerRef& ref,
                    const node::ExecSpec& spec,
                    std::function<void(Result<node::ExecResult>)> done) = 0;
  virtual std::vector<node::RouteFault> RouteServices(
      const std::vector<node::ServiceRoute>& routes) = 0;
  // Removes every pod that has not ended, and what it used of the machine. Pods that have ended
  // keep their logs for the next start.
  void Shutdown(std::function<void()> done);

  // ---- the same for all ----

  std::vector<node::FoundPod> List(const std::string& node) const;
  // Reports exits that the finder does not know of.
  void Adopt(const node::FoundPod& pod);
  void Dial(const std::string& uid, uint16_t port, PodDialer::Done done);
  void Probe(const std::string& uid,
             const node::ProbeSpec& spec,
             std::function<void(node::ProbeResult)> done);
  std::vector<node::ContainerUsage> Usage(const std::string& node);
  // `done` runs on a thread of its own.
  virtual void MeasureDisk(const std::string& uid, std::function<void(node::DiskUse)> done);
  void UpdateHosts(const std::string& uid, const std::vector<node::HostsEntry>& hosts);
  void UpdateVolume(const std::string& uid, const node::VolumeSpec& volume);
  void WriteNotice(const std::string& uid, const std::string& json);
  // Writes to disk the state that a process of the pod left in memory, if one did. Nothing of the
  // pod runs any more. Callbacks as StateWriter's.
  void Persist(const std::string& uid, StateWriter::Callback on_delay, StateWriter::Callback done);
  Result<std::string> LogPath(const node::ContainerRef& ref, const std::string& kept_of) const {
    return store_.LogPath(ref, kept_of);
  }
  KeptLogs& kept_logs() { return store_.kept_logs(); }
  // Whether it runs, so that its log may still grow.
  bool IsRunning(const node::ContainerRef& ref) const;
  FileWatch* files() { return files_.get(); }
  // Calls `fn` once, later, when the container has ended.
  void WhenEnded(const node::ContainerRef& ref, std::function<void()> fn);

 protected:
  // Path of the pod's network namespace; empty: the host's, or it is not known.
  virtual std::string NetworkOf(const ProcessPod& pod) const = 0;
  // The container's control group of version 2; empty: its processes are measured one by one.
  virtual std::string GroupOf(const ProcessContainer& container) const = 0;
  // Removes a pod of which nothing runs, and calls its `on_removed`.
  virtual void RemoveNow(const std::string& uid) = 0;
  // Runs when all pods are removed. Removes the rest: networks, firewall rules.
  virtual void FinishShutdown() = 0;

  // Reads what earlier runs left. Before the reactor runs.
  Status StartFiles();
  // Starts to measure usage and to read progress at intervals.
  void StartWatching();
  void WatchReports(ProcessPod& pod);
  // Calls `done` when the pod is removed, and kills its containers.
  void BeginRemoval(ProcessPod& pod, std::function<void(const Status&)> done);
  // Continues when nothing of the pod runs.
  void FinishRemoval(const std::string& uid);
  Result<ProcessContainer*> FindRunning(const node::ContainerRef& ref) const;
  Status PrepareVirtualGpus(const ProcessPod& pod, const node::ContainerSpec& spec) const;
  // `container` has ended as its `exit` says.
  void ReportExit(ProcessContainer& container);

  net::Reactor& reactor_;
  Events events_;
  RealClock clock_;
  std::unique_ptr<FileWatch> files_;
  PodStore store_;
  FdStreams streams_;

 private:
  struct DiskPlaces;
  static DiskPlaces PlacesOf(const ProcessPod& pod);
  void TellSavingLater();
  void ReadReport(const ProcessPod& pod, const std::string& file);
  void ReadProgressLater();
  // Reports the pod's records if they have changed. False if it has written none.
  bool ReportProgress(const std::string& uid, const ProcessPod& pod);
  std::map<node::ContainerRef, node::ContainerUsage> Measure();
  void MeasureLater();
  std::vector<const ProcessContainer*> WithVirtualGpus() const;
  static void ShowUsage(const std::vector<const ProcessContainer*>& containers,
                        const std::map<node::ContainerRef, node::ContainerUsage>& usage);

  PodDialer dialer_;
  std::map<uint64_t, std::unique_ptr<NetProbe>> probes_;
  uint64_t next_probe_ = 1;
  UsageMeter meter_;
  SteadyTime last_measured_;
  std::unique_ptr<IdleWorker> disks_;  // measures what pods have on disk; from the first one on
  std::unique_ptr<IdleWorker> saver_;  // writes checkpoints; from the first one on
  StateWriter states_;
  bool tells_saving_ = false;
  std::map<std::string, node::ProgressRecords> progress_;  // by pod uid, as last reported

 protected:
  CallbackScope scope_;  // derived classes close it before their own members end
};

}  // namespace swell::process
