#include "kube/process/files/disk_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <set>
#include <string_view>

#include "base/unique_fd.h"

namespace swell::edge {
namespace {

constexpr int kDepthMax = 200;  // each level holds a file descriptor
constexpr int64_t kEntriesMax = 5'000'000;
constexpr int64_t kBlockBytes = 512;  // of st_blocks, whatever the file system's are

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

class Walk {
 public:
  int64_t bytes() const { return bytes_; }

  void Enter(UniqueFd dir, int depth) {
    struct stat info;
    if (!dir.valid() || ::fstat(dir.get(), &info) != 0) return;
    if (depth == 0) device_ = info.st_dev;
    if (info.st_dev != device_) return;
    const std::unique_ptr<DIR, CloseDir> list(::fdopendir(dir.get()));
    if (list == nullptr) return;
    const int fd = dir.Release();  // the list's now
    while (const dirent* entry = ::readdir(list.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ > kEntriesMax) return;
      Add(fd, entry->d_name, depth);
    }
  }

 private:
  void Add(int dir, const char* name, int depth) {
    struct stat info;
    if (::fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    const bool counted =
        !S_ISDIR(info.st_mode) && info.st_nlink > 1 && !several_names_.insert(info.st_ino).second;
    if (!counted) bytes_ += info.st_blocks * kBlockBytes;
    if (!S_ISDIR(info.st_mode) || depth + 1 >= kDepthMax) return;
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    Enter(UniqueFd(::openat(dir, name, kFlags)), depth + 1);
  }

  int64_t bytes_ = 0;
  int64_t entries_ = 0;
  dev_t device_ = 0;
  std::set<ino_t> several_names_;
};

}  // namespace

int64_t BytesOnDisk(const std::string& dir) {
  Walk walk;
  walk.Enter(UniqueFd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), 0);
  return walk.bytes();
}

}  // namespace swell::edge
