#include "kube/node/runtime/simulated_runtime.h"

#include <algorithm>
#include <csignal>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"

namespace swell::node {
namespace {

// "2.5" seconds; `fallback` when absent or malformed. Bounded: annotations come from users.
Duration SecondsAnnotation(const SandboxSpec& spec, const std::string& name, Duration fallback) {
  auto it = spec.annotations.find(name);
  if (it == spec.annotations.end()) return fallback;
  std::string_view text = Trim(it->second);
  size_t dot = text.find('.');
  auto whole = ParseInt(text.substr(0, dot));
  if (!whole || *whole < 0 || *whole > 1'000'000'000) return fallback;
  Duration out = std::chrono::seconds(*whole);
  if (dot != std::string_view::npos) {
    std::string fraction(text.substr(dot + 1, 3));
    fraction.resize(3, '0');
    auto millis = ParseInt(fraction);
    if (!millis || *millis < 0) return fallback;
    out += std::chrono::milliseconds(*millis);
  }
  return out;
}

int CodeAnnotation(const SandboxSpec& spec) {
  auto it = spec.annotations.find("swell.dev/exit-code");
  if (it == spec.annotations.end()) return 0;
  return static_cast<int>(std::clamp<int64_t>(ParseInt(it->second).value_or(0), 0, 255));
}

// Nothing when absent or malformed; at most what a machine could have.
api::Quantity QuantityAnnotation(const SandboxSpec& spec, const std::string& name) {
  static constexpr int64_t kMost = int64_t{1} << 50;
  auto it = spec.annotations.find(name);
  auto quantity = api::Quantity::Parse(it == spec.annotations.end() ? "0" : it->second);
  const bool sound = quantity.ok() && !quantity->negative() && quantity->Value() <= kMost;
  return sound ? *quantity : api::Quantity();
}

// What this runtime looks at of what it is asked for; the rest is as much as all else of a pod.
SandboxSpec NeededOf(const SandboxSpec& spec) {
  SandboxSpec needed;
  needed.pod_uid = spec.pod_uid;
  needed.ns = spec.ns;
  needed.name = spec.name;
  needed.node = spec.node;
  needed.annotations = spec.annotations;
  return needed;
}
ContainerSpec NeededOf(const ContainerSpec& spec) {
  ContainerSpec needed;
  needed.ref = spec.ref;
  needed.init = spec.init;
  needed.image = spec.image;
  return needed;
}

class NoStream final : public LogStream {};

// A command (or an attached container) that is nothing but its streams.
class SimulatedStdio final : public StdioSession {
 public:
  SimulatedStdio(Executor& executor, const StdioSpec& spec) : executor_(executor) {
    std::tie(io_, inside_) = api::MakePipe(executor);
    if (spec.error && !spec.tty) {
      auto [ours, theirs] = api::MakePipe(executor);
      error_ = std::move(ours);
      theirs->Close();
    }
  }
  const api::DuplexPtr& io() override { return io_; }
  const api::DuplexPtr& error() override { return error_; }
  void Resize(TerminalSize) override {}
  void OnExit(std::function<void(Result<int>)> done) override {
    done_ = std::move(done);
    if (code_) executor_.Post([done = std::move(done_), code = *code_] { done(code); });
  }

  const api::DuplexPtr& inside() { return inside_; }
  void Exit(int code) {
    if (code_) return;
    code_ = code;
    inside_->Close();
    if (done_) executor_.Post([done = std::move(done_), code] { done(code); });
  }

 private:
  Executor& executor_;
  api::DuplexPtr io_, error_, inside_;
  std::function<void(Result<int>)> done_;
  std::optional<int> code_;
};

// What comes is sent back.
void Echo(const api::DuplexPtr& stream, std::function<void()> ended) {
  std::weak_ptr<api::DuplexStream> weak = stream;
  stream->Start({.on_data =
                     [weak](const api::Chunk& bytes) {
                       auto alive = weak.lock();
                       if (alive && alive->Write(bytes)) api::HoldBack(alive, alive);
                     },
                 .on_end = [ended = std::move(ended)](const Status&) { ended(); }});
}

}  // namespace

SimulatedRuntime::SimulatedRuntime(Executor& executor, Clock& clock, Options options)
    : executor_(executor), clock_(clock), options_(options) {}

SimulatedRuntime::~SimulatedRuntime() {
  for (auto& [uid, pod] : pods_) {
    for (auto& [name, container] : pod.containers) executor_.Cancel(container.timer);
  }
}

void SimulatedRuntime::Later(Duration delay, std::function<void()> fn) {
  executor_.After(delay, scope_.Wrap(std::move(fn)));
}

RuntimeInfo SimulatedRuntime::Info() const {
  return {"simulated", "0.1.0", options_.resolves_names, "", images_ != nullptr};
}

void SimulatedRuntime::List(const std::string& node,
                            std::function<void(Result<std::vector<FoundPod>>)> done) {
  std::vector<FoundPod> found;
  for (const auto& [uid, pod] : pods_) {
    if (pod.spec.node != node) continue;
    FoundPod out{uid, pod.spec.ns, pod.spec.name, pod.info, {}};
    for (const auto& [name, container] : pod.containers) {
      if (!container.running && !container.exit) continue;
      out.containers.push_back(
          {name, container.spec.ref.attempt, container.started, container.exit});
    }
    found.push_back(std::move(out));
  }
  executor_.Post(
      [done = std::move(done), found = std::move(found)]() mutable { done(std::move(found)); });
}

void SimulatedRuntime::Adopt(const FoundPod& pod, std::weak_ptr<PodObserver> observer) {
  auto it = pods_.find(pod.pod_uid);
  if (it == pods_.end()) return;
  it->second.observer = observer;
  for (const FoundContainer& known : pod.containers) {
    const Container* container = Find({pod.pod_uid, known.name, known.attempt});
    if (container == nullptr || !container->exit || known.exit) continue;
    executor_.Post([observer, ref = container->spec.ref, exit = *container->exit] {
      if (auto alive = observer.lock()) alive->OnContainerExit(ref, exit);
    });
  }
}

void SimulatedRuntime::CreateSandbox(const SandboxSpec& spec,
                                     std::weak_ptr<PodObserver> observer,
                                     std::function<void(Result<SandboxInfo>)> done) {
  if (Status made = sandboxes_ ? sandboxes_(spec) : Status::Ok(); !made.ok()) {
    return Later(options_.sandbox_delay, [made, done = std::move(done)] { done(made); });
  }
  Pod& pod = pods_[spec.pod_uid];
  pod.spec = options_.keeps_specs ? spec : NeededOf(spec);
  pod.observer = std::move(observer);
  uint32_t n = next_ip_++;
  pod.info.ip = spec.host_network
                    ? spec.host_ip
                    : StrCat("10.", 64 + (n >> 16) % 64, ".", (n >> 8) & 255, ".", n & 255);
  Later(options_.sandbox_delay, [info = pod.info, done = std::move(done)] { done(info); });
}

void SimulatedRuntime::EnsureImage(const ImageRequest& request,
                                   std::function<void()> on_pull,
                                   std::function<void(Result<ImageReady>)> done) {
  Result<ImageReady> said = images_ ? images_(request) : ImageReady();
  Later(options_.start_delay, [said, on_pull = std::move(on_pull), done = std::move(done)] {
    const bool not_asked = !said.ok() && (said.status().code() == Code::kInvalid ||
                                          said.status().code() == Code::kMethodNotAllowed);
    if (!not_asked && (!said.ok() || said->pulled)) on_pull();
    done(said);
  });
}

void SimulatedRuntime::StartContainer(const ContainerSpec& spec,
                                      std::function<void(Result<ContainerStarted>)> done) {
  auto it = pods_.find(spec.ref.pod_uid);
  if (it == pods_.end()) {
    executor_.Post([done = std::move(done)] { done(Status(Code::kInternal, "no such sandbox")); });
    return;
  }
  auto missing = it->second.spec.annotations.find("swell.dev/missing-image");
  if (missing != it->second.spec.annotations.end() && missing->second == spec.image) {
    executor_.Post([done = std::move(done), image = spec.image] {
      done(Status(Code::kNotFound, StrCat("image ", Quote(image), " not found")));
    });
    return;
  }
  Container& container = it->second.containers[spec.ref.name];
  // An earlier agent may have begun it, and not have lived to hear of it.
  if (!container.running) {
    container.spec = options_.keeps_specs ? spec : NeededOf(spec);
    container.exit.reset();
  }
  Later(options_.start_delay,
        [this, ref = spec.ref, done = std::move(done)] { Started(ref, done); });
}

SimulatedRuntime::Container* SimulatedRuntime::Find(const ContainerRef& ref) {
  auto pod = pods_.find(ref.pod_uid);
  if (pod == pods_.end()) return nullptr;
  auto it = pod->second.containers.find(ref.name);
  if (it == pod->second.containers.end() || it->second.spec.ref.attempt != ref.attempt) {
    return nullptr;
  }
  return &it->second;
}

void SimulatedRuntime::Started(const ContainerRef& ref,
                               const std::function<void(Result<ContainerStarted>)>& done) {
  Container* container = Find(ref);
  if (container == nullptr) return done(Status(Code::kInternal, "the pod was removed"));
  if (container->running) return done(container->started);
  container->running = true;
  container->started = {StrCat("simulated://", ref.pod_uid, "/", ref.name, "/", ref.attempt),
                        StrCat("simulated://", container->spec.image), clock_.Now()};
  const SandboxSpec& pod = pods_.at(ref.pod_uid).spec;
  Duration never(-1);
  Duration run = SecondsAnnotation(pod, "swell.dev/run-seconds", never);
  int code = container->spec.init ? 0 : CodeAnnotation(pod);
  if (container->spec.init) run = Duration(0);
  if (run >= Duration(0)) {
    container->timer = executor_.After(run, [this, ref, code] { End(ref, code, 0, false); });
  }
  done(container->started);
}

void SimulatedRuntime::End(const ContainerRef& ref, int code, int signal, bool oom) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running) return;
  executor_.Cancel(container->timer);
  container->timer = kNoTimer;
  container->running = false;
  ContainerExit exit;
  exit.code = code;
  exit.signal = signal;
  exit.oom_killed = oom;
  exit.started = container->started.started;
  exit.finished = clock_.Now();
  exit.container_id = container->started.container_id;
  container->exit = exit;
  for (const auto& weak : std::exchange(container->attached, {})) {
    if (auto session = weak.lock()) static_cast<SimulatedStdio&>(*session).Exit(code);
  }
  if (auto observer = pods_.at(ref.pod_uid).observer.lock()) observer->OnContainerExit(ref, exit);
}

void SimulatedRuntime::Signal(const ContainerRef& ref, int signal) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running) return;
  Duration delay(0);
  if (signal == SIGTERM) {
    delay = SecondsAnnotation(pods_.at(ref.pod_uid).spec, "swell.dev/stop-seconds", Duration(0));
  } else if (signal != SIGKILL) {
    return;
  }
  executor_.Cancel(container->timer);
  container->timer =
      executor_.After(delay, [this, ref, signal] { End(ref, 128 + signal, signal, false); });
}

void SimulatedRuntime::Stop(const std::string&,
                            std::function<void(const Status&)> on_delay,
                            std::function<void(const Status&)> done) {
  if (!persist_.delay.ok()) {
    executor_.Post([on_delay = std::move(on_delay), why = persist_.delay] { on_delay(why); });
  }
  Later(persist_.takes, [done = std::move(done), result = persist_.result] { done(result); });
}

void SimulatedRuntime::Remove(const std::string& pod_uid, std::function<void(const Status&)> done) {
  auto it = pods_.find(pod_uid);
  if (it != pods_.end()) {
    for (auto& [name, container] : it->second.containers) executor_.Cancel(container.timer);
    pods_.erase(it);
  }
  executor_.Post([done = std::move(done)] { done(Status::Ok()); });
}

void SimulatedRuntime::Exec(const ContainerRef& ref,
                            const ExecSpec&,
                            std::function<void(Result<ExecResult>)> done) {
  auto it = pods_.find(ref.pod_uid);
  bool healthy = it != pods_.end() && it->second.healthy;
  executor_.Post([done = std::move(done), healthy] {
    done(ExecResult{healthy ? 0 : 1, "", false});
  });
}

void SimulatedRuntime::OpenStdio(const ContainerRef& ref,
                                 const StdioSpec& spec,
                                 StdioCallback done) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running) {
    executor_.Post([done = std::move(done), name = ref.name] {
      done(Status(Code::kInternal, StrCat("container ", Quote(name), " is not running")));
    });
    return;
  }
  auto session = std::make_shared<SimulatedStdio>(executor_, spec);
  if (spec.argv.empty()) {
    std::erase_if(container->attached, [](const auto& weak) { return weak.expired(); });
    container->attached.push_back(session);
    Echo(session->inside(), [] {});
  } else {
    session->inside()->Write(api::MakeChunk(StrCat("simulated: ", Join(spec.argv, " "), "\n")));
    auto end = [weak = std::weak_ptr(session)] {
      if (auto alive = weak.lock()) alive->Exit(0);
    };
    if (spec.input) {
      Echo(session->inside(), end);
    } else {
      end();
    }
  }
  executor_.Post(
      [done = std::move(done), session] { done(std::shared_ptr<StdioSession>(session)); });
}

void SimulatedRuntime::Dial(const std::string& pod_uid,
                            uint16_t,
                            std::function<void(Result<api::DuplexPtr>)> done) {
  Result<api::DuplexPtr> answer(Status(Code::kNotFound, "the pod is not running"));
  if (pods_.contains(pod_uid)) {
    auto [ours, theirs] = api::MakePipe(executor_);
    // Lives as long as the caller's end.
    Echo(theirs, [theirs = theirs] { theirs->Close(); });
    answer = std::move(ours);
  }
  executor_.Post([done = std::move(done), answer] { done(answer); });
}

void SimulatedRuntime::Resize(const ContainerRef& container,
                              const CpuAndMemory& amounts,
                              std::function<void(const Status&)> done) {
  Status status;
  const auto pod = pods_.find(container.pod_uid);
  if (pod != pods_.end() && options_.keeps_specs) {
    status = container.name.empty()
                 ? ResizeWhole(pod->second, amounts)
                 : ResizeOne(pod->second.containers[container.name].spec, amounts);
  }
  executor_.Post([done = std::move(done), status] { done(status); });
}

// As the kernel, both refuse a container's quota of CPU above its pod's.
Status SimulatedRuntime::ResizeWhole(Pod& pod, const CpuAndMemory& amounts) {
  for (const auto& [name, container] : pod.containers) {
    if (amounts.cpu_limit_milli > 0 && container.spec.cpu_limit_milli > amounts.cpu_limit_milli) {
      return Status(Code::kInvalid, StrCat("container ", name, " has a larger quota"));
    }
  }
  for (auto& [name, container] : pod.containers) container.spec.whole_pod = amounts;
  return Status::Ok();
}

Status SimulatedRuntime::ResizeOne(ContainerSpec& spec, const CpuAndMemory& amounts) {
  const int64_t most = spec.whole_pod ? spec.whole_pod->cpu_limit_milli : 0;
  if (most > 0 && amounts.cpu_limit_milli > most) {
    return Status(Code::kInvalid, "the quota is larger than the pod's");
  }
  spec.cpu_request_milli = amounts.cpu_request_milli;
  spec.cpu_limit_milli = amounts.cpu_limit_milli;
  spec.memory_limit_bytes = amounts.memory_limit_bytes;
  return Status::Ok();
}

void SimulatedRuntime::Probe(const std::string& pod_uid,
                             const ProbeSpec&,
                             std::function<void(ProbeResult)> done) {
  auto it = pods_.find(pod_uid);
  bool healthy = it != pods_.end() && it->second.healthy;
  executor_.Post([done = std::move(done), healthy] {
    done(ProbeResult{healthy, healthy ? "" : "simulated failure"});
  });
}

void SimulatedRuntime::Usage(const std::string& node,
                             std::function<void(std::vector<ContainerUsage>)> done) {
  const WallTime now = clock_.Now();
  std::vector<ContainerUsage> usage;
  for (const auto& [uid, pod] : pods_) {
    if (pod.spec.node != node) continue;
    const auto milli_cpu = QuantityAnnotation(pod.spec, "swell.dev/used-cpu").MilliValue();
    const auto memory = QuantityAnnotation(pod.spec, "swell.dev/used-memory").Value();
    for (const auto& [name, container] : pod.containers) {
      if (!container.running) continue;
      const Duration age = now - container.started.started;
      const Duration cpu(static_cast<int64_t>(std::min(
          1e18, static_cast<double>(age.count()) * static_cast<double>(milli_cpu) / 1000)));
      usage.push_back({container.spec.ref, container.started.started, now, cpu, age, cpu, memory});
    }
  }
  executor_.Post([done = std::move(done), usage = std::move(usage)] { done(usage); });
}

void SimulatedRuntime::MeasureDisk(const std::string& pod_uid, std::function<void(DiskUse)> done) {
  auto it = pods_.find(pod_uid);
  DiskUse use = it == pods_.end() ? DiskUse() : it->second.disk;
  executor_.Post([done = std::move(done), use = std::move(use)] { done(use); });
}

void SimulatedRuntime::SetDiskUseForTest(const std::string& pod_uid, DiskUse use) {
  auto it = pods_.find(pod_uid);
  if (it != pods_.end()) it->second.disk = std::move(use);
}

void SimulatedRuntime::UpdateHosts(const std::string& pod_uid,
                                   const std::vector<HostsEntry>& hosts) {
  auto it = pods_.find(pod_uid);
  if (it != pods_.end() && options_.keeps_specs) it->second.spec.hosts = hosts;
}

void SimulatedRuntime::UpdateVolume(const std::string& pod_uid, const VolumeSpec& volume) {
  auto it = pods_.find(pod_uid);
  if (it == pods_.end()) return;
  for (VolumeSpec& mine : it->second.spec.volumes) {
    if (mine.name == volume.name) mine = volume;
  }
}

void SimulatedRuntime::WriteNotice(const std::string& pod_uid, const std::string& notice_json) {
  auto it = pods_.find(pod_uid);
  if (it != pods_.end()) it->second.notice = notice_json;
}

std::unique_ptr<LogStream> SimulatedRuntime::ReadLog(const ContainerRef& ref,
                                                     const LogOptions&,
                                                     LogCallbacks callbacks) {
  auto it = pods_.find(ref.pod_uid);
  std::string text;
  Status status = Status::Ok();
  if (it == pods_.end()) {
    status = Status(Code::kNotFound, StrCat("no log of container ", Quote(ref.name)));
  } else if (auto log = it->second.spec.annotations.find("swell.dev/log");
             log != it->second.spec.annotations.end()) {
    text = log->second + "\n";
  }
  executor_.Post([callbacks = std::move(callbacks), text = std::move(text), status] {
    if (!text.empty()) callbacks.on_chunk(api::MakeChunk(text));
    callbacks.on_end(status);
  });
  return std::make_unique<NoStream>();
}

size_t SimulatedRuntime::running() const {
  size_t count = 0;
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) count += container.running ? 1 : 0;
  }
  return count;
}

std::vector<const ContainerSpec*> SimulatedRuntime::RunningForTest() const {
  std::vector<const ContainerSpec*> all;
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod.containers) {
      if (container.running) all.push_back(&container.spec);
    }
  }
  return all;
}

const ContainerSpec* SimulatedRuntime::SpecOfForTest(const std::string& pod_uid,
                                                     const std::string& name) const {
  auto it = pods_.find(pod_uid);
  if (it == pods_.end()) return nullptr;
  auto container = it->second.containers.find(name);
  return container == it->second.containers.end() ? nullptr : &container->second.spec;
}

const SandboxSpec* SimulatedRuntime::SandboxOfForTest(const std::string& pod_uid) const {
  auto it = pods_.find(pod_uid);
  return it == pods_.end() ? nullptr : &it->second.spec;
}

std::string SimulatedRuntime::NoticeOfForTest(const std::string& pod_uid) const {
  auto it = pods_.find(pod_uid);
  return it == pods_.end() ? "" : it->second.notice;
}

void SimulatedRuntime::ExitForTest(const std::string& pod_uid,
                                   const std::string& name,
                                   int code,
                                   bool oom) {
  auto it = pods_.find(pod_uid);
  if (it == pods_.end() || !it->second.containers.contains(name)) return;
  End(it->second.containers.at(name).spec.ref, code, 0, oom);
}

void SimulatedRuntime::ReportForTest(const std::string& pod_uid, const std::string& report_json) {
  auto it = pods_.find(pod_uid);
  if (it == pods_.end()) return;
  if (auto observer = it->second.observer.lock()) observer->OnReport(report_json);
}

void SimulatedRuntime::SetHealthForTest(const std::string& pod_uid, bool healthy) {
  auto it = pods_.find(pod_uid);
  if (it != pods_.end()) it->second.healthy = healthy;
}

}  // namespace swell::node
