#include "kube/node/pod/container_manager.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/container_list.h"
#include "kube/api/objects/end_reasons.h"
#include "kube/api/objects/failure.h"
#include "kube/node/devices/gpu_env.h"
#include "kube/node/network/names.h"
#include "kube/node/pod/hooks.h"
#include "kube/node/spec/pull_words.h"

namespace swell::node {
namespace {

using Phase = ContainerState::Phase;

constexpr Duration kBackOffFirst = std::chrono::seconds(10);
constexpr Duration kBackOffMax = std::chrono::minutes(5);
constexpr Duration kBackOffReset = std::chrono::minutes(10);
constexpr Duration kConfigRetry = std::chrono::seconds(10);
// For so long a failed pull is shown as such; then as what waits for the next one.
constexpr Duration kPullErrorShown = std::chrono::seconds(2);
constexpr int kExitCannotStart = 128;

Duration NextBackOff(Duration last) {
  return last == Duration(0) ? kBackOffFirst : std::min(last * 2, kBackOffMax);
}

// The container's status in the API, or nullptr.
const json::Value* StatusOf(const json::Value& pod, const ContainerState& container) {
  return api::ContainerIn(json::GetArray(pod, {"status", container.StatusList()}), container.name);
}

// The end of a container that the runtime does not know, as the API has it.
ContainerExit ExitFromStatus(const json::Value& status, WallTime now) {
  ContainerExit exit;
  exit.container_id = json::GetString(status, {"containerID"});
  const json::Value* end = json::Find(status, {"state", "terminated"});
  if (end == nullptr) {
    exit.code = kExitUnknown;
    exit.reason = kStatusUnknown;
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

EnvContext EnvContextOf(PodHost& host,
                        const PodRecord& record,
                        const json::Value& pod,
                        const PodSources& sources) {
  EnvContext context{pod,
                     sources,
                     record.sandbox ? record.sandbox->ip : "",
                     host.config().internal_ip,
                     host.allocatable(),
                     host.config().base_env};
  if (host.names() != nullptr && json::GetBool(*record.pod, {"spec", "enableServiceLinks"}, true)) {
    // The node's configuration says where the API server is: it comes later and wins.
    EnvList links = host.names()->ServiceEnv(*record.pod);
    context.service_env.insert(context.service_env.begin(), links.begin(), links.end());
  }
  return context;
}

ContainerManager::ContainerManager(PodHost& host,
                                   PodRecord& record,
                                   std::function<void()> on_change)
    : host_(host), record_(record), on_change_(std::move(on_change)) {
  AddFromSpec();
}

void ContainerManager::AddFromSpec() {
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const json::Value& spec : json::GetArray(*record_.pod, {"spec", list})) {
      const std::string_view name = json::GetString(spec, {"name"});
      if (record_.Find(name) != nullptr) continue;
      ContainerState& state = record_.containers.emplace_back(host_.executor());
      state.name = name;
      state.image = json::GetString(spec, {"image"});
      state.init = list == "initContainers";
      state.sidecar = state.init && api::IsSidecar(spec);
      state.ephemeral = list == "ephemeralContainers";
    }
  }
}

bool ContainerManager::RestoreFromStatus() {
  bool cut_off = false;
  for (ContainerState& container : record_.containers) {
    const json::Value* known = StatusOf(*record_.pod, container);
    if (known == nullptr) continue;
    bool ran = json::Find(*known, {"state", "running"}) != nullptr ||
               json::Find(*known, {"state", "terminated"}) != nullptr ||
               json::GetInt(*known, {"restartCount"}) > 0;
    if (!ran) continue;
    container.attempt = static_cast<int>(json::GetInt(*known, {"restartCount"}));
    container.phase = Phase::kExited;
    container.exit = ExitFromStatus(*known, host_.clock().Now());
    if (container.init) continue;
    cut_off = cut_off || json::Find(*known, {"state", "running"}) != nullptr;
  }
  return cut_off;
}

void ContainerManager::InitializeAgain() {
  for (ContainerState& container : record_.containers) {
    if (!container.init || container.phase != Phase::kExited) continue;
    container.last_exit = container.exit;
    container.phase = Phase::kWaiting;
  }
}

bool ContainerManager::Adopt(const FoundPod& found) {
  bool cut_off = false;
  for (const FoundContainer& old : found.containers) {
    ContainerState* container = record_.Find(old.name);
    if (container == nullptr) continue;
    container->attempt = old.attempt;
    record_.mains_started = record_.mains_started || container->main();
    container->started = old.started;
    container->started_steady = host_.clock().Steady();
    container->exit = old.exit;
    cut_off = cut_off || (old.exit && old.exit->reason == kStatusUnknown);
    container->phase = old.exit ? Phase::kExited : Phase::kRunning;
    const json::Value* known = StatusOf(*record_.pod, *container);
    if (known != nullptr && container->started.image_id.empty()) {
      container->started.image_id = json::GetString(*known, {"imageID"});
    }
    container->startup_passed = known != nullptr && json::GetBool(*known, {"started"});
    container->ready = known != nullptr && json::GetBool(*known, {"ready"});
  }
  return cut_off;
}

void ContainerManager::StartProbesOfRunning() {
  for (ContainerState& container : record_.containers) {
    if (container.phase == Phase::kRunning) StartProbes(container);
  }
}

void ContainerManager::Detach() {
  scope_.Close();
  for (ContainerState& container : record_.containers) {
    container.start_timer.Cancel();
    container.kill_timer.Cancel();
    container.probes.clear();
  }
}

ContainerState* ContainerManager::FindAttempt(std::string_view name, int attempt) {
  ContainerState* container = record_.Find(name);
  return container != nullptr && container->attempt == attempt ? container : nullptr;
}

ContainerRef ContainerManager::RefOf(const ContainerState& container) const {
  return {record_.uid, container.name, container.attempt};
}

Duration ContainerManager::GracePeriod() const {
  return std::chrono::seconds(GraceSeconds(*record_.pod));
}

Duration ContainerManager::TimeToKill() const {
  return std::max(Duration(0), record_.kill_at - host_.clock().Steady());
}

void ContainerManager::Warn(std::string_view reason, std::string_view message) {
  host_.Event(*record_.pod, "Warning", reason, message);
}

// ---- whose turn it is ----

bool ContainerManager::NothingToRun() const {
  return std::all_of(
      record_.containers.begin(), record_.containers.end(), [&](const ContainerState& container) {
        return !container.main() ||
               (container.phase == Phase::kExited && !record_.WantsRestart(container));
      });
}

bool ContainerManager::StartDue() {
  StartEphemeral();
  return StartInit();
}

// They start whatever state the pod's own containers are in.
void ContainerManager::StartEphemeral() {
  for (ContainerState& container : record_.containers) {
    if (container.ephemeral) StartOrRestart(container);
  }
}

bool ContainerManager::StartInit() {
  for (ContainerState& container : record_.containers) {
    if (!container.init || (!container.sidecar && container.succeeded())) continue;
    if (!container.sidecar && container.phase == Phase::kExited &&
        !record_.WantsRestart(container)) {
      return true;
    }
    // The next one waits for an init container to succeed, and for a sidecar to start. Main
    // containers that have started do not wait for a sidecar that restarts.
    if (record_.mains_started && !container.sidecar) continue;
    const bool running = StartOrRestart(container);
    if (record_.mains_started) continue;
    if (!container.sidecar || !running || !container.startup_passed) return false;
  }
  return StartMain();
}

bool ContainerManager::StartMain() {
  record_.mains_started = true;
  bool all_done = true;
  for (ContainerState& container : record_.containers) {
    if (!container.main()) continue;
    StartOrRestart(container);
    if (container.phase != Phase::kExited) all_done = false;
  }
  return all_done;
}

// Starts the container if it is due, plans its restart if it has exited; true when it is running.
bool ContainerManager::StartOrRestart(ContainerState& container) {
  if (container.phase == Phase::kExited && record_.WantsRestart(container)) {
    ScheduleRestart(container);
  }
  if (container.phase == Phase::kWaiting && !container.finding_image &&
      container.not_before <= host_.clock().Steady()) {
    Start(container);
  }
  return container.phase == Phase::kRunning;
}

void ContainerManager::StartAfter(ContainerState& container, Duration delay) {
  container.not_before = host_.clock().Steady() + delay;
  container.start_timer.Start(delay, [this] { on_change_(); });
}

void ContainerManager::ScheduleRestart(ContainerState& container) {
  Duration ran = host_.clock().Steady() - container.started_steady;
  if (ran >= kBackOffReset) container.back_off = Duration(0);
  const bool resized = std::exchange(container.resizing, false);
  Duration delay = resized ? Duration(0) : container.back_off;
  container.last_exit = container.exit;
  container.phase = Phase::kWaiting;
  container.startup_passed = false;
  container.ready = false;
  if (!resized) container.back_off = NextBackOff(delay);
  if (delay == Duration(0)) {  // the first restart is immediate
    container.not_before = host_.clock().Steady();
    return;
  }
  const std::string pod =
      StrCat(api::Name(*record_.pod), "_", api::Namespace(*record_.pod), "(", record_.uid, ")");
  container.waiting_reason = "CrashLoopBackOff";
  container.waiting_message = StrCat("back-off ", GoSeconds(delay),
                                     " restarting failed container=", container.name, " pod=", pod);
  Warn("BackOff", StrCat("Back-off restarting failed container ", container.name, " in pod ", pod));
  StartAfter(container, delay);
}

// ---- starting ----

void ContainerManager::Start(ContainerState& container) {
  if (host_.runtime().Info().has_images && !container.image_ready) return FindImage(container);
  const ImageReady image = std::exchange(container.image_ready, {}).value_or(ImageReady());
  int attempt = container.attempt + 1;
  const json::SharedValue pod = record_.GivenPod();
  const json::Value* own = FindContainer(*pod, container.name);
  static const json::Value kNothing = json::Object();
  auto spec = MakeContainerSpec(EnvContextOf(host_, record_, *pod, *record_.sources),
                                own == nullptr ? kNothing : *own, attempt);
  if (!spec.ok()) return OnConfigError(container, spec.status());
  spec->init = container.init && !container.sidecar;
  spec->image_handle = image.handle;
  PodGpus gpus{.memory_mib = host_.GpuMemoryMib()};
  for (int gpu : record_.gpus) {
    if (!record_.claims.Has(gpu)) gpus.devices.push_back(host_.GpuDeviceId(gpu));
  }
  for (int gpu : record_.claims.OfContainer(record_.SpecOf(container))) {
    gpus.claimed.push_back(host_.GpuDeviceId(gpu));
  }
  spec->gpus = AddGpuEnv(*record_.pod, container.name, gpus, spec->env);
  if (!spec->gpus.empty()) AddVirtualGpuEnv(host_.config(), host_.allocatable(), spec->env);
  spec->env.emplace_back("SWELL_GRACE_SECONDS", std::to_string(spec->grace_seconds));
  container.attempt = attempt;
  container.phase = Phase::kStarting;
  container.stopping = false;
  host_.runtime().StartContainer(*spec,
                                 scope_.Wrap([this, name = container.name, attempt,
                                              id = image.id](Result<ContainerStarted> result) {
                                   if (result.ok() && !id.empty()) result->image_id = id;
                                   OnStarted(name, attempt, std::move(result));
                                 }));
}

void ContainerManager::FindImage(ContainerState& container) {
  const json::Value& spec = record_.SpecOf(container);
  PullSecrets secrets = ReadPullSecrets(*record_.pod, *record_.sources);
  if (!secrets.missing.empty()) {
    Warn("FailedToRetrieveImagePullSecret",
         StrCat("Unable to retrieve some image pull secrets (", Join(secrets.missing, ", "),
                "); attempting to pull the image may not succeed."));
  }
  container.finding_image = true;
  host_.runtime().EnsureImage(
      {container.image, PullPolicyOf(spec), std::move(secrets.docker_configs)},
      scope_.Wrap([this, image = container.image] {
        host_.Event(*record_.pod, "Normal", "Pulling", StrCat("Pulling image ", Quote(image)));
      }),
      scope_.Wrap([this, name = container.name](Result<ImageReady> result) {
        OnImage(name, std::move(result));
      }));
}

void ContainerManager::OnImage(const std::string& name, Result<ImageReady> result) {
  ContainerState* container = record_.Find(name);
  if (container == nullptr || !container->finding_image) return;
  container->finding_image = false;
  if (container->phase != Phase::kWaiting || record_.state.ending()) return;
  if (result.ok()) {
    host_.Event(*record_.pod, result->instead.empty() ? "Normal" : "Warning",
                result->instead.empty() ? "Pulled" : "StandIn",
                PulledText(container->image, *result));
    container->pull_back_off = Duration(0);
    container->image_ready = std::move(*result);
  } else {
    OnImageError(*container, result.status());
  }
  on_change_();
}

void ContainerManager::OnStarted(const std::string& name,
                                 int attempt,
                                 Result<ContainerStarted> result) {
  ContainerState* container = FindAttempt(name, attempt);
  if (container == nullptr || container->phase != Phase::kStarting) return;
  if (!result.ok()) {
    OnStartFailed(*container, result.status());
    return on_change_();
  }
  container->phase = Phase::kRunning;
  container->started = std::move(*result);
  container->started_steady = host_.clock().Steady();
  container->exit.reset();
  container->waiting_reason.clear();
  container->waiting_message.clear();
  if (host_.runtime().Info().has_images) {
    host_.Event(*record_.pod, "Normal", "Created", StrCat("Created container ", name));
  }
  host_.Event(*record_.pod, "Normal", "Started", StrCat("Started container ", name));
  if (record_.state.terminating()) {
    Stop(*container, TimeToKill());
  } else {
    StartProbes(*container);
    RunPostStart(*container);
  }
  on_change_();
}

void ContainerManager::OnStartFailed(ContainerState& container, const Status& why) {
  SWELL_LOG_WARNING("agent", "container not started", {"pod", record_.Key()},
                    {"container", container.name}, {"error", why.ToString()});
  if (why.code() == Code::kNotFound || why.code() == Code::kForbidden) {
    // No container was made: the next start has the same number.
    --container.attempt;
    container.phase = Phase::kWaiting;
    return why.code() == Code::kNotFound ? OnImageError(container, why)
                                         : OnConfigError(container, why);
  }
  Warn("Failed", StrCat("Error: ", why.message()));
  ContainerExit exit;
  exit.code = kExitCannotStart;
  exit.reason = "StartError";
  exit.termination_message = why.message();
  exit.started = exit.finished = host_.clock().Now();
  container.exit = exit;
  container.started_steady = host_.clock().Steady();
  container.phase = Phase::kExited;
}

void ContainerManager::OnImageError(ContainerState& container, const Status& why) {
  const ImageFailure failure = DescribeImageFailure(container.image, why);
  SWELL_LOG_WARNING("agent", "image not here", {"pod", record_.Key()},
                    {"container", container.name}, {"error", why.ToString()});
  container.waiting_reason = failure.reason;
  container.waiting_message = why.message();
  // The registry only says that it refuses.
  if (const PullSecrets secrets = ReadPullSecrets(*record_.pod, *record_.sources);
      !secrets.missing.empty()) {
    container.waiting_message += StrCat("; no Secret with a registry's credentials is called ",
                                        Join(secrets.missing, " or "), " (imagePullSecrets)");
  }
  Warn(failure.event_reason, failure.message);
  Warn("Failed", StrCat("Error: ", failure.reason));
  container.pull_back_off = NextBackOff(container.pull_back_off);
  // A registry that says when it wants to be asked again knows better.
  const Duration wished = std::chrono::seconds(why.details().retry_after_s);
  const Duration delay = std::max(container.pull_back_off, std::min(wished, kBackOffMax));
  if (failure.reason != "ErrImagePull") return StartWithFreshSources(container, delay);
  container.not_before = host_.clock().Steady() + delay;
  container.start_timer.Start(kPullErrorShown,
                              [this, name = container.name, rest = delay - kPullErrorShown] {
                                ContainerState* waiting = record_.Find(name);
                                if (waiting != nullptr && waiting->phase == Phase::kWaiting)
                                  BackOffPulling(*waiting, rest);
                              });
}

void ContainerManager::BackOffPulling(ContainerState& container, Duration rest) {
  const std::string text = StrCat("Back-off pulling image ", Quote(container.image));
  container.waiting_reason = "ImagePullBackOff";
  container.waiting_message = StrCat(text, ": ", container.waiting_message);
  host_.Event(*record_.pod, "Normal", "BackOff", text);
  Warn("Failed", "Error: ImagePullBackOff");
  StartWithFreshSources(container, rest);
  on_change_();
}

void ContainerManager::OnConfigError(ContainerState& container, const Status& why) {
  container.waiting_reason = "CreateContainerConfigError";
  container.waiting_message = why.message();
  Warn("Failed", StrCat("Error: ", why.message()));
  // The missing source may appear.
  StartWithFreshSources(container, kConfigRetry);
}

void ContainerManager::StartWithFreshSources(ContainerState& container, Duration delay) {
  container.not_before = host_.clock().Steady() + delay;
  container.start_timer.Start(delay, [this] {
    FetchPodSources(host_.client(), *record_.pod, record_.sources, host_.clock().Now(),
                    scope_.Wrap([this](std::shared_ptr<const PodSources> sources) {
                      record_.sources = std::move(sources);
                      on_change_();
                    }));
  });
}

// ---- while they run ----

void ContainerManager::RunPostStart(ContainerState& container) {
  const json::Value* hook = json::Find(record_.SpecOf(container), {"lifecycle", "postStart"});
  if (hook == nullptr || json::Find(*hook, {"sleep"}) != nullptr) return;
  RunHook(
      host_.runtime(), record_.SpecOf(container), *hook, RefOf(container), std::chrono::minutes(10),
      scope_.Wrap([this, name = container.name, attempt = container.attempt](const Status& status) {
        if (status.ok()) return;
        ContainerState* failed = FindAttempt(name, attempt);
        if (failed == nullptr || !failed->running()) return;
        Warn("FailedPostStartHook",
             StrCat("PostStartHook of container ", name, " failed: ", status.message()));
        Stop(*failed, GracePeriod(), "FailedPostStartHook");
      }));
}

void ContainerManager::StartProbes(ContainerState& container) {
  container.probes.clear();
  const json::Value& spec = record_.SpecOf(container);
  if (json::Find(spec, {"startupProbe"}) != nullptr && !container.startup_passed) {
    AddProbe(container, ProbeKind::kStartup, "startupProbe");
    if (!container.probes.empty()) return;  // the others wait for its success
  }
  container.startup_passed = true;
  AddProbe(container, ProbeKind::kLiveness, "livenessProbe");
  size_t before = container.probes.size();
  AddProbe(container, ProbeKind::kReadiness, "readinessProbe");
  if (container.probes.size() == before) container.ready = true;
}

void ContainerManager::AddProbe(ContainerState& container, ProbeKind kind, std::string_view field) {
  const json::Value& spec = record_.SpecOf(container);
  const json::Value* probe = json::Find(spec, {field});
  if (probe == nullptr) return;
  Status usable = ProbeRunner::Check(spec, *probe);
  if (!usable.ok()) {
    return Warn("ProbeError", StrCat(ProbeName(kind), " probe of container ", container.name, ": ",
                                     usable.message()));
  }
  ProbeRunner::Callbacks callbacks;
  callbacks.on_verdict = [this, kind, name = container.name, attempt = container.attempt](
                             bool healthy) { OnProbeResult(name, attempt, kind, healthy); };
  callbacks.on_failure = [this](const std::string& message) { Warn("Unhealthy", message); };
  container.probes.push_back(std::make_unique<ProbeRunner>(host_.executor(), host_.runtime(), kind,
                                                           spec, *probe, RefOf(container),
                                                           std::move(callbacks)));
  container.probes.back()->Start();
}

void ContainerManager::OnProbeResult(const std::string& name,
                                     int attempt,
                                     ProbeKind kind,
                                     bool healthy) {
  ContainerState* container = FindAttempt(name, attempt);
  if (container == nullptr || container->phase != Phase::kRunning) return;
  if (kind == ProbeKind::kReadiness) {
    container->ready = healthy;
  } else if (kind == ProbeKind::kStartup && healthy) {
    container->startup_passed = true;
    StartProbes(*container);
  } else if (!healthy) {
    std::string_view field = kind == ProbeKind::kStartup ? "startupProbe" : "livenessProbe";
    int64_t grace =
        json::GetInt(record_.SpecOf(*container), {field, "terminationGracePeriodSeconds"},
                     GraceSeconds(*record_.pod));
    container->ready = false;
    container->failed_probe = ToLower(ProbeName(kind));
    Stop(*container, std::chrono::seconds(std::max<int64_t>(grace, 0)),
         StrCat("Container ", name, " failed ", ToLower(ProbeName(kind)),
                " probe, will be restarted"));
  }
  on_change_();
}

// ---- stopping ----

void ContainerManager::Stop(ContainerState& container, Duration grace, std::string_view event) {
  if (container.stopped() || container.stopping) return;
  container.probes.clear();
  // OnStarted comes back here.
  if (container.phase == Phase::kStarting) return;
  container.stopping = true;
  host_.Event(*record_.pod, "Normal", "Killing",
              event.empty() ? StrCat("Stopping container ", container.name) : std::string(event));
  const int attempt = container.attempt;
  const json::Value* hook = json::Find(record_.SpecOf(container), {"lifecycle", "preStop"});
  if (hook == nullptr || grace <= Duration(0)) return SendTerm(container.name, attempt, grace);
  const SteadyTime end = host_.clock().Steady() + grace;
  auto then = [this, name = container.name, attempt, end] {
    SendTerm(name, attempt, std::max(end - host_.clock().Steady(), kGraceLeast));
  };
  // Whatever becomes of the hook.
  StartKillTimer(container, grace + kGraceLeast);
  if (json::Find(*hook, {"sleep"}) != nullptr) {
    Duration sleep = std::chrono::seconds(json::GetInt(*hook, {"sleep", "seconds"}));
    return container.start_timer.Start(std::min(sleep, grace), std::move(then));
  }
  RunHook(host_.runtime(), record_.SpecOf(container), *hook, RefOf(container), grace,
          scope_.Wrap([this, name = container.name, then = std::move(then)](const Status& status) {
            if (!status.ok()) {
              Warn("FailedPreStopHook",
                   StrCat("PreStopHook of container ", name, " failed: ", status.message()));
            }
            then();
          }));
}

void ContainerManager::Restart(ContainerState& container, std::string_view event) {
  container.resizing = true;
  Stop(container, GracePeriod(), event);
}

void ContainerManager::StartKillTimer(ContainerState& container, Duration grace) {
  container.kill_timer.Start(grace, [this, name = container.name, attempt = container.attempt,
                                     grace] { KillLate(name, attempt, grace); });
}

void ContainerManager::SendTerm(const std::string& name, int attempt, Duration grace) {
  ContainerState* container = FindAttempt(name, attempt);
  if (container == nullptr || container->stopped()) return;
  StartKillTimer(*container, grace);
  host_.runtime().Signal(RefOf(*container), SIGTERM);
}

void ContainerManager::KillLate(const std::string& name, int attempt, Duration grace) {
  ContainerState* late = FindAttempt(name, attempt);
  if (late == nullptr || late->stopped()) return;
  host_.runtime().Signal(RefOf(*late), SIGKILL);
  const int64_t seconds = grace / std::chrono::seconds(1);
  if (seconds == 0) return;
  Warn("KilledAfterGracePeriod",
       StrCat("Container ", name, " did not end within ", std::to_string(seconds),
              " s of SIGTERM and was killed; what it had not saved is lost. Let it end on SIGTERM, "
              "or set a longer terminationGracePeriodSeconds"));
}

void ContainerManager::StopAll(Duration grace) {
  for (ContainerState& container : record_.containers) {
    if (container.phase == Phase::kWaiting) container.start_timer.Cancel();
    if (container.phase == Phase::kRunning && !container.sidecar) Stop(container, grace);
  }
}

void ContainerManager::StopRest() {
  const bool terminating = record_.state.terminating();
  bool others_stopped = true;
  for (ContainerState& container : record_.containers) {
    if (container.ephemeral && !terminating) Stop(container, GracePeriod());
    if (!container.sidecar && !container.stopped()) others_stopped = false;
  }
  if (!others_stopped) return;
  for (auto it = record_.containers.rbegin(); it != record_.containers.rend(); ++it) {
    if (!it->sidecar || it->stopped()) continue;
    return Stop(*it, terminating ? std::max(TimeToKill(), kGraceLeast) : GracePeriod());
  }
}

void ContainerManager::KillAll() {
  for (ContainerState& container : record_.containers) {
    container.probes.clear();
    if (container.phase == Phase::kRunning) host_.runtime().Signal(RefOf(container), SIGKILL);
  }
}

void ContainerManager::OnExit(const ContainerRef& ref, const ContainerExit& exit) {
  ContainerState* container = FindAttempt(ref.name, ref.attempt);
  if (container == nullptr || container->stopped()) return;
  container->phase = Phase::kExited;
  container->exit = exit;
  // Else it would look as if somebody had sent it a signal. The reason is not the program's to say.
  const std::string probe = std::exchange(container->failed_probe, {});
  if (!probe.empty() && exit.termination_message.empty()) {
    container->exit->termination_message = StrCat("its ", probe, api::kProbeFailed);
  }
  if (!probe.empty() && exit.code != 0 && !exit.oom_killed && exit.reason.empty()) {
    const ProbeKind kind = probe == "startup" ? ProbeKind::kStartup : ProbeKind::kLiveness;
    container->exit->reason = StrCat(ProbeName(kind), api::kProbeFailedReason);
  }
  container->ready = false;
  container->probes.clear();
  container->kill_timer.Cancel();
  SWELL_LOG_INFO("agent", "container exited", {"pod", record_.Key()}, {"container", ref.name},
                 {"code", std::to_string(exit.code)}, {"oom", exit.oom_killed ? "true" : "false"});
  on_change_();
}

}  // namespace swell::node
