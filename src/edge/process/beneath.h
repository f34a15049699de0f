// Paths that must stay below a directory into which others may have put links: what a volume's
// subPath names.
//
// Thread-safety: pure functions over the file system. Needs Linux 5.6.
#pragma once

#include <string>

#include "base/result.h"

namespace swell::edge {

// A file descriptor, closed with its owner.
class PathFd {
 public:
  explicit PathFd(int fd) : fd_(fd) {}
  PathFd(PathFd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  PathFd& operator=(PathFd&&) = delete;
  ~PathFd();

  int get() const { return fd_; }
  // By which others in this process reach the very file, whatever becomes of its name.
  std::string Path() const;

 private:
  int fd_;
};

// Opens dir/relative (O_PATH), following links only as long as they stay in `dir`; what is missing
// becomes directories. kInvalid when the path leads out of it.
Result<PathFd> OpenBeneath(const std::string& dir, const std::string& relative);

}  // namespace swell::edge
