// The containers' half of PodWorker: starting them, watching over them, restarting them.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta.h"
#include "kube/api/swell_keys.h"
#include "kube/node/pod_worker.h"

namespace swell::node {
namespace {

constexpr Duration kBackOffFirst = std::chrono::seconds(10);
constexpr Duration kBackOffMost = std::chrono::minutes(5);
constexpr Duration kBackOffForget = std::chrono::minutes(10);
constexpr int kExitCannotStart = 128;

int64_t SecondsOf(Duration d) {
  return std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

// "10s", "1m20s", "5m0s": durations as Go prints them.
std::string GoDuration(Duration d) {
  int64_t seconds = SecondsOf(d);
  return seconds < 60 ? StrCat(seconds, "s") : StrCat(seconds / 60, "m", seconds % 60, "s");
}

}  // namespace

void PodWorker::Arm(ContainerState& container, Duration delay) {
  container.not_before = host_.clock().Steady() + delay;
  Later(delay, container.timer, [this] { Sync(); });
}

void PodWorker::ScheduleRestart(ContainerState& container) {
  Duration ran = host_.clock().Steady() - container.started_steady;
  if (ran >= kBackOffForget) container.back_off = Duration(0);
  Duration delay = container.back_off;
  container.last_exit = container.exit;
  container.phase = ContainerState::Phase::kWaiting;
  container.startup_passed = false;
  container.ready = false;
  // The first restart is immediate; a loop of them is not.
  container.back_off = delay == Duration(0) ? kBackOffFirst : std::min(delay * 2, kBackOffMost);
  if (delay == Duration(0)) {
    container.not_before = host_.clock().Steady();
    return;
  }
  std::string message =
      StrCat("back-off ", GoDuration(delay), " restarting failed container=", container.name,
             " pod=", api::Name(*pod_), "_", api::Namespace(*pod_), "(", uid_, ")");
  container.waiting_reason = "CrashLoopBackOff";
  container.waiting_message = message;
  host_.Event(*pod_, "Warning", "BackOff",
              StrCat("Back-off restarting failed container ", container.name, " in pod ",
                     api::Name(*pod_), "_", api::Namespace(*pod_), "(", uid_, ")"));
  Arm(container, delay);
}

void PodWorker::AddGpuEnv(const ContainerState& container, ContainerSpec& spec) const {
  if (gpus_.empty()) return;
  // Containers take their share of the pod's devices in order; a pod that has a share of a GPU
  // (a fraction) asks for no whole one, and every container sees it.
  size_t first = 0;
  size_t count = 0;
  size_t asked = 0;
  for (std::string_view list : {"initContainers", "containers"}) {
    size_t at = 0;
    for (const json::Value& item : json::GetArray(*pod_, {"spec", list})) {
      Amounts limits = ReadAmounts(json::Find(item, {"resources", "limits"}));
      auto gpu = limits.find(kGpuResource);
      size_t n = gpu == limits.end() ? 0 : static_cast<size_t>(std::max<int64_t>(0, gpu->second));
      asked += n;
      if (json::GetString(item, {"name"}) == container.name) {
        first = at;
        count = n;
      }
      at += n;
    }
  }
  if (asked == 0) count = gpus_.size();
  if (count == 0) return;
  for (const auto& [name, value] : spec.env) {
    // A manifest that hides the devices from the container means it.
    if (name == "NVIDIA_VISIBLE_DEVICES" && (value == "void" || value == "none")) return;
  }
  std::vector<std::string> devices;
  for (size_t i = first; i < std::min(first + count, gpus_.size()); ++i) {
    devices.push_back(host_.GpuDeviceId(gpus_[i]));
  }
  spec.env.emplace_back("CUDA_VISIBLE_DEVICES", Join(devices, ","));
  spec.env.emplace_back("NVIDIA_VISIBLE_DEVICES", Join(devices, ","));
  if (asked == 0) AddGpuShareEnv(spec);
}

// How much of each device is the pod's. Nothing on the device enforces it: frameworks that take
// all memory they see are told to take less.
void PodWorker::AddGpuShareEnv(ContainerSpec& spec) const {
  double share =
      std::strtod(std::string(api::Annotation(*pod_, api::keys::kGpuFraction)).c_str(), nullptr);
  int64_t mib = ParseInt(api::Annotation(*pod_, api::keys::kGpuMemory)).value_or(0);
  const int64_t device_mib = host_.GpuMemoryMib();
  if (mib > 0)
    share = device_mib > 0 ? static_cast<double>(mib) / static_cast<double>(device_mib) : 0;
  if (mib <= 0) mib = static_cast<int64_t>(share * static_cast<double>(device_mib));
  auto add = [&spec](std::string name, std::string value) {
    const bool said = std::any_of(spec.env.begin(), spec.env.end(),
                                  [&name](const auto& known) { return known.first == name; });
    if (!said) spec.env.emplace_back(std::move(name), std::move(value));
  };
  if (mib > 0) add("SWELL_GPU_MEMORY_MIB", std::to_string(mib));
  if (share <= 0 || share > 1) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", share);
  add("SWELL_GPU_FRACTION", text);
  add("XLA_PYTHON_CLIENT_MEM_FRACTION", text);
  add("TF_FORCE_GPU_ALLOW_GROWTH", "true");
}

void PodWorker::StartContainer(ContainerState& container) {
  int attempt = container.attempt + 1;
  auto spec = MakeContainerSpec(Context(), SpecOf(container), attempt);
  if (!spec.ok()) return ConfigError(container, spec.status());
  spec->init = container.init && !container.sidecar;
  AddGpuEnv(container, *spec);
  spec->env.emplace_back("SWELL_GRACE_SECONDS", std::to_string(spec->grace_seconds));
  container.attempt = attempt;
  container.phase = ContainerState::Phase::kStarting;
  container.signalled = false;
  container.killed_by_probe = false;
  host_.runtime().StartContainer(*spec, [weak = weak_from_this(), name = container.name,
                                         attempt](Result<ContainerStarted> result) {
    auto self = weak.lock();
    if (self && !self->detached_) self->OnStarted(name, attempt, std::move(result));
  });
}

void PodWorker::OnStarted(const std::string& name, int attempt, Result<ContainerStarted> result) {
  ContainerState* container = Find(name);
  if (container == nullptr || container->attempt != attempt ||
      container->phase != ContainerState::Phase::kStarting) {
    return;
  }
  if (!result.ok()) {
    OnStartFailed(*container, result.status());
    return Sync();
  }
  container->phase = ContainerState::Phase::kRunning;
  container->started = std::move(*result);
  container->started_steady = host_.clock().Steady();
  container->exit.reset();
  container->waiting_reason.clear();
  container->waiting_message.clear();
  if (host_.runtime().Info().has_images) {
    host_.Event(*pod_, "Normal", "Pulled",
                StrCat("Container image ", Quote(container->image), " already present on machine"));
    host_.Event(*pod_, "Normal", "Created", StrCat("Created container ", name));
  }
  host_.Event(*pod_, "Normal", "Started", StrCat("Started container ", name));
  if (terminating_) {
    // Asked to stop while it was starting.
    StopContainer(*container, std::max(Duration(0), kill_at_ - host_.clock().Steady()));
  } else {
    RunPostStart(*container);
    StartProbes(*container);
  }
  Sync();
}

void PodWorker::OnStartFailed(ContainerState& container, const Status& why) {
  SWELL_LOG_WARNING("agent", "container not started", {"pod", Key()}, {"container", container.name},
                    {"error", why.ToString()});
  if (why.code() == Code::kNotFound) return WaitForImage(container, why);
  if (why.code() == Code::kForbidden) {
    --container.attempt;  // none was made
    container.phase = ContainerState::Phase::kWaiting;
    return ConfigError(container, why);
  }
  host_.Event(*pod_, "Warning", "Failed", StrCat("Error: ", why.message()));
  ContainerExit exit;
  exit.code = kExitCannotStart;
  exit.reason = "StartError";
  exit.termination_message = why.message();
  exit.started = exit.finished = host_.clock().Now();
  container.exit = exit;
  container.started_steady = host_.clock().Steady();
  container.phase = ContainerState::Phase::kExited;
}

void PodWorker::WaitForImage(ContainerState& container, const Status& why) {
  // No attempt was made: the next one has the same number.
  --container.attempt;
  container.phase = ContainerState::Phase::kWaiting;
  bool first =
      container.waiting_reason != "ErrImagePull" && container.waiting_reason != "ImagePullBackOff";
  container.waiting_reason = first ? "ErrImagePull" : "ImagePullBackOff";
  container.waiting_message =
      first ? why.message()
            : StrCat("Back-off pulling image ", Quote(container.image), ": ", why.message());
  host_.Event(*pod_, "Warning", first ? "Failed" : "BackOff",
              StrCat("Failed to pull image ", Quote(container.image), ": ", why.message()));
  container.back_off = container.back_off == Duration(0)
                           ? kBackOffFirst
                           : std::min(container.back_off * 2, kBackOffMost);
  Arm(container, container.back_off);
}

void PodWorker::ConfigError(ContainerState& container, const Status& why) {
  container.waiting_reason = "CreateContainerConfigError";
  container.waiting_message = why.message();
  host_.Event(*pod_, "Warning", "Failed", StrCat("Error: ", why.message()));
  // The missing source may appear: look again, with fresh sources.
  container.not_before = host_.clock().Steady() + std::chrono::seconds(10);
  Later(std::chrono::seconds(10), container.timer, [this] {
    FetchPodSources(host_.client(), *pod_, sources_, host_.clock().Now(),
                    [weak = weak_from_this()](std::shared_ptr<const PodSources> sources) {
                      auto self = weak.lock();
                      if (!self || self->detached_) return;
                      self->sources_ = std::move(sources);
                      self->Sync();
                    });
  });
}

void PodWorker::RunPostStart(ContainerState& container) {
  const json::Value* command =
      json::Find(SpecOf(container), {"lifecycle", "postStart", "exec", "command"});
  if (command == nullptr || !command->is_array()) return;
  ExecSpec spec{.argv = {}, .timeout = std::chrono::minutes(10)};
  for (const json::Value& word : command->get_array()) {
    if (word.is_string()) spec.argv.emplace_back(json::View(word.get_string()));
  }
  host_.runtime().Exec(
      RefOf(container), spec,
      [weak = weak_from_this(), name = container.name,
       attempt = container.attempt](const Result<ExecResult>& result) {
        auto self = weak.lock();
        if (!self || self->detached_ || (result.ok() && result->code == 0)) return;
        ContainerState* container = self->Find(name);
        if (container == nullptr || container->attempt != attempt || !container->running()) return;
        self->host_.Event(
            *self->pod_, "Warning", "FailedPostStartHook",
            StrCat("PostStartHook of container ", name, " failed: ",
                   result.ok() ? StrCat("exit code ", result->code) : result.status().message()));
        self->StopContainer(*container, std::chrono::seconds(GraceSeconds(*self->pod_)),
                            "FailedPostStartHook");
      });
}

void PodWorker::StartProbes(ContainerState& container) {
  container.probes.clear();
  const json::Value& spec = SpecOf(container);
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

void PodWorker::AddProbe(ContainerState& container, ProbeKind kind, std::string_view field) {
  const json::Value& spec = SpecOf(container);
  const json::Value* probe = json::Find(spec, {field});
  if (probe == nullptr) return;
  Status usable = ProbeRunner::Check(spec, *probe);
  if (!usable.ok()) {
    host_.Event(
        *pod_, "Warning", "ProbeError",
        StrCat(ProbeName(kind), " probe of container ", container.name, ": ", usable.message()));
    return;
  }
  ProbeRunner::Callbacks callbacks;
  callbacks.on_verdict = [this, kind, name = container.name, attempt = container.attempt](
                             bool healthy) { OnProbeVerdict(name, attempt, kind, healthy); };
  callbacks.on_failure = [this](const std::string& message) {
    host_.Event(*pod_, "Warning", "Unhealthy", message);
  };
  container.probes.push_back(std::make_unique<ProbeRunner>(host_.executor(), host_.runtime(), kind,
                                                           spec, *probe, RefOf(container),
                                                           std::move(callbacks)));
  container.probes.back()->Start();
}

void PodWorker::OnProbeVerdict(const std::string& name, int attempt, ProbeKind kind, bool healthy) {
  auto self = shared_from_this();
  ContainerState* container = Find(name);
  if (container == nullptr || container->attempt != attempt ||
      container->phase != ContainerState::Phase::kRunning) {
    return;
  }
  if (kind == ProbeKind::kReadiness) {
    container->ready = healthy;
  } else if (kind == ProbeKind::kStartup && healthy) {
    container->startup_passed = true;
    StartProbes(*container);
  } else if (!healthy) {
    container->killed_by_probe = true;
    const json::Value& spec = SpecOf(*container);
    std::string_view field = kind == ProbeKind::kStartup ? "startupProbe" : "livenessProbe";
    int64_t grace =
        json::GetInt(spec, {field, "terminationGracePeriodSeconds"}, GraceSeconds(*pod_));
    container->ready = false;
    StopContainer(*container, std::chrono::seconds(std::max<int64_t>(grace, 0)),
                  StrCat("Container ", name, " failed ", ToLower(ProbeName(kind)),
                         " probe, will be restarted"));
  }
  Sync();
}

// preStop hook, SIGTERM, and SIGKILL when the grace period is over. The hook's time counts.
void PodWorker::StopContainer(ContainerState& container, Duration grace, std::string_view why) {
  if (container.stopped() || container.signalled) return;
  container.signalled = true;
  container.probes.clear();
  if (container.phase == ContainerState::Phase::kStarting) {
    container.signalled = false;  // OnStarted comes back here
    return;
  }
  host_.Event(*pod_, "Normal", "Killing",
              why.empty() ? StrCat("Stopping container ", container.name) : std::string(why));
  int attempt = container.attempt;
  Later(grace, container.kill_timer, [this, name = container.name, attempt] {
    ContainerState* late = Find(name);
    if (late == nullptr || late->attempt != attempt || late->stopped()) return;
    host_.runtime().Signal(RefOf(*late), SIGKILL);
  });
  const json::Value* hook = json::Find(SpecOf(container), {"lifecycle", "preStop"});
  if (hook == nullptr || grace <= Duration(0)) return Terminate(container, attempt);
  if (json::Find(*hook, {"sleep"})) {
    Duration nap = std::chrono::seconds(json::GetInt(*hook, {"sleep", "seconds"}));
    return Later(std::min(nap, grace), container.timer, [this, name = container.name, attempt] {
      if (ContainerState* stopping = Find(name)) Terminate(*stopping, attempt);
    });
  }
  const json::Value* command = json::Find(*hook, {"exec", "command"});
  if (command == nullptr || !command->is_array()) return Terminate(container, attempt);
  ExecSpec spec{.argv = {}, .timeout = grace};
  for (const json::Value& word : command->get_array()) {
    if (word.is_string()) spec.argv.emplace_back(json::View(word.get_string()));
  }
  host_.runtime().Exec(
      RefOf(container), spec,
      [weak = weak_from_this(), name = container.name, attempt](const Result<ExecResult>& result) {
        auto self = weak.lock();
        if (!self || self->detached_) return;
        ContainerState* stopping = self->Find(name);
        if (stopping == nullptr) return;
        if (!result.ok() || result->code != 0) {
          self->host_.Event(*self->pod_, "Warning", "FailedPreStopHook",
                            StrCat("PreStopHook of container ", name, " failed"));
        }
        self->Terminate(*stopping, attempt);
      });
}

void PodWorker::Terminate(ContainerState& container, int attempt) {
  if (container.attempt != attempt || container.stopped()) return;
  host_.runtime().Signal(RefOf(container), SIGTERM);
}

void PodWorker::OnContainerExit(const ContainerRef& ref, const ContainerExit& exit) {
  if (detached_) return;
  ContainerState* container = Find(ref.name);
  if (container == nullptr || container->attempt != ref.attempt || container->stopped()) return;
  container->phase = ContainerState::Phase::kExited;
  container->exit = exit;
  container->ready = false;
  container->probes.clear();
  host_.executor().Cancel(container->kill_timer);
  container->kill_timer = kNoTimer;
  SWELL_LOG_INFO("agent", "container exited", {"pod", Key()}, {"container", ref.name},
                 {"code", std::to_string(exit.code)}, {"oom", exit.oom_killed ? "true" : "false"});
  Sync();
}

}  // namespace swell::node
