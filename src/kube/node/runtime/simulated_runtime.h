// SimulatedRuntime: runs nothing. Containers start after a virtual delay, end when their pod's
// annotations say so, and obey signals; one object serves thousands of nodes.
//
//   swell.dev/run-seconds: "30"    the main containers end by themselves; absent: they run on
//   swell.dev/exit-code: "1"       with this code (0)
//   swell.dev/stop-seconds: "2.5"  SIGTERM ends them after this long (0: at once) with code 143
//   swell.dev/log: "text"          what their log says
//   swell.dev/missing-image: "x"   the image x does not exist
//   swell.dev/used-cpu: "300m"     what each main container is measured to use (nothing)
//   swell.dev/used-memory: "1Gi"
// Nothing is pulled or made for a container: of its events there is only that it started.
// Init containers end at once with code 0. Probes and hooks succeed. A command run in a container
// says what it is, sends its input back and ends with it; a port sends back what it gets.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/executor.h"
#include "kube/node/runtime/runtime.h"

namespace swell::node {

class SimulatedRuntime : public Runtime {
 public:
  struct Options {
    Duration sandbox_delay = std::chrono::milliseconds(2);
    Duration start_delay = std::chrono::milliseconds(3);
    bool resolves_names = false;  // nobody reads the hosts of thousands of nodes
    bool keeps_specs = false;     // all of them, for tests: files, environments, mounts
  };

  SimulatedRuntime(Executor& executor, Clock& clock, Options options);
  SimulatedRuntime(Executor& executor, Clock& clock)
      : SimulatedRuntime(executor, clock, Options()) {}
  ~SimulatedRuntime() override;

  RuntimeInfo Info() const override;
  void List(const std::string& node,
            std::function<void(Result<std::vector<FoundPod>>)> done) override;
  void Adopt(const FoundPod& pod, std::weak_ptr<PodObserver> observer) override;
  void CreateSandbox(const SandboxSpec& spec,
                     std::weak_ptr<PodObserver> observer,
                     std::function<void(Result<SandboxInfo>)> done) override;
  void EnsureImage(const ImageRequest& request,
                   std::function<void()> on_pull,
                   std::function<void(Result<ImageReady>)> done) override;
  void StartContainer(const ContainerSpec& spec,
                      std::function<void(Result<ContainerStarted>)> done) override;
  void Signal(const ContainerRef& container, int signal) override;
  void Resize(const ContainerRef& container,
              const CpuAndMemory& amounts,
              std::function<void(const Status&)> done) override;
  void Stop(const std::string& pod_uid,
            std::function<void(const Status&)> on_delay,
            std::function<void(const Status&)> done) override;
  void Remove(const std::string& pod_uid, std::function<void(const Status&)> done) override;
  void Exec(const ContainerRef& container,
            const ExecSpec& spec,
            std::function<void(Result<ExecResult>)> done) override;
  void OpenStdio(const ContainerRef& container, const StdioSpec& spec, StdioCallback done) override;
  void Dial(const std::string& pod_uid,
            uint16_t port,
            std::function<void(Result<api::DuplexPtr>)> done) override;
  void Probe(const std::string& pod_uid,
             const ProbeSpec& spec,
             std::function<void(ProbeResult)> done) override;
  void Usage(const std::string& node,
             std::function<void(std::vector<ContainerUsage>)> done) override;
  void MeasureDisk(const std::string& pod_uid, std::function<void(DiskUse)> done) override;
  void UpdateHosts(const std::string& pod_uid, const std::vector<HostsEntry>& hosts) override;
  void UpdateVolume(const std::string& pod_uid, const VolumeSpec& volume) override;
  void WriteNotice(const std::string& pod_uid, const std::string& notice_json) override;
  std::unique_ptr<LogStream> ReadLog(const ContainerRef& container,
                                     const LogOptions& options,
                                     LogCallbacks callbacks) override;

  // For tests and fault injection.
  size_t running() const;
  std::vector<const ContainerSpec*> RunningForTest() const;
  const ContainerSpec* SpecOfForTest(const std::string& pod_uid, const std::string& name) const;
  const SandboxSpec* SandboxOfForTest(const std::string& pod_uid) const;
  std::string NoticeOfForTest(const std::string& pod_uid) const;
  // The container ends as if by itself (oom: killed for memory).
  void ExitForTest(const std::string& pod_uid, const std::string& name, int code, bool oom = false);
  void ReportForTest(const std::string& pod_uid, const std::string& report_json);
  // Containers have images from now on, of which this says what there is to say.
  using Images = std::function<Result<ImageReady>(const ImageRequest&)>;
  void SetImagesForTest(Images images) { images_ = std::move(images); }
  // What becomes of each sandbox that is asked for from now on.
  using Sandboxes = std::function<Status(const SandboxSpec&)>;
  void SetSandboxesForTest(Sandboxes sandboxes) { sandboxes_ = std::move(sandboxes); }
  // Probes and commands answer this from now on.
  void SetHealthForTest(const std::string& pod_uid, bool healthy);
  void SetDiskUseForTest(const std::string& pod_uid, DiskUse use);
  // What becomes of the state that pods leave in memory, and how long that takes, from now on.
  void SetPersistForTest(Duration takes, Status result, Status delay = Status::Ok()) {
    persist_ = {takes, std::move(result), std::move(delay)};
  }

 private:
  struct Container {
    ContainerSpec spec;
    ContainerStarted started;
    std::optional<ContainerExit> exit;
    TimerId timer = kNoTimer;
    bool running = false;
    std::vector<std::weak_ptr<StdioSession>> attached;
  };
  struct Persist {
    Duration takes{0};
    Status result, delay;
  };
  struct Pod {
    SandboxSpec spec;
    SandboxInfo info;
    std::weak_ptr<PodObserver> observer;
    std::map<std::string, Container> containers;
    std::string notice;
    bool healthy = true;
    DiskUse disk;
  };

  void Started(const ContainerRef& ref, const std::function<void(Result<ContainerStarted>)>& done);
  void End(const ContainerRef& ref, int code, int signal, bool oom);
  Container* Find(const ContainerRef& ref);
  static Status ResizeWhole(Pod& pod, const CpuAndMemory& amounts);
  static Status ResizeOne(ContainerSpec& spec, const CpuAndMemory& amounts);
  void Later(Duration delay, std::function<void()> fn);

  Executor& executor_;
  Clock& clock_;
  Options options_;
  Images images_;
  Persist persist_;
  Sandboxes sandboxes_;
  std::map<std::string, Pod> pods_;
  uint32_t next_ip_ = 1;
  CallbackScope scope_;
};

}  // namespace swell::node
