#include "kube/images/packed_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace swell::images {
namespace {

Result<UniqueFd> OpenBlob(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  return fd;
}

}  // namespace

Result<std::unique_ptr<FileInput>> FileInput::Open(const std::string& path) {
  SWELL_ASSIGN_OR_RETURN(UniqueFd fd, OpenBlob(path));
  return std::make_unique<FileInput>(std::move(fd));
}

Result<size_t> FileInput::Read(char* to, size_t size) {
  while (true) {
    const ssize_t n = ::read(fd_.get(), to, size);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return ErrnoStatus(errno, "read a layer");
  }
}

Result<std::unique_ptr<GrowingFile>> GrowingFile::Open(const std::string& path) {
  auto out = std::make_unique<GrowingFile>();
  SWELL_ASSIGN_OR_RETURN(out->fd_, OpenBlob(path));
  return out;
}

void GrowingFile::Grew(int64_t size) {
  MutexLock lock(mutex_);
  restarted_ = restarted_ || size < size_;
  size_ = size;
  changed_.NotifyAll();
}

void GrowingFile::End(bool whole) {
  MutexLock lock(mutex_);
  ended_ = true;
  whole_ = whole;
  changed_.NotifyAll();
}

bool GrowingFile::restarted() const {
  MutexLock lock(mutex_);
  return restarted_;
}

Result<size_t> GrowingFile::Read(char* to, size_t size) {
  int64_t there = 0;
  {
    MutexLock lock(mutex_);
    while (size_ <= at_ && !ended_ && !restarted_) changed_.Wait(mutex_);
    if (restarted_) return Status(Code::kUnavailable, "the registry sends the layer anew");
    if (ended_ && !whole_) return Status(Code::kUnavailable, "the layer did not come whole");
    there = size_;
  }
  if (there <= at_) return size_t{0};
  const size_t wanted = static_cast<size_t>(std::min<int64_t>(there - at_, size));
  while (true) {
    const ssize_t n = ::pread(fd_.get(), to, wanted, at_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read a layer");
    if (n == 0) return Status(Code::kUnavailable, "the layer's file was shortened");
    at_ += n;
    return static_cast<size_t>(n);
  }
}

}  // namespace swell::images
