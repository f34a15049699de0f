#include "kube/process/files/disk_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace swell::process {
namespace {

constexpr int kDepthMax = 200;     // each level holds a file descriptor
constexpr size_t kLaterMax = 256;  // and so does each directory that is deeper
constexpr int64_t kEntriesMax = 5'000'000;
constexpr int64_t kBlockBytes = 512;  // of st_blocks, whatever the file system's are

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

class Walk {
 public:
  int64_t bytes() const { return bytes_; }

  void All(UniqueFd top) {
    struct stat info;
    if (!top.valid() || ::fstat(top.get(), &info) != 0) return;
    device_ = info.st_dev;
    later_.push_back(std::move(top));
    while (!later_.empty()) {
      UniqueFd next = std::move(later_.back());
      later_.pop_back();
      Enter(std::move(next), 0);
    }
  }

 private:
  void Enter(UniqueFd dir, int depth) {
    struct stat info;
    if (!dir.valid() || ::fstat(dir.get(), &info) != 0 || info.st_dev != device_) return;
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

  void Add(int dir, const char* name, int depth) {
    struct stat info;
    if (::fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    const bool counted =
        !S_ISDIR(info.st_mode) && info.st_nlink > 1 && !several_names_.insert(info.st_ino).second;
    if (!counted) bytes_ += info.st_blocks * kBlockBytes;
    if (!S_ISDIR(info.st_mode)) return;
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    UniqueFd below(::openat(dir, name, kFlags));
    if (depth + 1 < kDepthMax) return Enter(std::move(below), depth + 1);
    if (later_.size() < kLaterMax) later_.push_back(std::move(below));
  }

  int64_t bytes_ = 0;
  int64_t entries_ = 0;
  dev_t device_ = 0;
  std::set<ino_t> several_names_;
  std::vector<UniqueFd> later_;
};

}  // namespace

int64_t BytesOnDisk(const std::string& dir) {
  Walk walk;
  walk.All(UniqueFd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  return walk.bytes();
}

}  // namespace swell::process
