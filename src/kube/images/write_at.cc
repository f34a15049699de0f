#include "kube/images/write_at.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace swell::images {
namespace {

// Smaller pieces do not make up for the call.
constexpr size_t kReserveBytesMin = 128 << 10;
// For a write the kernel looks for memory that is in one piece as large (Linux 6.18). On a machine
// that has run for a while there is little of it, and looking costs several times what writing
// does.
constexpr size_t kWriteBytesMax = 64 << 10;

}  // namespace

bool WriteAt(int fd, std::string_view bytes, int64_t offset) {
  // ext4 accounts for each block of a write unless the range has its blocks: without this, writing
  // takes half as long again. No more than what is written now is reserved: the sizes that archives
  // and manifests tell may be lies, and a sparse file keeps its holes. File systems that cannot
  // reserve, and errors, are the write's to tell.
  if (bytes.size() >= kReserveBytesMin) {
    [[maybe_unused]] const int reserved = ::fallocate(
        fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes.size()));
  }
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kWriteBytesMax);
    const ssize_t n = ::pwrite(fd, bytes.data(), size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return true;
}

}  // namespace swell::images
