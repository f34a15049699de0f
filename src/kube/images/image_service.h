// ImageService: answers what image a name means on this machine, and pulls what is missing.
//
// A name is looked for in the store, then in the caller's catalogue, then at its registry. An image
// of a private registry is not given to everybody just because it is here: the request must have a
// credential that pulled it before, or credentials that the registry accepts now.
//
// A pull is done when its files can be read. Writing them to the disk takes longer, and goes on
// after it.
//
// - Threads: any. Callbacks run on the service's threads: one looks things up, a few pull. One more
//   waits for the disk after pulls, and removes what nobody needs when the disk fills, as pods fill
//   it, too.
// - Ownership: destroying it stops the pulls and drops the callbacks that wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "kube/images/cancellation.h"
#include "kube/images/credentials.h"
#include "kube/images/pull.h"
#include "kube/images/registry.h"
#include "kube/images/store.h"

namespace swell::images {

enum class PullPolicy { kIfNotPresent, kAlways, kNever };

struct EnsureRequest {
  std::string image;
  PullPolicy policy = PullPolicy::kIfNotPresent;
  std::vector<Credential> credentials;
  bool in_catalogue = false;  // the caller can serve the name if the store cannot
};

struct EnsuredImage {
  std::string manifest;  // of the store; empty: the caller's catalogue serves it
  std::string id;        // HOST/PATH@DIGEST
  bool pulled = false;
  std::chrono::milliseconds took{0};    // of the pull
  std::chrono::milliseconds waited{0};  // the same, with the time in the queue
  int64_t size_bytes = 0;
};

// The codes of failures:
//   kInvalid            the name is not an image name
//   kMethodNotAllowed   it is not here, and must not be pulled
//   others              the pull failed
struct EnsureCallbacks {
  std::function<void()> on_pull;  // at most once, before the pull begins
  std::function<void(Result<EnsuredImage>)> done;
};

class ImageService {
 public:
  struct Options {
    std::string store_dir;
    std::string registries_file;
    size_t pulls_at_once = 3;
    RegistryOptions registry;
    ImageStore::GcPolicy garbage;
    std::chrono::milliseconds tidy_interval = std::chrono::minutes(5);
  };

  explicit ImageService(Options options);
  ~ImageService();

  const ImageStore& store() const { return store_; }
  void Ensure(EnsureRequest request, EnsureCallbacks callbacks);

 private:
  struct Job {
    EnsureRequest request;
    EnsureCallbacks callbacks;
    std::chrono::steady_clock::time_point since;
  };
  struct Queue {
    std::deque<Job> jobs;
    CondVar changed;
  };

  void LookUpForever();
  void PullForever();
  bool Next(Queue& queue, Job& job);
  // Takes the job, unless the queue is full.
  bool Push(Queue& queue, Job& job);
  // The answer, or nothing when the image must be pulled.
  std::optional<Result<EnsuredImage>> LookUp(const Job& job);
  Result<EnsuredImage> Pull(const Job& job);
  void ScanPreload();
  void TidyForever();
  void Tidy();
  void Settle();

  const Options options_;
  const ImageStore store_;
  Cancellation cancel_;
  Status prepared_;
  int64_t preload_state_ = 0;  // the look-up thread's: times of its files
  Mutex mutex_;
  bool ending_ SWELL_GUARDED_BY(mutex_) = false;
  // An image was pulled that may not be on the disk. At the start: perhaps by an earlier process.
  bool unsettled_ SWELL_GUARDED_BY(mutex_) = true;
  CondVar ending_changed_;
  Queue look_ups_ SWELL_GUARDED_BY(mutex_);
  Queue pulls_ SWELL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

// Pulls a name from its registry into the store, as `swell images pull` and the service do. It is
// on the disk after store.Settle().
Result<StoredImage> PullByName(const ImageStore& store,
                               const Reference& name,
                               const RegistriesConfig& registries,
                               const std::vector<Credential>& credentials,
                               const RegistryOptions& options,
                               PullProgress& progress,
                               const Cancellation& cancel);

// Imports an image from a file or directory; without a name, under the one that the file has.
Result<StoredImage> ImportImage(const ImageStore& store,
                                const std::string& source,
                                const std::string& name,
                                PullProgress& progress,
                                const Cancellation& cancel);

// Imports what lies in the store's preload/ and is not in the store yet. One line for each that
// cannot be.
std::vector<std::string> ImportPreloaded(const ImageStore& store, const Cancellation& cancel);

}  // namespace swell::images
