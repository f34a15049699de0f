#include "base/unique_fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace swell {

void UniqueFd::Reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  const int error = errno;
  ::close(old);
  errno = error;
}

Result<PipeEnds> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  return PipeEnds{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<std::pair<UniqueFd, UniqueFd>> MakeSocketPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "socketpair");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

}  // namespace swell
