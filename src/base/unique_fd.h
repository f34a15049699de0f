// UniqueFd: owns a file descriptor and closes it.
// - Threads: a plain value.
#pragma once

#include <utility>

#include "base/result.h"

namespace swell {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(other.Release());
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // The caller closes it from here on.
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }
  // Closes the one that it has. Leaves errno as it was.
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct PipeEnds {
  UniqueFd read, write;
};

// Both are closed on exec.
Result<PipeEnds> MakePipe();
// A pair of connected stream sockets.
Result<std::pair<UniqueFd, UniqueFd>> MakeSocketPair();

}  // namespace swell
