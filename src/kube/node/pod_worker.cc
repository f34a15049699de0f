#include "kube/node/pod_worker.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/swell_keys.h"
#include "kube/node/names.h"

namespace swell::node {
namespace {

constexpr Duration kVolumeRefresh = std::chrono::seconds(60);
constexpr int kExitUnknown = 137;
// The job is over: there is nothing left to save, and peers may wait for each other for ever.
constexpr Duration kStopGrace = std::chrono::seconds(2);
// Set by a job whose other pods failed: end this one, but leave its object listed.

std::vector<int> ParseDevices(std::string_view text) {
  std::vector<int> devices;
  for (std::string_view part : Split(text, ',')) {
    auto index = ParseInt(Trim(part));
    if (index && *index >= 0 && *index < 4096) devices.push_back(static_cast<int>(*index));
  }
  return devices;
}

std::string DigestOf(const std::vector<VolumeSpec>& volumes) {
  uint64_t hash = StableHash("volumes");
  for (const VolumeSpec& volume : volumes) {
    for (const VolumeFile& file : volume.files) {
      hash = StableHash(StrCat(volume.name, "/", file.path, "/", file.mode, "/"), hash);
      hash = StableHash(file.bytes, hash);
    }
  }
  return std::to_string(hash);
}

// What the API last said about a container; nullptr when nothing.
const json::Value* StatusOf(const json::Value& pod, std::string_view list, std::string_view name) {
  for (const json::Value& status : json::GetArray(pod, {"status", list})) {
    if (json::GetString(status, {"name"}) == name) return &status;
  }
  return nullptr;
}

// How a container ended that the runtime knows nothing of: as the API was told, if it was.
ContainerExit RememberedExit(const json::Value& status, WallTime now) {
  ContainerExit exit;
  exit.container_id = json::GetString(status, {"containerID"});
  const json::Value* end = json::Find(status, {"state", "terminated"});
  if (end == nullptr) {
    exit.code = kExitUnknown;
    exit.reason = "ContainerStatusUnknown";
    exit.termination_message = "The container could not be located when the node started";
    exit.started = exit.finished = now;
    return exit;
  }
  exit.code = static_cast<int>(json::GetInt(*end, {"exitCode"}, kExitUnknown));
  exit.reason = json::GetString(*end, {"reason"});
  exit.termination_message = json::GetString(*end, {"message"});
  exit.started = api::ParseTime(json::GetString(*end, {"startedAt"})).value_or(now);
  exit.finished = api::ParseTime(json::GetString(*end, {"finishedAt"})).value_or(now);
  return exit;
}

}  // namespace

PodWorker::PodWorker(PodHost& host, json::SharedValue pod)
    : host_(host), pod_(std::move(pod)), uid_(api::Uid(*pod_)), requests_(PodRequests(*pod_)) {
  KnowVersionOf(*pod_);
  start_time_ = json::GetString(*pod_, {"status", "startTime"});
  std::string_view phase = json::GetString(*pod_, {"status", "phase"});
  told_ = phase == "Succeeded" || phase == "Failed";
  for (const json::Value& condition : json::GetArray(*pod_, {"status", "conditions"})) {
    conditions_.push_back(condition);
  }
  InitContainers();
}

PodWorker::~PodWorker() { Detach(); }

std::string PodWorker::Key() const { return api::KeyOf(*pod_); }

void PodWorker::InitContainers() {
  for (std::string_view list : {"initContainers", "containers"}) {
    bool init = list == "initContainers";
    for (const json::Value& spec : json::GetArray(*pod_, {"spec", list})) {
      ContainerState state;
      state.name = json::GetString(spec, {"name"});
      state.image = json::GetString(spec, {"image"});
      state.init = init;
      state.sidecar = init && api::IsSidecar(spec);
      containers_.push_back(std::move(state));
    }
  }
  AddEphemeralContainers();
}

// They come while the pod runs, and never go.
void PodWorker::AddEphemeralContainers() {
  for (const json::Value& spec : json::GetArray(*pod_, {"spec", "ephemeralContainers"})) {
    const std::string_view name = json::GetString(spec, {"name"});
    if (Find(name) != nullptr) continue;
    ContainerState state;
    state.name = name;
    state.image = json::GetString(spec, {"image"});
    state.ephemeral = true;
    containers_.push_back(std::move(state));
  }
}

EnvContext PodWorker::Context() const {
  EnvContext context{*pod_,
                     *sources_,
                     sandbox_.ip,
                     host_.config().internal_ip,
                     host_.allocatable(),
                     host_.config().base_env};
  if (host_.names() != nullptr && json::GetBool(*pod_, {"spec", "enableServiceLinks"}, true)) {
    // The node's own words on where the API is are stronger.
    EnvList links = host_.names()->ServiceEnv(*pod_);
    context.service_env.insert(context.service_env.begin(), links.begin(), links.end());
  }
  return context;
}

void PodWorker::Start() {
  started_ = true;
  for (ContainerState& container : containers_) {
    if (container.init) continue;
    // The API remembers a start that this node's runtime does not: the machine went down with it.
    const json::Value* known = StatusOf(*pod_, container.StatusList(), container.name);
    if (known == nullptr) continue;
    bool ran = json::Find(*known, {"state", "running"}) != nullptr ||
               json::Find(*known, {"state", "terminated"}) != nullptr ||
               json::GetInt(*known, {"restartCount"}) > 0;
    if (!ran) continue;
    container.attempt = static_cast<int>(json::GetInt(*known, {"restartCount"}));
    container.phase = ContainerState::Phase::kExited;
    container.exit = RememberedExit(*known, host_.clock().Now());
  }
  if (api::IsDeleting(*pod_)) {
    stage_ = Stage::kRunning;
    return BeginTermination(Duration(0), false);
  }
  if (NothingToRun()) {
    finishing_ = true;
    return Sync();
  }
  TryAdmit();
}

// Every container has ended for good: the pod needs no sandbox, and keeps the address it had.
bool PodWorker::NothingToRun() const {
  return std::all_of(containers_.begin(), containers_.end(), [&](const ContainerState& container) {
    return !container.main() ||
           (container.phase == ContainerState::Phase::kExited && !WantsRestart(container));
  });
}

void PodWorker::StartAdopted(const FoundPod& found) {
  started_ = true;
  admitted_ = true;
  gpus_ = ParseDevices(api::Annotation(*pod_, api::keys::kGpuDevices));
  sandbox_ = found.sandbox;
  has_sandbox_ = true;
  for (const FoundContainer& old : found.containers) {
    ContainerState* container = Find(old.name);
    if (container == nullptr) continue;
    container->attempt = old.attempt;
    container->started = old.started;
    container->started_steady = host_.clock().Steady();
    container->exit = old.exit;
    container->phase = old.exit ? ContainerState::Phase::kExited : ContainerState::Phase::kRunning;
    const json::Value* known = StatusOf(*pod_, container->StatusList(), old.name);
    container->startup_passed = known != nullptr && json::GetBool(*known, {"started"});
    container->ready = known != nullptr && json::GetBool(*known, {"ready"});
  }
  host_.runtime().Adopt(found, weak_from_this());
  SWELL_LOG_INFO("agent", "pod adopted", {"pod", Key()}, {"uid", uid_});
  if (api::IsDeleting(*pod_)) {
    stage_ = Stage::kRunning;
    return Update(pod_);
  }
  FetchSources();
}

void PodWorker::TryAdmit() {
  stage_ = Stage::kAdmission;
  PodHost::Verdict verdict = host_.Admit(*this);
  switch (verdict.kind) {
    case PodHost::Verdict::Kind::kWait:
      return Sync();
    case PodHost::Verdict::Kind::kRefused:
      SWELL_LOG_WARNING("agent", "pod refused", {"pod", Key()}, {"reason", verdict.reason},
                        {"why", verdict.message});
      host_.Event(*pod_, "Warning", verdict.reason, verdict.message);
      return Fail(verdict.reason, verdict.message, Duration(0));
    case PodHost::Verdict::Kind::kAdmitted:
      break;
  }
  admitted_ = true;
  gpus_ = verdict.gpus;
  if (!gpus_.empty() && api::Annotation(*pod_, api::keys::kGpuDevices).empty()) {
    std::vector<std::string> indices;
    for (int gpu : gpus_) indices.push_back(std::to_string(gpu));
    annotations_[std::string(api::keys::kGpuDevices)] = Join(indices, ",");
  }
  if (start_time_.empty()) start_time_ = api::FormatTime(host_.clock().Now());
  FetchSources();
}

void PodWorker::RetryAdmission() {
  if (stage_ == Stage::kAdmission && !terminating_ && started_ && !detached_) TryAdmit();
}

void PodWorker::FetchSources() {
  stage_ = Stage::kSources;
  WatchDeadline();
  FetchPodSources(host_.client(), *pod_, sources_, host_.clock().Now(),
                  [weak = weak_from_this()](const std::shared_ptr<const PodSources>& sources) {
                    auto self = weak.lock();
                    if (self && !self->detached_) self->OnSources(sources);
                  });
  Publish();
}

void PodWorker::OnSources(std::shared_ptr<const PodSources> sources) {
  if (stage_ != Stage::kSources || terminating_) return;
  sources_ = std::move(sources);
  EnvContext context = Context();
  auto volumes = ResolveVolumes(*pod_, *sources_, context);
  if (!volumes.ok()) {
    return RetryLater("FailedMount",
                      StrCat("MountVolume.SetUp failed for ", volumes.status().message()));
  }
  volumes_digest_ = DigestOf(*volumes);
  retries_ = 0;
  if (has_sandbox_) {
    stage_ = Stage::kRunning;
    SubscribeNames();
    RefreshVolumes();
    for (ContainerState& container : containers_) {
      if (container.phase == ContainerState::Phase::kRunning) StartProbes(container);
    }
    return Sync();
  }
  CreateSandbox(std::move(*volumes));
}

void PodWorker::RetryLater(std::string_view event_reason, const std::string& message) {
  host_.Event(*pod_, "Warning", event_reason, message);
  Duration delay = std::chrono::milliseconds(std::min(60'000, 500 << std::min(retries_++, 7)));
  Later(delay, retry_timer_, [this] {
    if (!terminating_) FetchSources();
  });
  Sync();
}

void PodWorker::CreateSandbox(std::vector<VolumeSpec> volumes) {
  stage_ = Stage::kSandbox;
  SandboxSpec spec;
  spec.pod_uid = uid_;
  spec.ns = api::Namespace(*pod_);
  spec.name = api::Name(*pod_);
  spec.node = host_.config().name;
  spec.hostname = json::GetString(*pod_, {"spec", "hostname"}, spec.name).substr(0, 63);
  spec.host_ip = host_.config().internal_ip;
  spec.host_network = json::GetBool(*pod_, {"spec", "hostNetwork"});
  spec.hosts = Hosts();
  spec.volumes = std::move(volumes);
  spec.checkpoint_key = CheckpointKey(*pod_);
  const json::Value* group = json::Find(*pod_, {"spec", "securityContext", "fsGroup"});
  if (group != nullptr && group->is_int64()) spec.fs_group = group->get_int64();
  for (const auto& item : json::GetObject(*pod_, {"metadata", "annotations"})) {
    if (!item.value().is_string()) continue;
    spec.annotations.emplace(item.key(), json::View(item.value().get_string()));
  }
  host_.runtime().CreateSandbox(
      spec, weak_from_this(), [weak = weak_from_this()](Result<SandboxInfo> result) {
        auto self = weak.lock();
        if (!self || self->detached_) return;
        if (!result.ok()) {
          if (self->terminating_) return self->Sync();
          return self->RetryLater("FailedCreatePodSandBox", StrCat("Failed to create pod sandbox: ",
                                                                   result.status().message()));
        }
        self->sandbox_ = *result;
        self->has_sandbox_ = true;
        self->stage_ = Stage::kRunning;
        self->SubscribeNames();
        if (HasChangingVolumes(*self->pod_)) {
          self->Later(kVolumeRefresh, self->refresh_timer_,
                      [s = self.get()] { s->RefreshVolumes(); });
        }
        self->Sync();
      });
}

void PodWorker::SubscribeNames() {
  if (host_.names() == nullptr || !host_.runtime().Info().resolves_names) return;
  names_subscription_ = host_.names()->Subscribe(std::string(api::Namespace(*pod_)),
                                                 [this](uint64_t) { UpdateHosts(); });
  // What changed while the sandbox was made was told to nobody.
  UpdateHosts();
}

void PodWorker::UpdateHosts() { host_.runtime().UpdateHosts(uid_, Hosts()); }

// Of the pod's own spec, then of the cluster's services.
std::vector<HostsEntry> PodWorker::Hosts() const {
  std::vector<HostsEntry> hosts;
  for (const json::Value& alias : json::GetArray(*pod_, {"spec", "hostAliases"})) {
    HostsEntry entry{std::string(json::GetString(alias, {"ip"})), {}};
    for (const json::Value& name : json::GetArray(alias, {"hostnames"})) {
      if (name.is_string()) entry.names.emplace_back(json::View(name.get_string()));
    }
    hosts.push_back(std::move(entry));
  }
  if (host_.names() == nullptr || !host_.runtime().Info().resolves_names) return hosts;
  for (HostsEntry& entry : host_.names()->HostsFor(*pod_)) hosts.push_back(std::move(entry));
  return hosts;
}

void PodWorker::WatchDeadline() {
  int64_t seconds = json::GetInt(*pod_, {"spec", "activeDeadlineSeconds"});
  if (seconds <= 0 || terminating_) return;
  // The deadline may be moved while the pod runs.
  host_.executor().Cancel(deadline_timer_);
  auto start = api::ParseTime(start_time_);
  WallTime now = host_.clock().Now();
  Duration left = std::chrono::seconds(seconds) - (start ? now - *start : Duration(0));
  Later(std::max(left, Duration(0)), deadline_timer_, [this] {
    Fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline",
         std::chrono::seconds(GraceSeconds(*pod_)));
  });
}

void PodWorker::RefreshVolumes() {
  if (terminating_ || released_) return;
  FetchPodSources(host_.client(), *pod_, sources_, host_.clock().Now(),
                  [weak = weak_from_this()](const std::shared_ptr<const PodSources>& sources) {
                    auto self = weak.lock();
                    if (!self || self->detached_ || self->terminating_) return;
                    // A source that vanished while the pod runs keeps its old content.
                    EnvContext context{*self->pod_,
                                       *sources,
                                       self->sandbox_.ip,
                                       self->host_.config().internal_ip,
                                       self->host_.allocatable(),
                                       {}};
                    auto volumes = ResolveVolumes(*self->pod_, *sources, context);
                    if (volumes.ok() && DigestOf(*volumes) != self->volumes_digest_) {
                      self->volumes_digest_ = DigestOf(*volumes);
                      self->sources_ = sources;
                      for (const VolumeSpec& volume : *volumes) {
                        if (volume.kind == VolumeSpec::Kind::kFiles) {
                          self->host_.runtime().UpdateVolume(self->uid_, volume);
                        }
                      }
                    }
                    self->Later(kVolumeRefresh, self->refresh_timer_,
                                [s = self.get()] { s->RefreshVolumes(); });
                  });
}

void PodWorker::Update(json::SharedValue pod) {
  pod_ = std::move(pod);
  KnowVersionOf(*pod_);
  AddEphemeralContainers();
  // What the API has already need not be published again.
  for (auto it = annotations_.begin(); it != annotations_.end();) {
    it = api::Annotation(*pod_, it->first) == it->second ? annotations_.erase(it) : std::next(it);
  }
  if (!started_ || detached_) return;
  const std::string_view phase = json::GetString(*pod_, {"status", "phase"});
  if ((phase == "Succeeded" || phase == "Failed") && stage_ < Stage::kStopped && !terminating_) {
    // Its place is others' by now: the last word of the agent before this one came late.
    told_ = true;
    return BeginTermination(std::chrono::seconds(GraceSeconds(*pod_)), true);
  }
  WatchOverwrites();
  if (api::IsDeleting(*pod_)) {
    int64_t grace =
        json::GetInt(*pod_, {"metadata", "deletionGracePeriodSeconds"}, GraceSeconds(*pod_));
    Duration duration = std::chrono::seconds(std::max<int64_t>(grace, 0));
    if (!terminating_) {
      return BeginTermination(duration, true);
    }
    ShortenGrace(duration);
  }
  if (std::string_view why = api::Annotation(*pod_, api::keys::kStopRequested); !why.empty()) {
    Fail("Stopped", StrCat("Stopped: ", why),
         std::min<Duration>(kStopGrace, std::chrono::seconds(GraceSeconds(*pod_))));
  } else if (stage_ != Stage::kAdmission) {
    WatchDeadline();
  }
  Sync();
}

void PodWorker::Gone() {
  if (gone_ || detached_) return;
  gone_ = true;
  if (!terminating_) {
    BeginTermination(Duration(0), false);
  } else {
    KillEverything();
    Sync();
  }
}

void PodWorker::Detach() {
  if (detached_) return;
  detached_ = true;
  for (TimerId* timer : {&kill_timer_, &retry_timer_, &deadline_timer_, &refresh_timer_,
                         &send_timer_, &reconcile_timer_, &annotate_timer_}) {
    host_.executor().Cancel(*timer);
    *timer = kNoTimer;
  }
  for (ContainerState& container : containers_) {
    host_.executor().Cancel(container.timer);
    host_.executor().Cancel(container.kill_timer);
    container.probes.clear();
  }
  names_subscription_.reset();
}

void PodWorker::Later(Duration delay, TimerId& timer, std::function<void()> fn) {
  host_.executor().Cancel(timer);
  timer = host_.executor().After(delay, [this, &timer, fn = std::move(fn)] {
    timer = kNoTimer;
    auto self = shared_from_this();  // the step may be the worker's last
    fn();
  });
}

int PodWorker::AttemptOf(std::string_view name) const {
  for (const ContainerState& container : containers_) {
    if (container.name == name) return container.attempt;
  }
  return -1;
}

bool PodWorker::IsRunning(std::string_view name) const {
  for (const ContainerState& container : containers_) {
    if (container.name == name) return container.phase == ContainerState::Phase::kRunning;
  }
  return false;
}

ContainerState* PodWorker::Find(std::string_view name) {
  for (ContainerState& container : containers_) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

const json::Value& PodWorker::SpecOf(const ContainerState& container) const {
  static const json::Value kNothing = json::Object();
  const json::Value* spec = FindContainer(*pod_, container.name);
  return spec == nullptr ? kNothing : *spec;
}

ContainerRef PodWorker::RefOf(const ContainerState& container) const {
  return {uid_, container.name, container.attempt};
}

// ---- the machine ----

void PodWorker::Sync() {
  if (in_sync_) {
    sync_again_ = true;
    return;
  }
  auto self = shared_from_this();
  in_sync_ = true;
  // Each round starts or stops at least one container; the bound is a guard, not a rule.
  for (int round = 0; round < 1000; ++round) {
    sync_again_ = false;
    if (detached_ || stage_ == Stage::kDone) break;
    if (terminating_ || finishing_) {
      SyncTerminating();
    } else if (stage_ == Stage::kRunning) {
      SyncEphemeral();
      SyncInit();
    }
    if (!sync_again_) break;
  }
  in_sync_ = false;
  Publish();
}

// Whatever state the pod's own containers are in: that is what one wants to look at.
void PodWorker::SyncEphemeral() {
  for (ContainerState& container : containers_) {
    if (container.ephemeral && container.phase == ContainerState::Phase::kWaiting &&
        Due(container)) {
      StartContainer(container);
    }
  }
}

void PodWorker::SyncInit() {
  for (ContainerState& container : containers_) {
    if (!container.init) continue;
    if (container.sidecar) {
      if (!SyncRestart(container, true)) return;
      if (!container.startup_passed) return;
      continue;
    }
    if (container.phase == ContainerState::Phase::kExited && container.exit->code == 0) continue;
    if (container.phase == ContainerState::Phase::kExited && RestartPolicy(*pod_) == "Never") {
      finishing_ = true;
      sync_again_ = true;
      return;
    }
    SyncRestart(container, true);
    return;
  }
  SyncMain();
}

void PodWorker::SyncMain() {
  bool all_done = true;
  for (ContainerState& container : containers_) {
    if (!container.main()) continue;
    SyncRestart(container, false);
    if (container.phase != ContainerState::Phase::kExited) all_done = false;
  }
  if (!all_done) return;
  finishing_ = true;
  sync_again_ = true;
}

// Starts what is due and plans the restart of what has ended; true when it is running.
bool PodWorker::SyncRestart(ContainerState& container, bool always) {
  if (container.phase == ContainerState::Phase::kExited && (always || WantsRestart(container))) {
    ScheduleRestart(container);
  }
  if (container.phase == ContainerState::Phase::kWaiting && Due(container)) {
    StartContainer(container);
  }
  return container.phase == ContainerState::Phase::kRunning;
}

bool PodWorker::WantsRestart(const ContainerState& container) const {
  std::string_view policy = RestartPolicy(*pod_);
  if (policy == "Never" || container.ephemeral) return false;
  return policy == "Always" || container.exit->code != 0;
}

bool PodWorker::Due(const ContainerState& container) const {
  return container.not_before <= host_.clock().Steady();
}

// Everything is to end, or all main containers did and the sidecars follow.
void PodWorker::SyncTerminating() {
  bool mains_stopped = true;
  for (ContainerState& container : containers_) {
    if (container.ephemeral && finishing_ && !terminating_) {
      StopContainer(container, std::chrono::seconds(GraceSeconds(*pod_)));
    }
    if (!container.sidecar && !container.stopped()) mains_stopped = false;
  }
  if (mains_stopped) {
    Duration grace = std::chrono::seconds(GraceSeconds(*pod_));
    if (terminating_) grace = std::max(Duration(0), kill_at_ - host_.clock().Steady());
    // Sidecars end in the opposite order of their start.
    for (auto it = containers_.rbegin(); it != containers_.rend(); ++it) {
      if (!it->sidecar || it->stopped()) continue;
      StopContainer(*it, grace);
      break;
    }
  }
  if (AllStopped()) OnAllStopped();
}

}  // namespace swell::node
