#include "kube/cri/cri_runtime.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/cri/engine_stdio.h"
#include "kube/images/reference.h"
#include "kube/process/files/data_dir.h"

namespace swell::cri {
namespace {

constexpr Duration kStartLimit = std::chrono::seconds(15);
constexpr Duration kCallLimit = std::chrono::minutes(2);
// The interface does not report the progress of a pull. The engine itself gives up one that stalls.
constexpr Duration kPullLimit = std::chrono::hours(2);

Result<Engine> AskEngine(GrpcClient& client) {
  auto ask = [&client](std::string_view method, const Message& message) {
    return client.CallAndWait({.method = StrCat("runtime.v1.RuntimeService/", method),
                               .message = message.bytes(),
                               .deadline = kStartLimit});
  };
  Engine engine;
  SWELL_ASSIGN_OR_RETURN(const std::string version, ask("Version", {}));
  engine.version = ReadVersion(version);
  SWELL_ASSIGN_OR_RETURN(const std::string status, ask("Status", Message().Bool(1, true)));
  engine.status = ReadStatus(status, engine.version);
  return engine;
}

}  // namespace

Result<std::unique_ptr<CriRuntime>> CriRuntime::Create(net::Reactor& core, CriOptions options) {
  if (::geteuid() != 0) {
    return Status(Code::kForbidden, "--runtime cri: run as root, which mounts the pods' volumes");
  }
  SWELL_ASSIGN_OR_RETURN(options.data_dir, process::PrepareDataDir(options.data_dir));
  options.instance = process::TagOf(options.data_dir);
  std::unique_ptr<CriRuntime> runtime(new CriRuntime(core));
  SWELL_ASSIGN_OR_RETURN(runtime->client_, GrpcClient::Create(options.socket));
  const std::string what = StrCat("--runtime cri=", options.socket);
  auto engine = AskEngine(*runtime->client_);
  if (!engine.ok()) return engine.status().WithContext(what);
  if (!engine->status.not_ready.empty()) {
    return Status(Code::kUnavailable,
                  StrCat(what, ": ", engine->version.name, " ", engine->version.version,
                         " is not ready: ", engine->status.not_ready));
  }
  const std::string data_dir = options.data_dir;
  runtime->info_ = {
      .name = engine->version.name, .version = engine->version.version, .has_handlers = true};
  auto host =
      std::make_unique<CriHost>(core, *runtime->reactor_, std::move(options), *runtime->client_,
                                std::move(*engine), runtime->MakeEvents());
  if (const Status started = host->Start(); !started.ok()) return started.WithContext(what);
  runtime->info_.limits = Join(host->missing(), "; ");
  runtime->gateway_ = host->gateway();
  SWELL_RETURN_IF_ERROR(process::WriteLimits(data_dir, host->missing()));
  runtime->engine_host_ = host.get();
  runtime->Run(std::move(host));
  return runtime;
}

CriRuntime::~CriRuntime() {
  EndHost();
  client_.reset();  // its thread posts to the reactor
}

// ---- images ----

void CriRuntime::CallImages(std::string_view method,
                            const Message& message,
                            Duration deadline,
                            std::function<void(Result<std::string>)> done) {
  client_->CallOn(core_,
                  {.method = StrCat("runtime.v1.ImageService/", method),
                   .message = message.bytes(),
                   .deadline = deadline},
                  [weak = alive(), done = std::move(done)](const Result<std::string>& answer) {
                    if (!weak.expired()) done(answer);
                  });
}

// An image that a container waits for.
struct CriRuntime::Pull {
  std::string image;
  bool always = false;
  bool never = false;
  std::vector<images::Credential> credentials;  // still to try, the last one first
  bool anonymous = true;                        // still to try without credentials
  bool pulled = false;
  SteadyTime began;
  Duration took{0};
  Status failed;
  std::function<void()> on_pull;
  std::function<void(Result<node::ImageReady>)> done;
};

void CriRuntime::EnsureImage(const node::ImageRequest& request,
                             std::function<void()> on_pull,
                             std::function<void(Result<node::ImageReady>)> done) {
  auto pull = std::make_shared<Pull>();
  pull->always = request.policy == node::ImageRequest::Policy::kAlways;
  pull->never = request.policy == node::ImageRequest::Policy::kNever;
  pull->on_pull = std::move(on_pull);
  pull->done = std::move(done);
  auto fail = [&](Status why) {
    core_.Post([done = pull->done, why = std::move(why)] { done(why); });
  };
  const auto reference = images::ParseReference(request.image);
  if (!reference.ok()) return fail(Status(Code::kInvalid, reference.status().message()));
  pull->image = request.image;
  std::vector<images::Credential> all;
  for (const std::string& text : request.docker_configs) {
    auto credentials = images::ParseDockerConfig(text);
    if (!credentials.ok()) {
      return fail(
          Status(Code::kBadRequest, StrCat("imagePullSecrets: ", credentials.status().message())));
    }
    all.insert(all.end(), credentials->begin(), credentials->end());
  }
  const std::vector<images::Credential> matching = images::MatchCredentials(all, *reference);
  pull->credentials.assign(matching.rbegin(), matching.rend());
  if (!pull->always) return AskForImage(pull);
  PullNext(pull);
}

void CriRuntime::AskForImage(const std::shared_ptr<Pull>& pull) {
  CallImages("ImageStatus", Message().Add(1, Message().Text(1, pull->image)), kCallLimit,
             [this, pull](const Result<std::string>& answer) {
               if (!answer.ok()) return pull->done(answer.status());
               const std::optional<ImageInfo> image = ReadImage(*answer);
               if (image) {
                 return pull->done(
                     node::ImageReady{.handle = image->id,
                                      .id = image->digest.empty() ? image->id : image->digest,
                                      .pulled = pull->pulled,
                                      .took = pull->took,
                                      .waited = pull->took,
                                      .size_bytes = image->size_bytes});
               }
               if (pull->never) {
                 return pull->done(Status(Code::kMethodNotAllowed,
                                          StrCat("image ", Quote(pull->image),
                                                 " is not present with pull policy of Never")));
               }
               if (pull->pulled) {
                 return pull->done(Status(Code::kInternal,
                                          "the engine has pulled the image, but does not have it"));
               }
               PullNext(pull);
             });
}

void CriRuntime::PullNext(const std::shared_ptr<Pull>& pull) {
  std::optional<images::Credential> credential;
  if (!pull->credentials.empty()) {
    credential = std::move(pull->credentials.back());
    pull->credentials.pop_back();
  } else if (std::exchange(pull->anonymous, false)) {
    pull->credentials.clear();
  } else {
    return pull->done(pull->failed);
  }
  if (auto began = std::exchange(pull->on_pull, nullptr)) {
    pull->began = RealClock().Steady();
    began();
  }
  CallImages("PullImage", PullRequest(pull->image, credential), kPullLimit,
             [this, pull](const Result<std::string>& answer) {
               if (!answer.ok()) {
                 // The first refusal is reported. Later ones, with credentials that fit less well,
                 // say less.
                 if (pull->failed.ok()) {
                   pull->failed = answer.status().code() == Code::kNotFound
                                      ? Status(Code::kUnavailable, answer.status().message())
                                      : answer.status();
                 }
                 return PullNext(pull);
               }
               pull->pulled = true;
               pull->took = RealClock().Steady() - pull->began;
               AskForImage(pull);
             });
}

// ---- commands with live streams ----

void CriRuntime::OpenStdio(const node::ContainerRef& container,
                           const node::StdioSpec& spec,
                           node::StdioCallback done) {
  auto opened = [core = &core_reactor_, weak = alive(), spec,
                 done = std::move(done)](const Result<std::string>& url) {
    core->Post([core, weak, spec, done, url] {
      if (weak.expired()) return;
      if (!url.ok()) return done(url.status());
      OpenEngineStdio(*core, *url, spec, done);
    });
  };
  OnHost([host = engine_host_, container, spec, opened](process::ContainerHost&) {
    host->OpenStream(container, spec, opened);
  });
}

}  // namespace swell::cri
