#include "kube/process/container_host.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/process/files/disk_use.h"
#include "kube/process/files/progress_records.h"
#include "kube/process/files/volumes.h"
#include "kube/process/left_state.h"
#include "kube/process/machine/virtual_smi.h"
#include "kube/process/shim/beneath.h"

namespace swell::process {
namespace {

using node::ContainerRef;

constexpr size_t kReportBytesMax = 64 << 10;
constexpr const char* kReportName = "report.json";
// A process's requests to its job have a file of their own, since each report replaces the last
// one.
constexpr const char* kRequestName = "request.json";
constexpr Duration kProgressInterval = std::chrono::seconds(1);
// One writes while the other computes a checksum or waits for the disk: two states take 60 % of the
// time that they take one after the other.
constexpr int kSavers = 2;
constexpr Duration kSavingInterval = std::chrono::seconds(1);
// The values that nvidia-smi shows in pods are at most this old.
constexpr Duration kGpuInterval = std::chrono::seconds(2);

}  // namespace

ContainerHost::ContainerHost(Executor& core,
                             net::Reactor& reactor,
                             PodStore::Options options,
                             Events events)
    : reactor_(reactor),
      events_(std::move(events)),
      store_(std::move(options)),
      streams_(core, reactor),
      dialer_(reactor, streams_),
      states_({.executor = reactor, .clock = clock_, .background = [this](auto work) {
                 if (!saver_) saver_ = std::make_unique<IdleWorker>(kSavers);
                 saver_->Post(std::move(work));
               }}) {}

// Watches end before their descriptors, and both before the reactor: see the order of the members.
ContainerHost::~ContainerHost() = default;

Status ContainerHost::StartFiles() {
  SWELL_RETURN_IF_ERROR(store_.Start());
  // An agent that was killed may have told of states that it will not write any more.
  TellSaving(store_.data_dir(), {});
  SWELL_ASSIGN_OR_RETURN(files_, FileWatch::Create(reactor_));
  return Status::Ok();
}

void ContainerHost::StartWatching() {
  MeasureLater();
  ReadProgressLater();
}

// ---- what earlier runs left ----

std::vector<node::FoundPod> ContainerHost::List(const std::string& node) const {
  std::vector<node::FoundPod> found;
  for (const auto& [uid, pod] : store_.pods()) {
    if (pod->spec.node != node) continue;
    node::FoundPod out{uid, pod->spec.ns, pod->spec.name, pod->info, {}};
    for (const auto& [name, container] : pod->containers) {
      out.containers.push_back({name, container->ref.attempt, container->started, container->exit});
    }
    found.push_back(std::move(out));
  }
  return found;
}

void ContainerHost::Adopt(const node::FoundPod& found) {
  progress_.erase(found.pod_uid);
  // What its processes requested while no agent ran comes before their ends.
  if (const ProcessPod* pod = store_.Find(found.pod_uid)) ReadReport(*pod, kRequestName);
  for (const node::FoundContainer& known : found.containers) {
    ProcessContainer* container = store_.Find({found.pod_uid, known.name, known.attempt});
    if (container == nullptr || !container->exit || known.exit) continue;
    events_.on_exit(container->ref, *container->exit);
  }
}

// ---- usage ----

std::map<ContainerRef, node::ContainerUsage> ContainerHost::Measure() {
  std::vector<UsageMeter::Subject> subjects;
  for (const auto& [uid, pod] : store_.pods()) {
    for (const auto& [name, container] : pod->containers) {
      if (!container->running) continue;
      subjects.push_back({container->ref, container->state.init_pid, GroupOf(*container),
                          container->started.started});
    }
  }
  std::map<ContainerRef, node::ContainerUsage> out;
  for (node::ContainerUsage& usage : meter_.Measure(subjects, clock_.Now(), clock_.Steady())) {
    out.emplace(usage.ref, usage);
  }
  last_measured_ = clock_.Steady();
  return out;
}

// Processor use is the difference from an earlier measurement, so there must always be a recent
// one. Pods with virtual GPUs get theirs more often.
void ContainerHost::MeasureLater() {
  reactor_.After(kGpuInterval, scope_.Wrap([this] {
    const bool due = clock_.Steady() - last_measured_ >= UsageMeter::kWindow;
    std::vector<const ProcessContainer*> gpus = WithVirtualGpus();
    if (due || !gpus.empty()) ShowUsage(gpus, Measure());
    MeasureLater();
  }));
}

std::vector<const ProcessContainer*> ContainerHost::WithVirtualGpus() const {
  std::vector<const ProcessContainer*> out;
  for (const auto& [uid, pod] : store_.pods()) {
    for (const auto& [name, container] : pod->containers) {
      if (container->running && FileExists(container->dir + "/gpu/share")) {
        out.push_back(container.get());
      }
    }
  }
  return out;
}

void ContainerHost::ShowUsage(const std::vector<const ProcessContainer*>& containers,
                              const std::map<ContainerRef, node::ContainerUsage>& usage) {
  for (const ProcessContainer* container : containers) {
    const auto used = usage.find(container->ref);
    if (used == usage.end()) continue;
    Status written = UpdateVirtualGpus(container->dir + "/gpu", used->second);
    if (!written.ok()) {
      SWELL_LOG_WARNING("process", "use of virtual GPUs not written",
                        {"uid", container->ref.pod_uid}, {"error", written.ToString()});
    }
  }
}

std::vector<node::ContainerUsage> ContainerHost::Usage(const std::string& node) {
  std::vector<node::ContainerUsage> out;
  for (const auto& [ref, usage] : Measure()) {
    const ProcessPod* pod = store_.Find(ref.pod_uid);
    if (pod != nullptr && pod->spec.node == node) out.push_back(usage);
  }
  return out;
}

// The directories of a pod's files, by the volume or container that they are charged to.
struct ContainerHost::DiskPlaces {
  std::map<std::string, std::string> volumes;
  std::map<std::string, std::vector<std::string>> containers;
};

ContainerHost::DiskPlaces ContainerHost::PlacesOf(const ProcessPod& pod) {
  DiskPlaces places;
  for (const auto& [name, volume] : pod.volumes) {
    // Those in memory are elsewhere.
    const bool on_disk = volume.path.starts_with(pod.dir + "/");
    if (volume.scratch && on_disk) places.volumes[name] = volume.path;
  }
  for (const auto& [name, container] : pod.containers) {
    std::vector<std::string>& dirs = places.containers[name];
    for (const char* part : {"/upper", "/tmp", "/scratch"}) dirs.push_back(container->dir + part);
    dirs.push_back(StrCat(pod.dir, "/logs/", name));
  }
  return places;
}

void ContainerHost::MeasureDisk(const std::string& uid, std::function<void(node::DiskUse)> done) {
  const ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return done({});
  if (!disks_) disks_ = std::make_unique<IdleWorker>();
  disks_->Post([places = PlacesOf(*pod), done = std::move(done)] {
    node::DiskUse use;
    for (const auto& [name, dir] : places.volumes) use.volumes[name] = BytesOnDisk(dir);
    for (const auto& [name, dirs] : places.containers) {
      for (const std::string& dir : dirs) use.containers[name] += BytesOnDisk(dir);
    }
    done(std::move(use));
  });
}

// ---- what pods write ----

void ContainerHost::WatchReports(ProcessPod& pod) {
  if (pod.stopped) return;
  std::string dir = pod.dir + "/run/report";
  auto watch = files_->Add(dir, [this, uid = pod.spec.pod_uid](const std::string& file) {
    if (file != kReportName && file != kRequestName) return;
    if (const ProcessPod* changed = store_.Find(uid)) ReadReport(*changed, file);
  });
  if (watch.ok()) pod.report_watch = std::move(*watch);
}

void ContainerHost::ReadReport(const ProcessPod& pod, const std::string& file) {
  auto text = ReadPlainFile(pod.dir + "/run/report", file, kReportBytesMax);
  if (text.ok() && !text->empty()) events_.on_report(pod.spec.pod_uid, *text);
}

// The records are shared memory, which no watch reports.
void ContainerHost::ReadProgressLater() {
  reactor_.After(kProgressInterval, scope_.Wrap([this] {
    std::map<std::string, node::ProgressRecords> now;
    for (const auto& [uid, pod] : store_.pods()) {
      if (pod->running() && ReportProgress(uid, *pod)) now[uid] = std::move(progress_[uid]);
    }
    progress_ = std::move(now);
    ReadProgressLater();
  }));
}

bool ContainerHost::ReportProgress(const std::string& uid, const ProcessPod& pod) {
  node::ProgressRecords records = ReadProgressRecords(pod.dir + "/run/report");
  if (records.empty()) return false;
  node::ProgressRecords& told = progress_[uid];
  if (told != records) {
    told = std::move(records);
    events_.on_progress(uid, told);
  }
  return true;
}

void ContainerHost::UpdateHosts(const std::string& uid,
                                const std::vector<node::HostsEntry>& hosts) {
  ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr || pod->spec.hosts == hosts) return;
  pod->spec.hosts = hosts;
  Status written = store_.WriteHosts(*pod);
  if (!written.ok()) {
    SWELL_LOG_WARNING("process", "hosts file not written", {"uid", uid},
                      {"error", written.ToString()});
  }
}

void ContainerHost::UpdateVolume(const std::string& uid, const node::VolumeSpec& volume) {
  const ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return;
  Status written = UpdateFiles(volume, pod->dir, pod->spec.fs_group);
  if (!written.ok()) {
    SWELL_LOG_WARNING("process", "volume not updated", {"uid", uid}, {"volume", volume.name},
                      {"error", written.ToString()});
  }
}

void ContainerHost::WriteNotice(const std::string& uid, const std::string& json) {
  const ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return;
  Status written = ReplaceFile(pod->dir + "/run/notice/notice.json", json);
  if (!written.ok()) {
    SWELL_LOG_WARNING("process", "notice not written", {"uid", uid}, {"error", written.ToString()});
  }
}

void ContainerHost::Persist(const std::string& uid,
                            StateWriter::Callback on_delay,
                            StateWriter::Callback done) {
  if (states_.Join(uid, on_delay, done)) return;
  const ProcessPod* pod = store_.Find(uid);
  auto left = pod == nullptr || pod->running() ? std::nullopt : FindLeftState(store_, *pod);
  if (!left) return done(Status::Ok());
  const auto folder = store_.MakeCheckpointDir(*pod, /*other_user=*/false);
  if (!folder.ok()) return done(folder.status());
  states_.Write(uid, std::move(*left), *folder, std::move(on_delay), std::move(done));
  if (!std::exchange(tells_saving_, true)) TellSavingLater();
}

void ContainerHost::TellSavingLater() {
  reactor_.After(kSavingInterval, scope_.Wrap([this] {
    const SavingStates saving = states_.Saving();
    TellSaving(store_.data_dir(), saving);
    tells_saving_ = saving.states > 0;
    if (tells_saving_) TellSavingLater();
  }));
}

bool ContainerHost::IsRunning(const ContainerRef& ref) const {
  const ProcessContainer* container = store_.Find(ref);
  return container != nullptr && container->running;
}

void ContainerHost::WhenEnded(const ContainerRef& ref, std::function<void()> fn) {
  if (!IsRunning(ref)) return reactor_.Post(std::move(fn));
  store_.Find(ref)->when_ended.push_back(std::move(fn));
}

void ContainerHost::BeginRemoval(ProcessPod& pod, std::function<void(const Status&)> done) {
  pod.on_removed = [earlier = std::move(pod.on_removed),
                    done = std::move(done)](const Status& status) {
    if (earlier) earlier(status);
    done(status);
  };
  for (const auto& [name, container] : pod.containers) Signal(container->ref, SIGKILL);
}

// The agent that saw the pod's end may have been killed before the disk had the state.
void ContainerHost::FinishRemoval(const std::string& uid) {
  Persist(
      uid, [](const Status&) {},
      [this, uid](const Status& persisted) {
        if (!persisted.ok()) {
          SWELL_LOG_WARNING("process", "state not persisted", {"uid", uid},
                            {"error", persisted.ToString()});
        }
        RemoveNow(uid);
      });
}

Result<ProcessContainer*> ContainerHost::FindRunning(const ContainerRef& ref) const {
  if (!IsRunning(ref)) {
    return Status(Code::kInternal, StrCat("container ", Quote(ref.name), " is not running"));
  }
  return store_.Find(ref);
}

Status ContainerHost::PrepareVirtualGpus(const ProcessPod& pod,
                                         const node::ContainerSpec& spec) const {
  if (!HasVirtualGpus(spec)) return Status::Ok();
  return MakeVirtualGpus(pod.ContainerDir(spec.ref) + "/gpu", pod.spec.node, spec);
}

void ContainerHost::ReportExit(ProcessContainer& container) {
  const ContainerRef ref = container.ref;
  // The container may have made steps since its records were last read.
  if (const ProcessPod* of = store_.Find(ref.pod_uid)) ReportProgress(ref.pod_uid, *of);
  events_.on_exit(ref, *container.exit);
  std::vector<std::function<void()>> callbacks = std::move(container.when_ended);
  container.shim_watch.reset();  // the watch's own callback may be running; it allows this
  for (auto& fn : callbacks) fn();
}

// ---- connections and probes ----

void ContainerHost::Dial(const std::string& uid, uint16_t port, PodDialer::Done done) {
  const ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return done(Status(Code::kNotFound, "the pod has no sandbox"));
  // A server may listen on the loopback alone, or on the pod's address alone.
  std::vector<std::string> hosts{"127.0.0.1", "::1"};
  if (!pod->info.ip.empty()) hosts.push_back(pod->info.ip);
  dialer_.Dial(NetworkOf(*pod), std::move(hosts), port, std::move(done));
}

void ContainerHost::Probe(const std::string& uid,
                          const node::ProbeSpec& spec,
                          std::function<void(node::ProbeResult)> done) {
  const ProcessPod* pod = store_.Find(uid);
  std::string address = spec.host;
  if (address.empty() && pod != nullptr) address = pod->info.ip;
  if (address == "localhost") address = "127.0.0.1";
  uint64_t id = next_probe_++;
  probes_[id] = std::make_unique<NetProbe>(
      reactor_, address, spec, [this, id, done = std::move(done)](node::ProbeResult result) {
        auto probe = probes_.extract(id);
        done(std::move(result));
      });
}

// ---- the end ----

void ContainerHost::Shutdown(std::function<void()> done) {
  states_.WaitNoMore();
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : store_.pods()) {
    // A pod that has ended holds nothing but its logs, which stay.
    if (!pod->stopped) uids.push_back(uid);
  }
  auto left = std::make_shared<size_t>(uids.size() + 1);
  auto step = [this, left, done = std::move(done)](const Status&) {
    if (--*left > 0) return;
    TellSaving(store_.data_dir(), {});
    FinishShutdown();
    done();
  };
  for (const std::string& uid : uids) Remove(uid, step);
  step(Status::Ok());
}

}  // namespace swell::process
