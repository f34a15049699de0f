#include "kube/process/process_runtime.h"

#include <optional>
#include <utility>

#include "base/strings.h"
#include "kube/images/http.h"
#include "kube/process/files/data_dir.h"

namespace swell::process {
namespace {

using node::ContainerExit;
using node::ContainerRef;

// No registry has an image of a misspelt name. The name that was meant comes first, since what a
// registry says is long.
Status WithNearest(const ImageCatalogue& catalogue, const std::string& image, const Status& why) {
  const std::string nearest = catalogue.Nearest(image);
  if (nearest.empty()) return why;
  return Status(
      why.code(),
      StrCat("did you mean ", nearest, ", which programs of this machine serve? ", why.message()),
      why.details());
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

ProcessRuntime::ProcessRuntime(Executor& core) : HostedRuntime(core) {}

Result<std::unique_ptr<ProcessRuntime>> ProcessRuntime::Create(Executor& core,
                                                               ProcessOptions options) {
  SWELL_ASSIGN_OR_RETURN(options.data_dir, PrepareDataDir(options.data_dir));
  if (options.image_store.empty()) options.image_store = options.data_dir + "/images";
  if (options.shim_command.empty()) {
    return Status(Code::kInvalid, "shim_command: must name the program that is the pod shim");
  }
  std::unique_ptr<ProcessRuntime> runtime(new ProcessRuntime(core));
  std::string tag = TagOf(options.data_dir);
  const std::string data_dir = options.data_dir;
  HostSupport support = DetectHostSupport(data_dir, "swell-" + tag, options.host);
  SWELL_ASSIGN_OR_RETURN(ImageCatalogue catalogue,
                         ImageCatalogue::Load({.config_dir = options.config_dir,
                                               .tools_dir = options.data_dir + "/catalogue",
                                               .sdk_dir = options.sdk_dir,
                                               .python = options.python}));
  runtime->catalogue_ = std::make_unique<ImageCatalogue>(catalogue);
  images::ImageService::Options images{
      .store_dir = options.image_store,
      .registries_file = StrCat(options.config_dir.empty() ? options.data_dir : options.config_dir,
                                "/registries.yaml")};
  auto host = std::make_unique<ProcessHost>(core, *runtime->reactor_, std::move(options),
                                            std::move(support), std::move(catalogue), tag,
                                            runtime->MakeEvents());
  SWELL_RETURN_IF_ERROR(host->Start());
  runtime->support_ = host->support();
  if (runtime->support_.isolation != Isolation::kNone) {
    runtime->images_ = std::make_unique<images::ImageService>(std::move(images));
  }
  runtime->gateway_ = host->gateway();
  SWELL_RETURN_IF_ERROR(WriteLimits(data_dir, runtime->support_.missing));
  runtime->processes_ = host.get();
  runtime->Run(std::move(host));
  return runtime;
}

ProcessRuntime::~ProcessRuntime() {
  images_.reset();
  EndHost();
}

void ProcessRuntime::OnProcesses(std::function<void(ProcessHost&)> fn) {
  OnHost([host = processes_, fn = std::move(fn)](ContainerHost&) { fn(*host); });
}

node::RuntimeInfo ProcessRuntime::Info() const {
  return {"process", "0.1.0", support_.isolation != Isolation::kNone, support_.Limits()};
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
  std::weak_ptr<void> weak = alive();
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

node::RouteServices ProcessRuntime::Router() {
  return support_.network ? HostedRuntime::Router() : nullptr;
}

node::EnforceRules ProcessRuntime::Enforcer() {
  if (!support_.network) return nullptr;
  return [this](node::SharedRules rules, std::function<void(Status)> done) {
    OnProcesses(
        [core = &core_, rules = std::move(rules), done = std::move(done)](ProcessHost& host) {
          host.EnforceRules(rules, [core, done](const Status& status) {
            core->Post([done, status] { done(status); });
          });
        });
  };
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
  auto on_io = [this, alive = alive()](std::function<void(ProcessHost&)> fn) {
    if (!alive.expired()) OnProcesses(std::move(fn));
  };
  auto opened = [core = &core_, exit, on_io,
                 done = std::move(done)](Result<ExecSessions::Opened> result) {
    core->Post([exit, on_io, done, result = std::move(result)] {
      if (!result.ok()) return done(result.status());
      std::shared_ptr<node::StdioSession> session = std::make_shared<Stdio>(*result, exit, on_io);
      done(std::move(session));
    });
  };
  OnProcesses([container, spec, opened, exited](ProcessHost& host) {
    host.OpenStdio(container, spec, opened, exited);
  });
}

}  // namespace swell::process
