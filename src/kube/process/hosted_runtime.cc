#include "kube/process/hosted_runtime.h"

#include <map>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/process/streams/log_reader.h"

namespace swell::process {

using node::ContainerExit;
using node::ContainerRef;

// What callbacks find on the core thread, as long as the runtime is there.
struct HostedRuntime::Core {
  std::map<std::string, std::weak_ptr<node::PodObserver>> observers;  // by pod uid
};

HostedRuntime::HostedRuntime(Executor& core)
    : core_(core),
      reactor_(std::make_unique<net::Reactor>()),
      shared_(std::make_shared<Core>()),
      host_(std::make_shared<std::unique_ptr<ContainerHost>>()) {}

HostedRuntime::~HostedRuntime() { EndHost(); }

ContainerHost::Events HostedRuntime::MakeEvents() {
  std::weak_ptr<Core> weak = shared_;
  ContainerHost::Events events;
  // Calls the pod's observer on the core thread, if there still is one.
  auto tell = [core = &core_, weak](const std::string& uid,
                                    std::function<void(node::PodObserver&)> what) {
    core->Post([weak, uid, what = std::move(what)] {
      auto shared = weak.lock();
      if (!shared) return;
      auto it = shared->observers.find(uid);
      if (it == shared->observers.end()) return;
      if (auto observer = it->second.lock()) what(*observer);
    });
  };
  events.on_exit = [tell](const ContainerRef& ref, const ContainerExit& exit) {
    tell(ref.pod_uid, [ref, exit](node::PodObserver& pod) { pod.OnContainerExit(ref, exit); });
  };
  events.on_report = [tell](const std::string& uid, const std::string& report) {
    tell(uid, [report](node::PodObserver& pod) { pod.OnReport(report); });
  };
  events.on_progress = [tell](const std::string& uid, const node::ProgressRecords& records) {
    tell(uid, [records](node::PodObserver& pod) { pod.OnProgress(records); });
  };
  return events;
}

void HostedRuntime::Run(std::unique_ptr<ContainerHost> host) {
  *host_ = std::move(host);
  thread_ = std::thread([reactor = reactor_.get()] { reactor->Run(); });
}

void HostedRuntime::EndHost() {
  shared_.reset();
  if (!thread_.joinable()) return;
  reactor_->Post([reactor = reactor_.get(), host = host_] {
    host->reset();
    reactor->Stop();
  });
  thread_.join();
}

void HostedRuntime::OnHost(std::function<void(ContainerHost&)> fn) {
  reactor_->Post([host = host_, fn = std::move(fn)] {
    if (*host) fn(**host);
  });
}

std::weak_ptr<void> HostedRuntime::alive() const { return shared_; }

Status WriteLimits(const std::string& data_dir, const std::vector<std::string>& missing) {
  json::Array limits;
  for (const std::string& limit : missing) limits.push_back(json::Value(limit));
  return WriteFileAtomically(StrCat(data_dir, "/", kLimitsFile),
                             json::Print(json::Value(std::move(limits))));
}

void HostedRuntime::Shutdown(std::function<void()> done) {
  OnHost([core = &core_, done = std::move(done)](ContainerHost& host) {
    host.Shutdown([core, done] { core->Post(done); });
  });
}

void HostedRuntime::List(const std::string& node,
                         std::function<void(Result<std::vector<node::FoundPod>>)> done) {
  OnHost([core = &core_, node, done = std::move(done)](ContainerHost& host) {
    core->Post([done, found = host.List(node)] { done(found); });
  });
}

void HostedRuntime::Adopt(const node::FoundPod& pod, std::weak_ptr<node::PodObserver> observer) {
  shared_->observers[pod.pod_uid] = std::move(observer);
  OnHost([pod](ContainerHost& host) { host.Adopt(pod); });
}

void HostedRuntime::CreateSandbox(const node::SandboxSpec& spec,
                                  std::weak_ptr<node::PodObserver> observer,
                                  std::function<void(Result<node::SandboxInfo>)> done) {
  shared_->observers[spec.pod_uid] = std::move(observer);
  OnHost([core = &core_, spec, done = std::move(done)](ContainerHost& host) {
    host.CreateSandbox(spec, [core, done](const Result<node::SandboxInfo>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void HostedRuntime::StartContainer(const node::ContainerSpec& spec,
                                   std::function<void(Result<node::ContainerStarted>)> done) {
  OnHost([core = &core_, spec, done = std::move(done)](ContainerHost& host) {
    host.StartContainer(spec, [core, done](const Result<node::ContainerStarted>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void HostedRuntime::Signal(const ContainerRef& container, int signal) {
  OnHost([container, signal](ContainerHost& host) { host.Signal(container, signal); });
}

void HostedRuntime::Resize(const ContainerRef& container,
                           const node::CpuAndMemory& amounts,
                           std::function<void(const Status&)> done) {
  OnHost([core = &core_, container, amounts, done = std::move(done)](ContainerHost& host) {
    host.Resize(container, amounts, [core, done](const Status& status) {
      core->Post([done, status] { done(status); });
    });
  });
}

void HostedRuntime::Stop(const std::string& pod_uid,
                         std::function<void(const Status&)> on_delay,
                         std::function<void(const Status&)> done) {
  OnHost([core = &core_, pod_uid, on_delay = std::move(on_delay),
          done = std::move(done)](ContainerHost& host) {
    host.Persist(
        pod_uid,
        [core, on_delay](const Status& why) { core->Post([on_delay, why] { on_delay(why); }); },
        [core, pod_uid, done, &host](const Status& status) {
          // What is in memory goes with the pod's other scratch space.
          host.Stop(pod_uid);
          core->Post([done, status] { done(status); });
        });
  });
}

void HostedRuntime::Remove(const std::string& pod_uid, std::function<void(const Status&)> done) {
  OnHost([core = &core_, weak = std::weak_ptr<Core>(shared_), pod_uid,
          done = std::move(done)](ContainerHost& host) {
    host.Remove(pod_uid, [core, weak, pod_uid, done](const Status& status) {
      core->Post([weak, pod_uid, done, status] {
        if (auto shared = weak.lock()) shared->observers.erase(pod_uid);
        done(status);
      });
    });
  });
}

void HostedRuntime::Exec(const ContainerRef& container,
                         const node::ExecSpec& spec,
                         std::function<void(Result<node::ExecResult>)> done) {
  OnHost([core = &core_, container, spec, done = std::move(done)](ContainerHost& host) {
    host.Exec(container, spec, [core, done](const Result<node::ExecResult>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void HostedRuntime::Probe(const std::string& pod_uid,
                          const node::ProbeSpec& spec,
                          std::function<void(node::ProbeResult)> done) {
  OnHost([core = &core_, pod_uid, spec, done = std::move(done)](ContainerHost& host) {
    host.Probe(pod_uid, spec, [core, done](const node::ProbeResult& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void HostedRuntime::Usage(const std::string& node,
                          std::function<void(std::vector<node::ContainerUsage>)> done) {
  OnHost([core = &core_, node, done = std::move(done)](ContainerHost& host) {
    core->Post([done, usage = host.Usage(node)] { done(usage); });
  });
}

void HostedRuntime::MeasureDisk(const std::string& pod_uid,
                                std::function<void(node::DiskUse)> done) {
  OnHost([core = &core_, pod_uid, done = std::move(done)](ContainerHost& host) {
    host.MeasureDisk(pod_uid, [core, done](node::DiskUse use) {
      core->Post([done, use = std::move(use)] { done(use); });
    });
  });
}

void HostedRuntime::UpdateHosts(const std::string& pod_uid,
                                const std::vector<node::HostsEntry>& hosts) {
  OnHost([pod_uid, hosts](ContainerHost& host) { host.UpdateHosts(pod_uid, hosts); });
}

node::RouteServices HostedRuntime::Router() {
  return [this](std::vector<node::ServiceRoute> routes, node::OnRouted done) {
    OnHost(
        [core = &core_, routes = std::move(routes), done = std::move(done)](ContainerHost& host) {
          auto faults = host.RouteServices(routes);
          core->Post([done, faults = std::move(faults)] { done(faults); });
        });
  };
}

void HostedRuntime::UpdateVolume(const std::string& pod_uid, const node::VolumeSpec& volume) {
  OnHost([pod_uid, volume](ContainerHost& host) { host.UpdateVolume(pod_uid, volume); });
}

void HostedRuntime::WriteNotice(const std::string& pod_uid, const std::string& notice_json) {
  OnHost([pod_uid, notice_json](ContainerHost& host) { host.WriteNotice(pod_uid, notice_json); });
}

void HostedRuntime::Dial(const std::string& pod_uid,
                         uint16_t port,
                         std::function<void(Result<api::DuplexPtr>)> done) {
  OnHost([core = &core_, pod_uid, port, done = std::move(done)](ContainerHost& host) {
    host.Dial(pod_uid, port, [core, done](const Result<api::DuplexPtr>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

// ---- logs ----

// One log being read. Lives on the I/O thread; each piece waits until the core has taken the one
// before, so a slow receiver costs one piece of memory.
class HostedRuntime::LogJob : public std::enable_shared_from_this<LogJob> {
 public:
  LogJob(net::Reactor& reactor,
         Executor& core,
         std::weak_ptr<Core> runtime,
         std::weak_ptr<node::LogCallbacks> callbacks,
         ContainerRef ref,
         bool follow)
      : reactor_(reactor),
        core_(core),
        runtime_(std::move(runtime)),
        callbacks_(std::move(callbacks)),
        ref_(std::move(ref)),
        follow_(follow) {}

  void Start(ContainerHost& host, const node::LogOptions& options) {
    auto path = host.LogPath(ref_, options.kept_of);
    if (!path.ok()) return End(path.status());
    // Before the first read, so that nothing written in between is missed.
    if (follow_) {
      size_t slash = path->rfind('/');
      auto watch =
          host.files()->Add(path->substr(0, slash), [weak = weak_from_this()](const std::string&) {
            if (auto self = weak.lock()) self->Wake();
          });
      if (watch.ok()) watch_ = std::move(*watch);
      running_ = host.IsRunning(ref_);
      if (running_) {
        host.WhenEnded(ref_, [weak = weak_from_this()] {
          auto self = weak.lock();
          if (!self) return;
          self->running_ = false;
          self->Wake();
        });
      }
    }
    auto reader = LogReader::Open(*path, options);
    if (!reader.ok()) return End(reader.status());
    reader_ = std::make_unique<LogReader>(std::move(*reader));
    if (follow_) {
      Deliver("");  // tells the receiver that the log is open
    } else {
      Wake();
    }
  }

  void Cancel() {
    cancelled_ = true;
    watch_.reset();
    reader_.reset();
  }

 private:
  void Wake() {
    if (cancelled_ || in_flight_ || !reader_) return;
    // Asked before reading: what ended meanwhile has written everything before.
    bool running = running_;
    std::string piece = reader_->Read();
    if (!piece.empty()) return Deliver(std::move(piece));
    if (reader_->skipped()) return WakeAgain();
    if (reader_->finished() || !follow_ || !running) End(Status::Ok());
  }

  // After whatever else waits for this thread.
  void WakeAgain() {
    in_flight_ = true;
    reactor_.Post([self = shared_from_this()] {
      self->in_flight_ = false;
      self->Wake();
    });
  }

  void Deliver(std::string piece) {
    in_flight_ = true;
    core_.Post([self = shared_from_this(), chunk = api::MakeChunk(std::move(piece))] {
      auto callbacks = self->callbacks_.lock();
      bool wanted = callbacks && callbacks->on_chunk(chunk);
      if (self->runtime_.expired()) return;  // and the reactor with it
      self->reactor_.Post([self, wanted] {
        self->in_flight_ = false;
        if (!wanted) return self->Cancel();
        self->Wake();
      });
    });
  }

  void End(const Status& status) {
    Cancel();
    core_.Post([weak = callbacks_, status] {
      if (auto callbacks = weak.lock()) callbacks->on_end(status);
    });
  }

  net::Reactor& reactor_;
  Executor& core_;
  std::weak_ptr<Core> runtime_;
  std::weak_ptr<node::LogCallbacks> callbacks_;
  ContainerRef ref_;
  bool follow_;
  bool running_ = false;
  bool in_flight_ = false;
  bool cancelled_ = false;
  std::unique_ptr<LogReader> reader_;
  std::shared_ptr<void> watch_;
};

class HostedRuntime::LogHandle final : public node::LogStream {
 public:
  std::shared_ptr<node::LogCallbacks> callbacks;
  std::shared_ptr<LogJob> job;
  std::weak_ptr<Core> alive;
  net::Reactor* reactor = nullptr;
  ~LogHandle() override {
    // With the runtime gone the job is gone too.
    if (alive.expired()) return;
    reactor->Post([job = job] { job->Cancel(); });
  }
};

std::unique_ptr<node::LogStream> HostedRuntime::ReadLog(const ContainerRef& container,
                                                        const node::LogOptions& options,
                                                        node::LogCallbacks callbacks) {
  auto handle = std::make_unique<LogHandle>();
  handle->callbacks = std::make_shared<node::LogCallbacks>(std::move(callbacks));
  handle->job = std::make_shared<LogJob>(*reactor_, core_, shared_, handle->callbacks, container,
                                         options.follow);
  handle->alive = shared_;
  handle->reactor = reactor_.get();
  OnHost([job = handle->job, options](ContainerHost& host) { job->Start(host, options); });
  return handle;
}

void HostedRuntime::KeptJobs(std::function<void(std::vector<std::string>)> done) {
  OnHost([core = &core_, done = std::move(done)](ContainerHost& host) {
    core->Post([done, jobs = host.kept_logs().Jobs()] { done(jobs); });
  });
}

void HostedRuntime::ForgetJob(const std::string& job_uid) {
  OnHost([job_uid](ContainerHost& host) { host.kept_logs().Forget(job_uid); });
}

}  // namespace swell::process
