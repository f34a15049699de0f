#include "kube/node/pod/pod_worker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/back_off.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/node/health/disk_limits.h"
#include "kube/node/network/names.h"
#include "kube/node/spec/unserved_fields.h"

namespace swell::node {
namespace {

constexpr std::string_view kSecurityForbidden = "SecurityForbidden";
constexpr Duration kVolumeRefresh = std::chrono::seconds(60);
// As the kubelet: how often it looks at disks, and what an evicted pod has left.
constexpr Duration kDiskInterval = std::chrono::seconds(10);
constexpr Duration kEvictionGrace = std::chrono::seconds(1);
// For a pod whose job is over: there is nothing left to save, and its peers may wait for each
// other for ever.
constexpr Duration kStopGrace = std::chrono::seconds(2);
// Each round of Sync() starts or stops a container; the bound is a guard, not a rule.
constexpr int kSyncRounds = 1000;

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

DnsSpec ReadDns(const json::Value& pod) {
  DnsSpec dns;
  const json::Value* config = json::Find(pod, {"spec", "dnsConfig"});
  dns.alone = json::GetString(pod, {"spec", "dnsPolicy"}) == "None";
  if (config == nullptr) return dns;
  dns.servers = json::Texts(json::GetArray(*config, {"nameservers"}));
  dns.searches = json::Texts(json::GetArray(*config, {"searches"}));
  for (const json::Value& option : json::GetArray(*config, {"options"})) {
    dns.options.emplace_back(json::GetString(option, {"name"}), json::GetString(option, {"value"}));
  }
  return dns;
}

// The name of the host and, if it has a subdomain, the name with its domain.
void SetNames(const json::Value& pod, SandboxSpec& spec) {
  constexpr size_t kNameMax = 63;
  spec.hostname = json::GetString(pod, {"spec", "hostname"}, spec.name).substr(0, kNameMax);
  const std::string_view own = json::GetString(pod, {"spec", "hostnameOverride"});
  if (!own.empty()) {
    spec.hostname = own;
    return;
  }
  const std::string_view subdomain = json::GetString(pod, {"spec", "subdomain"});
  if (subdomain.empty()) return;
  spec.full_name = StrCat(spec.hostname, ".", subdomain, ".", spec.ns, ".svc.cluster.local");
  if (json::GetBool(pod, {"spec", "setHostnameAsFQDN"})) spec.hostname = spec.full_name;
}

// Why the pod's RuntimeClass cannot be followed; nothing where it names none.
std::optional<std::string> RuntimeClassFault(const json::Value& pod,
                                             const PodSources& sources,
                                             bool any_handler) {
  const std::string_view name = json::GetString(pod, {"spec", "runtimeClassName"});
  if (name.empty()) return std::nullopt;
  const std::string what = StrCat("RuntimeClass ", Quote(name), ": ");
  auto object = sources.RuntimeClass(name);
  if (!object.ok()) return StrCat(what, object.status().message());
  const auto fault = FindUnservedHandler(**object);
  if (!fault || any_handler) return std::nullopt;
  return StrCat(what, *fault);
}

void LogLostState(const json::Value& pod, const Status& why) {
  SWELL_LOG_WARNING("agent", "state not persisted", {"pod", api::KeyOf(pod)},
                    {"error", why.ToString()});
}

}  // namespace

void TellDelayedState(PodHost& host, const json::Value& pod, const Status& why) {
  host.Event(pod, "Warning", "CheckpointDelayed",
             StrCat("The state that the process left in memory is not on disk yet: ", why.message(),
                    ". The node tries again for some minutes; the job waits for it"));
}

void TellLostState(PodHost& host, const json::Value& pod, const Status& why) {
  LogLostState(pod, why);
  host.Event(pod, "Warning", "CheckpointNotSaved",
             StrCat("The state that the process left in memory is lost: ", why.message(),
                    ". The checkpoint before it counts"));
}

PodWorker::PodWorker(PodHost& host, json::SharedValue pod)
    : host_(host),
      record_(std::move(pod)),
      containers_(host, record_, [this] { Sync(); }),
      publisher_(host,
                 record_,
                 {.on_newer_pod = [this](const json::SharedValue& newer) { Update(newer); },
                  .on_final_status = [this] { Sync(); }}),
      progress_(host,
                record_,
                [this](std::string text) {
                  publisher_.Annotate(api::keys::kProgress, std::move(text));
                  publisher_.Publish();
                }),
      resize_(host,
              record_,
              containers_,
              {.room = [this](const Amounts& wanted) { return host_.RoomFor(*this, wanted); },
               .on_change = [this] { Sync(); }}),
      kill_timer_(host.executor()),
      retry_timer_(host.executor()),
      deadline_timer_(host.executor()),
      refresh_timer_(host.executor()),
      disk_timer_(host.executor()) {}

PodWorker::~PodWorker() { Detach(); }

void PodWorker::Start() {
  const bool cut_off = containers_.RestoreFromStatus();
  if (api::IsDeleting(*record_.pod)) return Terminate(Duration(0), /*notice=*/false);
  if (cut_off && EndsWithItsNode()) return FailWithNode();
  if (containers_.NothingToRun()) {
    // It needs no sandbox, and keeps the address that it had.
    record_.state.Handle(PodEvent::kContainersDone);
    return Sync();
  }
  containers_.InitializeAgain();
  record_.state.Handle(PodEvent::kQueued);
  FetchClaims();
}

void PodWorker::StartAdopted(const FoundPod& found) {
  record_.state.Handle(PodEvent::kAdopted);
  record_.gpus = ParseDevices(api::Annotation(*record_.pod, api::keys::kGpuDevices));
  record_.sandbox = found.sandbox;
  const bool cut_off = containers_.Adopt(found);
  resize_.Adopt();
  host_.runtime().Adopt(found, weak_from_this());
  SWELL_LOG_INFO("agent", "pod adopted", {"pod", record_.Key()}, {"uid", record_.uid});
  if (api::IsDeleting(*record_.pod)) return Update(record_.pod);
  if (cut_off && EndsWithItsNode()) return FailWithNode();
  FetchClaims();
}

// Its node restarts it in place, as after any restart, unless none of its containers may start
// again or its job makes it anew: a member alone would meet none of its peers.
bool PodWorker::EndsWithItsNode() const {
  return !JobUid(*record_.pod).empty() || !record_.RestartsAfterItsNode() ||
         containers_.NothingToRun();
}

void PodWorker::FailWithNode() {
  Fail(std::string(api::kNodeShutdown), "The node went down while the pod ran", Duration(0));
}

void PodWorker::StopWithNode(Duration limit) {
  if (std::exchange(stops_with_node_, true)) return;
  // The next agent of this node says what became of the pod, and it does so in one place: this one
  // may be killed before it can.
  publisher_.Close();
  progress_.Close();
  if (record_.state.stopped()) return;

  if (record_.state.terminating()) return ShortenGrace(limit);
  record_.failed_reason = api::kNodeShutdown;
  Terminate(std::min(limit, Duration(std::chrono::seconds(GraceSeconds(*record_.pod)))),
            /*notice=*/true);
}

void PodWorker::Detach() {
  if (std::exchange(detached_, true)) return;
  scope_.Close();
  containers_.Detach();
  publisher_.Close();
  progress_.Close();
  resize_.Detach();
  for (Timer* timer :
       {&kill_timer_, &retry_timer_, &deadline_timer_, &refresh_timer_, &disk_timer_}) {
    timer->Cancel();
  }
  names_subscription_.reset();
}

json::Value PodWorker::PodWithStatus() const {
  json::Value pod = *record_.pod;
  for (auto& item : publisher_.BuildStatus()) {
    json::Set(pod, {"status", std::string_view(item.key())}, item.value());
  }
  return pod;
}

int PodWorker::AttemptOf(std::string_view name) const {
  const ContainerState* container = record_.Find(name);
  return container == nullptr ? -1 : container->attempt;
}

bool PodWorker::IsRunning(std::string_view name) const {
  const ContainerState* container = record_.Find(name);
  return container != nullptr && container->phase == ContainerState::Phase::kRunning;
}

void PodWorker::OnContainerExit(const ContainerRef& ref, const ContainerExit& exit) {
  if (detached_) return;
  progress_.OnContainerExit();
  containers_.OnExit(ref, exit);
}

void PodWorker::OnReport(const std::string& report_json) {
  if (!detached_) publisher_.OnReport(report_json);
}

void PodWorker::OnProgress(const ProgressRecords& records) {
  if (!detached_) progress_.OnRecords(records);
}

// ---- from admission to a sandbox ----

// A pod is admitted, and an adopted one continues, when it is known which devices its claims are.
void PodWorker::FetchClaims() {
  if (!api::HasDeviceClaims(*record_.pod)) return OnClaims(ClaimDevices());
  FetchClaimDevices(
      host_.client(), *record_.pod, host_.config().name,
      scope_.Wrap([this](Result<ClaimDevices> claims) { OnClaims(std::move(claims)); }));
}

void PodWorker::OnClaims(Result<ClaimDevices> claims) {
  if (record_.state.ending()) return;
  if (!claims.ok()) {
    host_.Event(*record_.pod, "Warning", "FailedPrepareDynamicResources",
                StrCat("Failed to prepare dynamic resources: ", claims.status().message()));
    retry_timer_.Start(
        BackOff(std::chrono::milliseconds(200), std::chrono::seconds(30), retries_++),
        [this] { FetchClaims(); });
    return Sync();
  }
  retries_ = 0;
  claims_known_ = true;
  record_.claims = std::move(*claims);
  if (record_.state.Is(PodState::kAdmitting)) return TryAdmit();
  FetchSources();
}

void PodWorker::RetryAdmission() {
  if (detached_) return;
  if (record_.state.Is(PodState::kAdmitting) && claims_known_) TryAdmit();
  if (record_.resize.pending_reason.empty()) return;
  resize_.TryResize();
  Sync();
}

void PodWorker::TryAdmit() {
  PodHost::AdmitResult result = host_.Admit(*this);
  switch (result.kind) {
    case PodHost::AdmitResult::Kind::kWait:
      return Sync();
    case PodHost::AdmitResult::Kind::kRejected:
      SWELL_LOG_WARNING("agent", "pod rejected", {"pod", record_.Key()}, {"reason", result.reason},
                        {"message", result.message});
      host_.Event(*record_.pod, "Warning", result.reason, result.message);
      return Fail(result.reason, result.message, Duration(0));
    case PodHost::AdmitResult::Kind::kAdmitted:
      break;
  }
  if (Status allowed = CheckPodSecurity(*record_.pod); !allowed.ok()) {
    return Refuse(kSecurityForbidden, allowed.message());
  }
  if (const auto unserved = FindUnserved(*record_.pod)) {
    return Refuse(unserved->reason, unserved->message);
  }
  for (const std::string& message : FindIgnored(*record_.pod)) {
    host_.Event(*record_.pod, "Warning", "FieldIgnored", message);
  }
  record_.state.Handle(PodEvent::kAdmitted);
  record_.gpus = result.gpus;
  if (!result.gpus.empty() && api::Annotation(*record_.pod, api::keys::kGpuDevices).empty()) {
    std::vector<std::string> indices;
    for (int gpu : result.gpus) indices.push_back(std::to_string(gpu));
    publisher_.Annotate(api::keys::kGpuDevices, Join(indices, ","));
  }
  if (record_.start_time.empty()) record_.start_time = api::FormatTime(host_.clock().Now());
  FetchSources();
}

// What it asks for cannot be had here, however often it is tried.
void PodWorker::Refuse(std::string_view reason, const std::string& message) {
  SWELL_LOG_WARNING("agent", "pod rejected", {"pod", record_.Key()},
                    {"reason", std::string(reason)}, {"message", message});
  host_.Event(*record_.pod, "Warning", reason, message);
  Fail(std::string(reason), message, Duration(0));
}

void PodWorker::FetchSources() {
  WatchDeadline();
  FetchPodSources(host_.client(), *record_.pod, record_.sources, host_.clock().Now(),
                  scope_.Wrap([this](const std::shared_ptr<const PodSources>& sources) {
                    OnSources(sources);
                  }));
  publisher_.Publish();
}

// The kubelet's words for a volume that one pod mounts at a time, and another one does here; empty:
// there is none. The scheduler keeps such pods apart, but a pod may name its node itself.
std::string PodWorker::VolumeInUse() const {
  api::MountedClaim mounted;
  for (const json::Value& volume : json::GetArray(*record_.pod, {"spec", "volumes"})) {
    if (!api::ReadMountedClaim(*record_.pod, volume, mounted)) continue;
    const auto claim = record_.sources->Claim(mounted.name);
    if (!claim.ok() || !api::IsForOnePod(**claim)) continue;
    if (!host_.IsMountedBeside(*this, mounted.name)) continue;
    return StrCat("volume ", Quote(json::GetString(volume, {"name"})),
                  " : volume uses the ReadWriteOncePod access mode and is already in use by "
                  "another pod");
  }
  return "";
}

void PodWorker::OnSources(std::shared_ptr<const PodSources> sources) {
  if (!record_.state.Is(PodState::kPreparing)) return;
  record_.sources = std::move(sources);
  auto volumes = ResolveVolumes(*record_.pod, *record_.sources,
                                EnvContextOf(host_, record_, *record_.pod, *record_.sources));
  if (!volumes.ok()) {
    return RetryFetch("FailedMount",
                      StrCat("MountVolume.SetUp failed for ", volumes.status().message()));
  }
  if (const std::string used = record_.sandbox ? "" : VolumeInUse(); !used.empty()) {
    return RetryFetch("FailedMount", StrCat("MountVolume.SetUp failed for ", used));
  }
  volumes_digest_ = DigestOf(*volumes);
  if (auto why =
          RuntimeClassFault(*record_.pod, *record_.sources, host_.runtime().Info().has_handlers);
      why && !record_.sandbox) {
    return RetryFetch("FailedCreatePodSandBox", *why);
  }
  retries_ = 0;
  if (!record_.sandbox) {
    for (const std::string& message : FindStandIns(*record_.pod, *record_.sources)) {
      host_.Event(*record_.pod, "Warning", "VolumeReplaced", message);
    }
    return CreateSandbox(std::move(*volumes));
  }
  record_.setup_problem.clear();
  record_.state.Handle(PodEvent::kSandboxReady);
  SubscribeNames();
  RefreshVolumes();
  WatchDisk();
  containers_.StartProbesOfRunning();
  Sync();
}

// What it mounts may be made any time: it is looked for every minute at least.
void PodWorker::RetryFetch(std::string_view event_reason, const std::string& message) {
  Retry(event_reason, message,
        BackOff(std::chrono::milliseconds(500), std::chrono::seconds(60), retries_++));
}

// Each try costs the engine a network and directories. Sources that are found between two tries say
// nothing about the next one.
void PodWorker::RetrySandbox(const std::string& message) {
  Retry("FailedCreatePodSandBox", message,
        BackOff(std::chrono::milliseconds(500), std::chrono::seconds(300), sandbox_failures_++));
}

void PodWorker::Retry(std::string_view event_reason, const std::string& message, Duration rest) {
  host_.Event(*record_.pod, "Warning", event_reason, message);
  record_.setup_problem = message;
  retry_timer_.Start(rest, [this] { FetchSources(); });
  Sync();
}

void PodWorker::CreateSandbox(std::vector<VolumeSpec> volumes) {
  record_.state.Handle(PodEvent::kSourcesFetched);
  SandboxSpec spec;
  spec.pod_uid = record_.uid;
  spec.ns = api::Namespace(*record_.pod);
  spec.name = api::Name(*record_.pod);
  spec.node = host_.config().name;
  SetNames(*record_.pod, spec);
  constexpr size_t kKernelNameMax = 64;
  if (spec.hostname.size() > kKernelNameMax) {
    record_.state.Handle(PodEvent::kSandboxFailed);
    return RetrySandbox(
        StrCat("Failed to construct FQDN from Pod hostname and cluster domain, FQDN ",
               spec.hostname, " is too long (", kKernelNameMax, " characters is the max, ",
               spec.hostname.size(), " characters requested)"));
  }
  spec.dns = ReadDns(*record_.pod);
  spec.host_ip = host_.config().internal_ip;
  spec.host_network = json::GetBool(*record_.pod, {"spec", "hostNetwork"});
  spec.hosts = Hosts();
  spec.volumes = std::move(volumes);
  spec.checkpoint_key = CheckpointKey(*record_.pod);
  spec.job_uid = JobUid(*record_.pod);
  const json::Value* group = json::Find(*record_.pod, {"spec", "securityContext", "fsGroup"});
  if (group != nullptr && group->is_int64()) spec.fs_group = group->get_int64();
  auto security = ReadPodSecurity(*record_.pod);
  if (!security.ok()) return Refuse(kSecurityForbidden, security.status().message());
  spec.security = std::move(*security);
  spec.memory_limit_bytes = PodMemoryLimit(*record_.pod);
  const std::string_view runtime_class =
      json::GetString(*record_.pod, {"spec", "runtimeClassName"});
  if (!runtime_class.empty()) {
    const auto object = record_.sources->RuntimeClass(runtime_class);
    if (object.ok()) spec.runtime_handler = json::GetString(**object, {"handler"});
  }
  for (const auto& item : json::GetObject(*record_.pod, {"metadata", "annotations"})) {
    if (!item.value().is_string()) continue;
    spec.annotations.emplace(item.key(), json::View(item.value().get_string()));
  }
  host_.runtime().CreateSandbox(
      spec, weak_from_this(),
      scope_.Wrap([this](Result<SandboxInfo> result) { OnSandbox(std::move(result)); }));
}

void PodWorker::OnSandbox(Result<SandboxInfo> result) {
  if (!result.ok()) {
    if (!record_.state.Handle(PodEvent::kSandboxFailed)) return;
    if (result.status().code() == Code::kNotAcceptable) {
      return Refuse(kSecurityForbidden, result.status().message());
    }
    return RetrySandbox(StrCat("Failed to create pod sandbox: ", result.status().message()));
  }
  if (!record_.state.Handle(PodEvent::kSandboxReady)) {
    // The pod ended meanwhile.
    return host_.runtime().Stop(
        record_.uid, [](const Status&) {}, [](const Status&) {});
  }
  record_.sandbox = std::move(*result);
  sandbox_failures_ = 0;
  record_.setup_problem.clear();
  SubscribeNames();
  WatchDisk();
  if (HasChangingVolumes(*record_.pod)) {
    refresh_timer_.Start(kVolumeRefresh, [this] { RefreshVolumes(); });
  }
  Sync();
}

void PodWorker::SubscribeNames() {
  if (host_.names() == nullptr || !host_.runtime().Info().resolves_names) return;
  auto update = [this](uint64_t) { host_.runtime().UpdateHosts(record_.uid, Hosts()); };
  names_subscription_ = host_.names()->Subscribe(std::string(api::Namespace(*record_.pod)), update);
  update(0);  // names may have changed while the sandbox was made
}

// The entries of the pod's own spec, then those of the cluster's services.
std::vector<HostsEntry> PodWorker::Hosts() const {
  std::vector<HostsEntry> hosts;
  for (const json::Value& alias : json::GetArray(*record_.pod, {"spec", "hostAliases"})) {
    HostsEntry entry{std::string(json::GetString(alias, {"ip"})), {}};
    for (const json::Value& name : json::GetArray(alias, {"hostnames"})) {
      if (name.is_string()) entry.names.emplace_back(json::View(name.get_string()));
    }
    hosts.push_back(std::move(entry));
  }
  if (host_.names() == nullptr || !host_.runtime().Info().resolves_names) return hosts;
  for (HostsEntry& entry : host_.names()->HostsFor(*record_.pod)) hosts.push_back(std::move(entry));
  return hosts;
}

void PodWorker::RefreshVolumes() {
  if (record_.state.terminating() || record_.state.stopped()) return;
  FetchPodSources(host_.client(), *record_.pod, record_.sources, host_.clock().Now(),
                  scope_.Wrap([this](const std::shared_ptr<const PodSources>& sources) {
                    if (record_.state.terminating()) return;
                    ApplyVolumes(sources);
                    refresh_timer_.Start(kVolumeRefresh, [this] { RefreshVolumes(); });
                  }));
}

void PodWorker::ApplyVolumes(const std::shared_ptr<const PodSources>& sources) {
  auto volumes =
      ResolveVolumes(*record_.pod, *sources, EnvContextOf(host_, record_, *record_.pod, *sources));
  // A source that vanished while the pod runs keeps its old content.
  if (!volumes.ok()) return;
  std::string digest = DigestOf(*volumes);
  if (digest == volumes_digest_) return;
  volumes_digest_ = std::move(digest);
  record_.sources = sources;
  for (const VolumeSpec& volume : *volumes) {
    if (volume.kind == VolumeSpec::Kind::kFiles) {
      host_.runtime().UpdateVolume(record_.uid, volume);
    }
  }
}

// ---- while it runs ----

void PodWorker::Update(json::SharedValue pod) {
  const json::SharedValue before = std::exchange(record_.pod, std::move(pod));
  containers_.AddFromSpec();
  publisher_.OnPodChanged();
  if (detached_) return;
  resize_.OnPodChanged(*before);
  const json::Value& object = *record_.pod;
  const PodStateMachine& state = record_.state;
  const Duration grace = std::chrono::seconds(GraceSeconds(object));
  if (api::HasEnded(object) && !state.stopped() && !state.terminating()) {
    // An earlier agent reported the end too late: the scheduler has given the resources to others.
    publisher_.OnEndedInApi();
    return Terminate(grace, /*notice=*/true);
  }
  if (api::IsDeleting(object)) {
    const Duration requested = std::chrono::seconds(std::max<int64_t>(
        0, json::GetInt(object, {"metadata", "deletionGracePeriodSeconds"}, GraceSeconds(object))));
    if (state.terminating()) {
      ShortenGrace(requested);
    } else if (!state.stopped()) {
      return Terminate(requested, /*notice=*/true);
    }
  }
  if (std::string_view why = api::Annotation(object, api::keys::kStopRequested); !why.empty()) {
    Fail("Stopped", StrCat("Stopped: ", why), std::min(kStopGrace, grace));
  } else if (!state.Is(PodState::kAdmitting)) {
    WatchDeadline();
  }
  Sync();
}

void PodWorker::WatchDeadline() {
  int64_t seconds = json::GetInt(*record_.pod, {"spec", "activeDeadlineSeconds"});
  if (seconds <= 0 || record_.state.ending()) return;
  // The deadline may be moved while the pod runs.
  auto start = api::ParseTime(record_.start_time);
  WallTime now = host_.clock().Now();
  Duration left = std::chrono::seconds(seconds) - (start ? now - *start : Duration(0));
  deadline_timer_.Start(std::max(left, Duration(0)), [this] {
    Fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline",
         std::chrono::seconds(GraceSeconds(*record_.pod)));
  });
}

void PodWorker::WatchDisk() {
  if (!HasDiskLimits(*record_.pod)) return;
  disk_timer_.Start(kDiskInterval, [this] {
    host_.runtime().MeasureDisk(record_.uid,
                                scope_.Wrap([this](const DiskUse& use) { OnDiskUse(use); }));
  });
}

void PodWorker::OnDiskUse(const DiskUse& use) {
  if (record_.state.ending()) return;
  const auto beyond = BeyondDiskLimit(*record_.pod, use);
  if (!beyond) return WatchDisk();
  constexpr std::string_view kEvicted = "Evicted";
  SWELL_LOG_WARNING("agent", "pod evicted", {"pod", record_.Key()}, {"message", *beyond});
  host_.Event(*record_.pod, "Warning", kEvicted, *beyond);
  Fail(std::string(kEvicted), *beyond, kEvictionGrace);
  Sync();
}

void PodWorker::Sync() {
  if (syncing_ != Syncing::kNo) {
    syncing_ = Syncing::kOnceMore;
    return;
  }
  for (int round = 0; round < kSyncRounds && !detached_; ++round) {
    syncing_ = Syncing::kYes;
    SyncOnce();
    if (syncing_ != Syncing::kOnceMore) break;
  }
  syncing_ = Syncing::kNo;
  if (!detached_) publisher_.Publish();
}

void PodWorker::SyncOnce() {
  PodStateMachine& state = record_.state;
  resize_.ApplyChanges();
  if (state.Is(PodState::kRunning)) {
    if (!containers_.StartDue()) return;
    state.Handle(PodEvent::kContainersDone);
  }
  if (!state.ending()) return;
  if (!state.stopped()) {
    containers_.StopRest();
    if (record_.AllStopped()) OnAllStopped();
  }
  // The job's next pod, which may start once the object is gone, must find the checkpoint.
  if (api::IsDeleting(*record_.pod) && publisher_.final_status_sent() && persisted_) {
    DeleteFromApi();
  }
}

// ---- the end ----

void PodWorker::Fail(std::string reason, std::string message, Duration grace) {
  if (record_.state.ending()) return;
  record_.failed_reason = std::move(reason);
  record_.failed_message = std::move(message);
  Terminate(grace, /*notice=*/true);
}

void PodWorker::Terminate(Duration grace, bool notice) {
  if (record_.state.Handle(PodEvent::kTerminate)) StopContainers(grace, notice);
}

void PodWorker::OnDeletedFromApi() {
  const bool terminating = record_.state.terminating();
  if (detached_ || !record_.state.Handle(PodEvent::kDeletedFromApi)) return;
  if (record_.state.Is(PodState::kRemoving)) {
    if (persisted_) RemoveFromRuntime();
    return;
  }
  if (!terminating) return StopContainers(Duration(0), /*notice=*/false);
  containers_.KillAll();
  Sync();
}

void PodWorker::StopContainers(Duration grace, bool notice) {
  record_.kill_at = host_.clock().Steady() + grace;
  for (Timer* timer : {&retry_timer_, &deadline_timer_, &refresh_timer_, &disk_timer_}) {
    timer->Cancel();
  }
  SWELL_LOG_INFO("agent", "pod stopping", {"pod", record_.Key()},
                 {"grace_ms", std::to_string(grace.count() / 1'000'000)});
  if (record_.sandbox && notice && !record_.AllStopped()) {
    host_.runtime().WriteNotice(record_.uid, Notice(grace));
  }
  containers_.StopAll(grace);
  if (grace <= Duration(0)) {
    containers_.KillAll();
  } else if (!record_.AllStopped()) {
    kill_timer_.Start(grace + ContainerManager::kGraceLeast, [this] { containers_.KillAll(); });
  }
  Sync();
}

void PodWorker::ShortenGrace(Duration grace) {
  SteadyTime at = host_.clock().Steady() + grace;
  if (at >= record_.kill_at || record_.AllStopped()) return;
  record_.kill_at = at;
  if (grace <= Duration(0)) return containers_.KillAll();
  kill_timer_.Start(grace, [this] { containers_.KillAll(); });
}

std::string PodWorker::Notice(Duration grace) const {
  const std::optional<api::Condition> target =
      api::FindCondition(*record_.pod, api::kDisruptionTarget);
  std::string reason = record_.failed_reason;
  std::string by(api::Annotation(*record_.pod, api::keys::kPreemptedBy));
  std::string rule(api::Annotation(*record_.pod, api::keys::kPreemptedRule));
  if (reason.empty() && target) reason = target->reason;
  if (reason.empty()) reason = by.empty() && rule.empty() ? "Deleted" : "Preempted";
  json::Value notice =
      json::Object{{"reason", reason},
                   {"by", by},
                   {"rule", rule},
                   {"deadline", api::FormatMicroTime(host_.clock().Now() + grace)}};
  return json::Print(notice);
}

void PodWorker::OnAllStopped() {
  record_.state.Handle(PodEvent::kAllStopped);
  kill_timer_.Cancel();
  names_subscription_.reset();
  // Also where an earlier worker told the end and this one knows no sandbox.
  host_.runtime().Stop(record_.uid, scope_.Wrap([this](const Status& why) {
    if (!stops_with_node_) TellDelayedState(host_, *record_.pod, why);
  }),
                       scope_.Wrap([this](const Status& persisted) {
                         OnPersisted(persisted);
                         Sync();
                       }));
  host_.OnResourcesFreed();
}

void PodWorker::OnPersisted(const Status& persisted) {
  persisted_ = true;
  if (!persisted.ok() && stops_with_node_) LogLostState(*record_.pod, persisted);
  if (!persisted.ok() && !stops_with_node_) TellLostState(host_, *record_.pod, persisted);
  // The next agent must not take its end for the program's own.
  if (stops_with_node_) {
    host_.runtime().Remove(record_.uid, [](const Status&) {});
    host_.OnResourcesFreed();
  }
  if (record_.state.Is(PodState::kRemoving)) RemoveFromRuntime();
}

void PodWorker::DeleteFromApi() {
  if (!record_.state.Handle(PodEvent::kDeleteSent)) return;
  client::DeleteOptions options{.grace_seconds = 0, .precondition_uid = record_.uid};
  host_.client().Delete(
      client::resources::kPods, api::Namespace(*record_.pod), api::Name(*record_.pod), options,
      scope_.Wrap([this](const Result<json::SharedValue>& result) {
        if (result.ok() || result.status().code() == Code::kNotFound ||
            result.status().code() == Code::kConflict) {
          return OnDeletedFromApi();
        }
        SWELL_LOG_WARNING("agent", "stopped pod not deleted", {"pod", record_.Key()},
                          {"error", result.status().ToString()});
        retry_timer_.Start(
            BackOff(std::chrono::milliseconds(200), std::chrono::seconds(30), retries_++), [this] {
              record_.state.Handle(PodEvent::kDeleteFailed);
              Sync();
            });
      }));
}

void PodWorker::RemoveFromRuntime() {
  host_.runtime().Remove(record_.uid, scope_.Wrap([this](const Status& status) {
    if (!status.ok()) {
      SWELL_LOG_WARNING("agent", "pod not removed completely", {"pod", record_.Key()},
                        {"error", status.ToString()});
    }
    record_.state.Handle(PodEvent::kRemovedFromRuntime);
    host_.OnWorkerDone(record_.uid);
  }));
}

}  // namespace swell::node
