#include "kube/process/process_runtime.h"

#include <unistd.h>

#include <map>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/images/http.h"
#include "kube/process/streams/log_reader.h"

namespace swell::edge {
namespace {

using node::ContainerExit;
using node::ContainerRef;

// Six characters that stand for the data directory in names of interfaces and groups.
std::string TagOf(const std::string& data_dir) {
  static constexpr char kDigits[] = "0123456789abcdef";
  uint64_t hash = StableHash(data_dir);
  std::string tag;
  for (int i = 0; i < 6; ++i) tag += kDigits[(hash >> (4 * i)) & 15];
  return tag;
}

Result<std::string> RealPath(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return ErrnoStatus(errno, "data directory " + path);
  std::string out = real;
  ::free(real);
  return out;
}

// No registry has an image of a misspelt name. The name that was meant comes first, since what a
// registry says is long.
Status WithNearest(const ImageCatalogue& catalogue, const std::string& image, const Status& why) {
  const std::string nearest = catalogue.Nearest(image);
  if (nearest.empty()) return why;
  return Status(why.code(), StrCat("did you mean ", nearest,
                                   ", which programs of this machine serve? ", why.message()));
}

// What a name that the catalogue does not serve comes to where it cannot be had: a stand-in where
// no registry can be found.
Result<node::ImageReady> WithoutImage(const ImageCatalogue& catalogue,
                                      const std::string& image,
                                      const Status& why) {
  if (images::IsUnknownHost(why) && catalogue.StandInFor(image).ok()) {
    return node::ImageReady{.own_programs = true, .instead = why.message()};
  }
  return WithNearest(catalogue, image, why);
}

Result<node::ImageReady> ToReady(const Result<images::EnsuredImage>& image) {
  if (!image.ok()) return image.status();
  return node::ImageReady{.handle = image->manifest,
                          .id = image->id,
                          .pulled = image->pulled,
                          .own_programs = image->manifest.empty(),
                          .took = image->took,
                          .waited = image->waited,
                          .size_bytes = image->size_bytes};
}

}  // namespace

namespace {

// `swell status` is another process.
Status WriteLimits(const std::string& path, const HostSupport& support) {
  json::Array limits;
  for (const std::string& limit : support.missing) limits.push_back(json::Value(limit));
  return WriteFileAtomically(path, json::Print(json::Value(std::move(limits))));
}

}  // namespace

// What callbacks find on the core thread, as long as the runtime is there.
struct ProcessRuntime::Core {
  std::map<std::string, std::weak_ptr<node::PodObserver>> observers;  // by pod uid
};

ProcessRuntime::ProcessRuntime(Executor& core)
    : core_(core),
      shared_(std::make_shared<Core>()),
      reactor_(std::make_unique<net::Reactor>()),
      host_(std::make_shared<std::unique_ptr<ProcessHost>>()) {}

Result<std::unique_ptr<ProcessRuntime>> ProcessRuntime::Create(Executor& core,
                                                               ProcessOptions options) {
  SWELL_RETURN_IF_ERROR(MakeDirs(options.data_dir));
  SWELL_ASSIGN_OR_RETURN(options.data_dir, RealPath(options.data_dir));
  if (options.image_store.empty()) options.image_store = options.data_dir + "/images";
  if (options.shim_command.empty()) {
    return Status(Code::kInvalid, "shim_command: must name the program that is the pod shim");
  }
  std::unique_ptr<ProcessRuntime> runtime(new ProcessRuntime(core));
  std::string tag = TagOf(options.data_dir);
  const std::string limits_file = options.data_dir + "/" + std::string(kLimitsFile);
  HostSupport support = DetectHostSupport(options.data_dir, "swell-" + tag, options.host);
  SWELL_ASSIGN_OR_RETURN(ImageCatalogue catalogue,
                         ImageCatalogue::Load({.config_dir = options.config_dir,
                                               .tools_dir = options.data_dir + "/catalogue",
                                               .sdk_dir = options.sdk_dir}));
  std::weak_ptr<Core> weak = runtime->shared_;
  ProcessHost::Events events;
  // Calls the pod's observer on the core thread, if there still is one.
  auto tell = [&core, weak](const std::string& uid, std::function<void(node::PodObserver&)> what) {
    core.Post([weak, uid, what = std::move(what)] {
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
  runtime->catalogue_ = std::make_unique<ImageCatalogue>(catalogue);
  images::ImageService::Options images{
      .store_dir = options.image_store,
      .registries_file = StrCat(options.config_dir.empty() ? options.data_dir : options.config_dir,
                                "/registries.yaml")};
  auto host = std::make_unique<ProcessHost>(core, *runtime->reactor_, std::move(options),
                                            std::move(support), std::move(catalogue), tag,
                                            std::move(events));
  SWELL_RETURN_IF_ERROR(host->Start());
  runtime->support_ = host->support();
  if (runtime->support_.isolation != Isolation::kNone) {
    runtime->images_ = std::make_unique<images::ImageService>(std::move(images));
  }
  runtime->gateway_ = host->gateway();
  SWELL_RETURN_IF_ERROR(WriteLimits(limits_file, runtime->support_));
  *runtime->host_ = std::move(host);
  runtime->thread_ = std::thread([reactor = runtime->reactor_.get()] { reactor->Run(); });
  return runtime;
}

ProcessRuntime::~ProcessRuntime() {
  shared_.reset();
  images_.reset();
  if (!thread_.joinable()) return;
  reactor_->Post([reactor = reactor_.get(), host = host_] {
    host->reset();
    reactor->Stop();
  });
  thread_.join();
}

void ProcessRuntime::OnIo(std::function<void(ProcessHost&)> fn) {
  reactor_->Post([host = host_, fn = std::move(fn)] {
    if (*host) fn(**host);
  });
}

node::RuntimeInfo ProcessRuntime::Info() const {
  return {"process", "0.1.0", support_.isolation != Isolation::kNone, support_.Limits()};
}

void ProcessRuntime::Shutdown(std::function<void()> done) {
  OnIo([core = &core_, done = std::move(done)](ProcessHost& host) {
    host.Shutdown([core, done] { core->Post(done); });
  });
}

void ProcessRuntime::List(const std::string& node,
                          std::function<void(Result<std::vector<node::FoundPod>>)> done) {
  OnIo([core = &core_, node, done = std::move(done)](ProcessHost& host) {
    core->Post([done, found = host.List(node)] { done(found); });
  });
}

void ProcessRuntime::Adopt(const node::FoundPod& pod, std::weak_ptr<node::PodObserver> observer) {
  shared_->observers[pod.pod_uid] = std::move(observer);
  OnIo([pod](ProcessHost& host) { host.Adopt(pod); });
}

void ProcessRuntime::CreateSandbox(const node::SandboxSpec& spec,
                                   std::weak_ptr<node::PodObserver> observer,
                                   std::function<void(Result<node::SandboxInfo>)> done) {
  shared_->observers[spec.pod_uid] = std::move(observer);
  OnIo([core = &core_, spec, done = std::move(done)](ProcessHost& host) {
    host.CreateSandbox(spec, [core, done](const Result<node::SandboxInfo>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void ProcessRuntime::EnsureImage(const node::ImageRequest& request,
                                 std::function<void()> on_pull,
                                 std::function<void(Result<node::ImageReady>)> done) {
  images::EnsureRequest wanted{.image = request.image,
                               .in_catalogue = catalogue_->Find(request.image).ok()};
  if (request.policy == node::ImageRequest::Policy::kAlways) {
    wanted.policy = images::PullPolicy::kAlways;
  } else if (request.policy == node::ImageRequest::Policy::kNever) {
    wanted.policy = images::PullPolicy::kNever;
  }
  Status usable;
  if (!images_ && !wanted.in_catalogue) {
    usable = Status(Code::kUnavailable, StrCat("this machine can run names of the catalogue "
                                               "(swell images list) only, no images: ",
                                               support_.Limits()));
  }
  for (const std::string& text : request.docker_configs) {
    auto credentials = images::ParseDockerConfig(text);
    if (!credentials.ok()) {
      usable =
          Status(Code::kBadRequest, StrCat("imagePullSecrets: ", credentials.status().message()));
      break;
    }
    wanted.credentials.insert(wanted.credentials.end(), credentials->begin(), credentials->end());
  }
  // Asked where the image cannot be had; null: it serves the image itself.
  const ImageCatalogue* others = wanted.in_catalogue ? nullptr : catalogue_.get();
  if (!usable.ok() || !images_) {
    if (!usable.ok() && others != nullptr) usable = WithNearest(*others, request.image, usable);
    return core_.Post([usable, done = std::move(done)] {
      usable.ok() ? done(node::ImageReady{.own_programs = true}) : done(usable);
    });
  }
  std::weak_ptr<Core> weak = shared_;
  images_->Ensure(std::move(wanted),
                  {.on_pull =
                       [core = &core_, weak, on_pull = std::move(on_pull)] {
                         core->Post([weak, on_pull] {
                           if (!weak.expired()) on_pull();
                         });
                       },
                   .done =
                       [core = &core_, weak, others, name = request.image,
                        done = std::move(done)](Result<images::EnsuredImage> image) {
                         core->Post([weak, others, name, done, image = std::move(image)] {
                           if (weak.expired()) return;
                           if (image.ok() || others == nullptr) return done(ToReady(image));
                           done(WithoutImage(*others, name, image.status()));
                         });
                       }});
}

void ProcessRuntime::StartContainer(const node::ContainerSpec& spec,
                                    std::function<void(Result<node::ContainerStarted>)> done) {
  OnIo([core = &core_, spec, done = std::move(done)](ProcessHost& host) {
    host.StartContainer(spec, [core, done](const Result<node::ContainerStarted>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void ProcessRuntime::Signal(const ContainerRef& container, int signal) {
  OnIo([container, signal](ProcessHost& host) { host.Signal(container, signal); });
}

void ProcessRuntime::Resize(const ContainerRef& container,
                            const node::CpuAndMemory& amounts,
                            std::function<void(const Status&)> done) {
  OnIo([core = &core_, container, amounts, done = std::move(done)](ProcessHost& host) {
    core->Post([done, status = host.Resize(container, amounts)] { done(status); });
  });
}

void ProcessRuntime::Stop(const std::string& pod_uid) {
  OnIo([pod_uid](ProcessHost& host) { host.Stop(pod_uid); });
}

void ProcessRuntime::Remove(const std::string& pod_uid, std::function<void(const Status&)> done) {
  OnIo([core = &core_, weak = std::weak_ptr<Core>(shared_), pod_uid,
        done = std::move(done)](ProcessHost& host) {
    host.Remove(pod_uid, [core, weak, pod_uid, done](const Status& status) {
      core->Post([weak, pod_uid, done, status] {
        if (auto shared = weak.lock()) shared->observers.erase(pod_uid);
        done(status);
      });
    });
  });
}

void ProcessRuntime::Exec(const ContainerRef& container,
                          const node::ExecSpec& spec,
                          std::function<void(Result<node::ExecResult>)> done) {
  OnIo([core = &core_, container, spec, done = std::move(done)](ProcessHost& host) {
    host.Exec(container, spec, [core, done](const Result<node::ExecResult>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void ProcessRuntime::Probe(const std::string& pod_uid,
                           const node::ProbeSpec& spec,
                           std::function<void(node::ProbeResult)> done) {
  OnIo([core = &core_, pod_uid, spec, done = std::move(done)](ProcessHost& host) {
    host.Probe(pod_uid, spec, [core, done](const node::ProbeResult& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

void ProcessRuntime::Usage(const std::string& node,
                           std::function<void(std::vector<node::ContainerUsage>)> done) {
  OnIo([core = &core_, node, done = std::move(done)](ProcessHost& host) {
    core->Post([done, usage = host.Usage(node)] { done(usage); });
  });
}

void ProcessRuntime::MeasureDisk(const std::string& pod_uid,
                                 std::function<void(node::DiskUse)> done) {
  OnIo([core = &core_, pod_uid, done = std::move(done)](ProcessHost& host) {
    host.MeasureDisk(pod_uid, [core, done](node::DiskUse use) {
      core->Post([done, use = std::move(use)] { done(use); });
    });
  });
}

void ProcessRuntime::UpdateHosts(const std::string& pod_uid,
                                 const std::vector<node::HostsEntry>& hosts) {
  OnIo([pod_uid, hosts](ProcessHost& host) { host.UpdateHosts(pod_uid, hosts); });
}

node::RouteServices ProcessRuntime::Router() {
  if (!support_.network) return nullptr;
  return [this](std::vector<node::ServiceRoute> routes, node::OnRouted done) {
    OnIo([core = &core_, routes = std::move(routes), done = std::move(done)](ProcessHost& host) {
      auto faults = host.RouteServices(routes);
      core->Post([done, faults = std::move(faults)] { done(faults); });
    });
  };
}

node::EnforceRules ProcessRuntime::Enforcer() {
  if (!support_.network) return nullptr;
  return [this](node::SharedRules rules, std::function<void(Status)> done) {
    OnIo([core = &core_, rules = std::move(rules), done = std::move(done)](ProcessHost& host) {
      host.EnforceRules(rules, [core, done](const Status& status) {
        core->Post([done, status] { done(status); });
      });
    });
  };
}

void ProcessRuntime::UpdateVolume(const std::string& pod_uid, const node::VolumeSpec& volume) {
  OnIo([pod_uid, volume](ProcessHost& host) { host.UpdateVolume(pod_uid, volume); });
}

void ProcessRuntime::WriteNotice(const std::string& pod_uid, const std::string& notice_json) {
  OnIo([pod_uid, notice_json](ProcessHost& host) { host.WriteNotice(pod_uid, notice_json); });
}

// ---- live streams ----

// The core's half of a command or an attached container.
class ProcessRuntime::Stdio final : public node::StdioSession {
 public:
  // Outlives the session: the exit may come before anybody asks for it.
  struct Exit {
    std::optional<Result<int>> code;
    std::function<void(Result<int>)> done;
  };
  Stdio(ExecSessions::Opened opened,
        std::shared_ptr<Exit> exit,
        std::function<void(std::function<void(ProcessHost&)>)> on_io)
      : opened_(std::move(opened)), exit_(std::move(exit)), on_io_(std::move(on_io)) {}
  ~Stdio() override {
    exit_->done = nullptr;
    on_io_([session = opened_.session](ProcessHost&) { ExecSessions::HangUp(*session); });
  }

  const api::DuplexPtr& io() override { return opened_.io; }
  const api::DuplexPtr& error() override { return opened_.error; }
  void Resize(node::TerminalSize size) override {
    on_io_(
        [session = opened_.session, size](ProcessHost&) { ExecSessions::Resize(*session, size); });
  }
  void OnExit(std::function<void(Result<int>)> done) override {
    if (exit_->code) return done(*exit_->code);
    exit_->done = std::move(done);
  }

 private:
  ExecSessions::Opened opened_;
  std::shared_ptr<Exit> exit_;
  std::function<void(std::function<void(ProcessHost&)>)> on_io_;
};

void ProcessRuntime::OpenStdio(const ContainerRef& container,
                               const node::StdioSpec& spec,
                               node::StdioCallback done) {
  auto exit = std::make_shared<Stdio::Exit>();
  auto exited = [core = &core_, exit](const Result<int>& code) {
    core->Post([exit, code] {
      exit->code = code;
      if (auto told = std::exchange(exit->done, nullptr)) told(code);
    });
  };
  auto on_io = [this, alive = std::weak_ptr<Core>(shared_)](std::function<void(ProcessHost&)> fn) {
    if (!alive.expired()) OnIo(std::move(fn));
  };
  auto opened = [core = &core_, exit, on_io,
                 done = std::move(done)](Result<ExecSessions::Opened> result) {
    core->Post([exit, on_io, done, result = std::move(result)] {
      if (!result.ok()) return done(result.status());
      std::shared_ptr<node::StdioSession> session = std::make_shared<Stdio>(*result, exit, on_io);
      done(std::move(session));
    });
  };
  OnIo([container, spec, opened, exited](ProcessHost& host) {
    host.OpenStdio(container, spec, opened, exited);
  });
}

void ProcessRuntime::Dial(const std::string& pod_uid,
                          uint16_t port,
                          std::function<void(Result<api::DuplexPtr>)> done) {
  OnIo([core = &core_, pod_uid, port, done = std::move(done)](ProcessHost& host) {
    host.Dial(pod_uid, port, [core, done](const Result<api::DuplexPtr>& result) {
      core->Post([done, result] { done(result); });
    });
  });
}

// ---- logs ----

// One log being read. Lives on the I/O thread; each piece waits until the core has taken the one
// before, so a slow receiver costs one piece of memory.
class ProcessRuntime::LogJob : public std::enable_shared_from_this<LogJob> {
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

  void Start(ProcessHost& host, const node::LogOptions& options) {
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
    if (reader_->finished() || !follow_ || !running) End(Status::Ok());
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

class ProcessRuntime::LogHandle final : public node::LogStream {
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

std::unique_ptr<node::LogStream> ProcessRuntime::ReadLog(const ContainerRef& container,
                                                         const node::LogOptions& options,
                                                         node::LogCallbacks callbacks) {
  auto handle = std::make_unique<LogHandle>();
  handle->callbacks = std::make_shared<node::LogCallbacks>(std::move(callbacks));
  handle->job = std::make_shared<LogJob>(*reactor_, core_, shared_, handle->callbacks, container,
                                         options.follow);
  handle->alive = shared_;
  handle->reactor = reactor_.get();
  OnIo([job = handle->job, options](ProcessHost& host) { job->Start(host, options); });
  return handle;
}

void ProcessRuntime::KeptJobs(std::function<void(std::vector<std::string>)> done) {
  OnIo([core = &core_, done = std::move(done)](ProcessHost& host) {
    core->Post([done, jobs = host.kept_logs().Jobs()] { done(jobs); });
  });
}

void ProcessRuntime::ForgetJob(const std::string& job_uid) {
  OnIo([job_uid](ProcessHost& host) { host.kept_logs().Forget(job_uid); });
}

}  // namespace swell::edge
