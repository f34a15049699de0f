#include "kube/images/image_service.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/images/http.h"

namespace swell::images {
namespace {

using std::chrono::steady_clock;

constexpr size_t kWaitingMax = 2000;

std::chrono::milliseconds Since(steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
}

EnsuredImage Present(const StoredImage& image) {
  EnsuredImage out;
  out.manifest = image.manifest;
  const size_t at = std::min(image.name.find('@'), image.name.rfind(':'));
  out.id = StrCat(image.name.substr(0, at), "@", image.digest);
  out.size_bytes = image.size_bytes;
  return out;
}

// Whether everybody may have it, or one of these credentials pulled it.
bool MayUse(const StoredImage& image, const std::vector<Credential>& matching) {
  if (image.credentials.empty()) return true;
  return std::any_of(matching.begin(), matching.end(), [&](const Credential& one) {
    return std::find(image.credentials.begin(), image.credentials.end(), one.Fingerprint()) !=
           image.credentials.end();
  });
}

int64_t ModifiedAt(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_mtim.tv_sec : 0;
}

// What to do where no registry can be reached.
Status Advise(const Status& status, const Reference& name) {
  if (status.code() != Code::kUnavailable && status.code() != Code::kTimeout) return status;
  if (IsTlsFailure(status)) {
    return Status(status.code(),
                  StrCat("registry ", name.host, " cannot be used: ", status.message(),
                         ". If it speaks plain HTTP, an administrator must allow that (insecure: "
                         "true in registries.yaml)"),
                  status.details());
  }
  if (IsUntrusted(status)) {
    return Status(status.code(),
                  StrCat("registry ", name.host, " cannot be used: ", status.message(),
                         ". An administrator must name its authority (ca: FILE in "
                         "registries.yaml)"),
                  status.details());
  }
  return Status(status.code(),
                StrCat("registry ", name.host, " cannot be used: ", status.message(),
                       ". Without it, import the image (swell images import FILE --name ",
                       name.Name(), ") or use a name of the catalogue (swell images list)"),
                status.details());
}

// kInvalid says that the name is wrong. An image that its registry serves broken, and files of this
// machine that cannot be read, have good names.
Status NotTheName(const Status& status, const std::string& context) {
  if (status.code() != Code::kInvalid) return status;
  return Status(Code::kInternal, StrCat(context, ": ", status.message()));
}

}  // namespace

// ---- pulls and imports ----

Result<StoredImage> PullByName(const ImageStore& store,
                               const Reference& name,
                               const RegistriesConfig& registries,
                               const std::vector<Credential>& credentials,
                               const RegistryOptions& options,
                               PullProgress& progress,
                               const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd pulls, store.HoldPulls());
  Registry registry(name, registries.EndpointsOf(name.host), MatchCredentials(credentials, name),
                    options, cancel);
  auto pulled = PullImage(store, registry, progress, cancel);
  if (!pulled.ok()) {
    const std::string broken = StrCat("image ", name.Name(), " is broken at its registry");
    return Advise(NotTheName(pulled.status(), broken), name);
  }
  pulled->name = name.Name();
  pulled->pulled_s = UnixNow();
  pulled->boot = BootId();
  // A name must not be on the disk before its files, unless it names the machine's start (`boot`).
  if (pulled->boot.empty()) SWELL_RETURN_IF_ERROR(store.Flush());
  if (const std::string used = registry.credential(); !used.empty()) {
    // The credentials of earlier pulls stay good for the same content.
    auto earlier = store.Find(pulled->name);
    if (earlier.ok() && earlier->manifest == pulled->manifest) {
      pulled->credentials = earlier->credentials;
      if (pulled->credentials.empty() && !earlier->imported) {
        SWELL_RETURN_IF_ERROR(store.Put(*pulled));  // once given to everybody, it stays free
        return pulled;
      }
    }
    pulled->AddCredential(used);
  }
  SWELL_RETURN_IF_ERROR(store.Put(*pulled));
  return pulled;
}

Result<StoredImage> ImportImage(const ImageStore& store,
                                const std::string& source,
                                const std::string& name,
                                PullProgress& progress,
                                const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd pulls, store.HoldPulls());
  SWELL_ASSIGN_OR_RETURN(const OpenedFile file, OpenImageFile(source, store, cancel));
  const std::string wanted = name.empty() ? file.name : name;
  // Layouts often have a tag alone, which names no image.
  const bool tag_only = name.empty() && wanted.find_first_of("/:") == std::string::npos;
  if (wanted.empty() || tag_only) {
    return Status(Code::kInvalid, StrCat(source,
                                         " does not say what its image is called: add "
                                         "--name NAME"));
  }
  SWELL_ASSIGN_OR_RETURN(const Reference reference, ParseReference(wanted));
  if (!reference.digest.empty()) {
    return Status(Code::kInvalid, StrCat("image name ", Quote(wanted),
                                         ": an image is imported under a tag, not a digest"));
  }
  auto imported = PullImage(store, *file.source, progress, cancel);
  if (!imported.ok()) return imported.status().WithContext(source);
  imported->name = reference.Name();
  imported->imported = true;
  imported->pulled_s = UnixNow();
  SWELL_RETURN_IF_ERROR(store.Flush());
  SWELL_RETURN_IF_ERROR(store.Put(*imported));
  return imported;
}

std::vector<std::string> ImportPreloaded(const ImageStore& store, const Cancellation& cancel) {
  std::vector<std::string> problems;
  auto names = ListDir(store.PreloadDir());
  auto known = ReadFile(store.dir() + "/preloaded.json", 4 << 20);
  json::Object done;
  if (known.ok()) {
    auto value = json::Parse(*known);
    if (value.ok() && value->is_object()) done = value->get_object();
  }
  if (!names.ok()) return problems;
  json::Object now;
  for (const std::string& file : *names) {
    if (file.starts_with('.') || !cancel.Check().ok()) continue;
    const std::string path = StrCat(store.PreloadDir(), "/", file);
    // A file that was imported as it is now is not read again.
    const int64_t modified = ModifiedAt(path);
    const auto* earlier = done.if_contains(file);
    if (earlier == nullptr || !earlier->is_int64() || earlier->get_int64() != modified) {
      PullProgress progress;
      auto imported = ImportImage(store, path, "", progress, cancel);
      if (!imported.ok() && imported.status().code() == Code::kInvalid) {
        std::string name = file.substr(0, file.find(".tar"));
        if (ParseReference(name).ok()) imported = ImportImage(store, path, name, progress, cancel);
      }
      if (!imported.ok()) {
        problems.push_back(imported.status().message());
        continue;
      }
    }
    now[file] = modified;
  }
  if (now != done) {
    Status written = WriteFileAtomically(store.dir() + "/preloaded.json", json::Print(now));
    if (!written.ok()) problems.push_back(written.message());
  }
  return problems;
}

// ---- the service ----

ImageService::ImageService(Options options)
    : options_(std::move(options)), store_(options_.store_dir), prepared_(store_.Prepare()) {
  threads_.emplace_back([this] { LookUpForever(); });
  for (size_t i = 0; i < options_.pulls_at_once; ++i) {
    threads_.emplace_back([this] { PullForever(); });
  }
  if (prepared_.ok()) threads_.emplace_back([this] { TidyForever(); });
}

ImageService::~ImageService() {
  cancel_.Cancel();
  {
    MutexLock lock(mutex_);
    ending_ = true;
    look_ups_.changed.NotifyAll();
    pulls_.changed.NotifyAll();
    ending_changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ImageService::Ensure(EnsureRequest request, EnsureCallbacks callbacks) {
  Job job{std::move(request), std::move(callbacks), steady_clock::now()};
  if (Push(look_ups_, job)) return;
  job.callbacks.done(Status(Code::kTooManyRequests, "too many containers wait for their images"));
}

bool ImageService::Push(Queue& queue, Job& job) {
  MutexLock lock(mutex_);
  if (queue.jobs.size() >= kWaitingMax) return false;
  queue.jobs.push_back(std::move(job));
  queue.changed.NotifyOne();
  return true;
}

bool ImageService::Next(Queue& queue, Job& job) {
  MutexLock lock(mutex_);
  while (queue.jobs.empty() && !ending_) queue.changed.Wait(mutex_);
  if (ending_) return false;
  job = std::move(queue.jobs.front());
  queue.jobs.pop_front();
  return true;
}

void ImageService::ScanPreload() {
  int64_t state = ModifiedAt(store_.PreloadDir());
  auto names = ListDir(store_.PreloadDir());
  if (!names.ok()) return;
  for (const std::string& name : *names)
    state += ModifiedAt(StrCat(store_.PreloadDir(), "/", name));
  if (state == preload_state_) return;
  preload_state_ = state;
  for (const std::string& problem : ImportPreloaded(store_, cancel_)) {
    SWELL_LOG_WARNING("images", "file in preload/ not imported", {"error", problem});
  }
}

void ImageService::LookUpForever() {
  if (prepared_.ok()) {
    Tidy();  // what a crash left
    ScanPreload();
  }
  Job job;
  while (Next(look_ups_, job)) {
    std::optional<Result<EnsuredImage>> found = LookUp(job);
    if (found) {
      job.callbacks.done(std::move(*found));
    } else if (!Push(pulls_, job)) {
      job.callbacks.done(Status(Code::kTooManyRequests, "too many images wait to be pulled"));
    }
    job = Job();
  }
}

std::optional<Result<EnsuredImage>> ImageService::LookUp(const Job& job) {
  const EnsureRequest& request = job.request;
  auto in_catalogue = [] { return std::optional<Result<EnsuredImage>>(EnsuredImage()); };
  auto name = ParseReference(request.image);
  // The catalogue's patterns are wider than what registries take.
  if (!name.ok()) {
    if (request.in_catalogue) return in_catalogue();
    return std::optional<Result<EnsuredImage>>(name.status());
  }
  if (!prepared_.ok()) {
    if (request.in_catalogue) return in_catalogue();
    return std::optional<Result<EnsuredImage>>(prepared_);
  }
  auto image = store_.Find(name->Name());
  if (!image.ok() && image.status().code() == Code::kNotFound) {
    ScanPreload();
    image = store_.Find(name->Name());
  }
  if (!image.ok() && image.status().code() != Code::kNotFound) {
    const Status why = NotTheName(image.status(), StrCat("image ", name->Name(), " in the store"));
    return std::optional<Result<EnsuredImage>>(why);
  }
  if (!image.ok() && request.in_catalogue) return in_catalogue();
  const bool may_use = image.ok() && MayUse(*image, MatchCredentials(request.credentials, *name));
  const bool asks = request.policy == PullPolicy::kAlways && image.ok() && !image->imported;
  if (may_use && !asks) {
    store_.Touch(image->manifest);
    return std::optional<Result<EnsuredImage>>(Present(*image));
  }
  if (request.policy != PullPolicy::kNever) return std::nullopt;
  return std::optional<Result<EnsuredImage>>(
      Status(Code::kMethodNotAllowed,
             image.ok() ? StrCat("image ", Quote(request.image),
                                 " is here, but it is private and the pod has no credential that "
                                 "pulled it")
                        : StrCat("image ", Quote(request.image), " is not here")));
}

void ImageService::PullForever() {
  Job job;
  while (Next(pulls_, job)) {
    if (job.callbacks.on_pull) job.callbacks.on_pull();
    auto pulled = Pull(job);
    if (!cancel_.Check().ok()) return;
    job.callbacks.done(std::move(pulled));
    job = Job();
    Tidy();
    MutexLock lock(mutex_);
    unsettled_ = true;
    ending_changed_.NotifyAll();
  }
}

void ImageService::TidyForever() {
  while (true) {
    bool settle = false;
    {
      MutexLock lock(mutex_);
      const auto due = steady_clock::now() + options_.tidy_interval;
      while (!ending_ && !unsettled_ && steady_clock::now() < due) {
        ending_changed_.WaitFor(mutex_, due - steady_clock::now());
      }
      if (ending_) return;
      settle = std::exchange(unsettled_, false);
    }
    settle ? Settle() : Tidy();
  }
}

void ImageService::Settle() {
  Status settled = store_.Settle();
  if (settled.ok()) return;
  SWELL_LOG_WARNING("images", "pulled images are not on the disk", {"error", settled.message()});
}

void ImageService::Tidy() {
  Status swept = store_.Sweep();
  if (!swept.ok()) {
    SWELL_LOG_WARNING("images", "store not swept", {"error", swept.message()});
  }
  auto removed = store_.CollectGarbage(options_.garbage, UnixNow());
  if (!removed.ok()) {
    SWELL_LOG_WARNING("images", "old images not removed", {"error", removed.status().message()});
  } else if (!removed->empty()) {
    SWELL_LOG_INFO("images", "removed old images: the disk was nearly full",
                   {"images", Join(*removed, ", ")});
  }
}

Result<EnsuredImage> ImageService::Pull(const Job& job) {
  const auto begin = steady_clock::now();
  SWELL_ASSIGN_OR_RETURN(const Reference name, ParseReference(job.request.image));
  // Read anew, so that a change needs no restart.
  const auto registries = RegistriesConfig::Load(options_.registries_file);
  if (!registries.ok()) {
    return NotTheName(registries.status(), "an administrator must mend registries.yaml");
  }
  PullProgress progress;
  SWELL_ASSIGN_OR_RETURN(const StoredImage image,
                         PullByName(store_, name, *registries, job.request.credentials,
                                    options_.registry, progress, cancel_));
  EnsuredImage out = Present(image);
  out.pulled = true;
  out.took = Since(begin);
  out.waited = Since(job.since);
  return out;
}

}  // namespace swell::images
