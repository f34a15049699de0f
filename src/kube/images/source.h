// ImageSource: where an image comes from: a registry, a directory in OCI's layout.
//
// - Threads: Fetch from several threads at once; the rest from one.
// - Ownership: made for one image.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kube/images/cancellation.h"
#include "kube/images/manifest.h"
#include "kube/images/store.h"
#include "kube/net/tls/sha256.h"

namespace swell::images {

// A blob that arrives in pieces, maybe over several connections and processes.
class PartFile {
 public:
  // Reads what is there. `arrived`, if not null, counts bytes as they come.
  static Result<PartFile> Open(const std::string& path, std::atomic<int64_t>* arrived);

  // The bytes that have arrived. The last of them may not be in the file before Flush().
  int64_t size() const { return size_; }
  // Runs with the size of the file whenever it changes, on the thread that appends.
  void OnWritten(std::function<void(int64_t)> on_written) { on_written_ = std::move(on_written); }
  Status Append(std::string_view bytes);
  // Writes what is not in the file yet. Without it, the next pull fetches that again.
  Status Flush();
  // Throws away what is there.
  Status Restart();
  // After Flush(): whether the file is the whole blob.
  Status Verify(const Descriptor& blob);
  // Removes the file: its bytes are of no use to the next pull.
  void Remove();

 private:
  Status Write(std::string_view bytes);

  std::string path_;
  UniqueFd fd_;
  int64_t size_ = 0;
  int64_t written_ = 0;       // of size_; hash_ has seen these
  int64_t room_checked_ = 0;  // the disk has room for the bytes up to here
  // The bytes between the two: libcurl gives 16 KiB at a time, and fewer, larger writes cost less.
  std::string pending_;
  net::Sha256 hash_;
  std::string digest_;  // of hash_, which can be asked once only
  std::atomic<int64_t>* arrived_ = nullptr;
  std::function<void(int64_t)> on_written_;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // The bytes of the manifest or index that the name stands for.
  virtual Result<std::string> Top() = 0;
  virtual Result<std::string> ManifestOf(const Descriptor& item) = 0;
  // Adds to `part` what it lacks of the blob; the caller verifies it. kInvalid: what came is not
  // the blob's.
  virtual Status Fetch(const Descriptor& blob, PartFile& part) = 0;
};

// An image in a file or directory of this machine.
struct OpenedFile {
  std::unique_ptr<ImageSource> source;
  std::string name;  // as the file has it; may be empty
  // Removed with its content when the import is over.
  std::shared_ptr<void> temporary;
};
// oci:DIR[:TAG], docker-archive:FILE, or a path of either; what must be unpacked is in the store's
// tmp/ meanwhile.
Result<OpenedFile> OpenImageFile(const std::string& source,
                                 const ImageStore& store,
                                 const Cancellation& cancel);

}  // namespace swell::images
