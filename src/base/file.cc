#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/strings.h"

namespace swell {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// What unlink says of a directory: Linux the one, POSIX the other.
bool MayBeDirectory(int error) { return error == EISDIR || error == EPERM; }

// `refused`: why it could not be removed as a file. That is the reason if it is not a directory.
int OpenRefused(int at, const char* name, int refused, int& error) {
  if (!MayBeDirectory(refused)) {
    error = refused;
    return -1;
  }
  const int dir = ::openat(at, name, kDirectory);
  if (dir < 0) error = errno == ENOTDIR || errno == ELOOP ? refused : errno;
  return dir;
}

// Removes what is in a directory. Each level on the way down holds a descriptor, and how deep it
// goes may be a stranger's choice: what lies deeper than kLevelsMax is moved to the top first.
class TreeRemover {
 public:
  explicit TreeRemover(int top) : top_(top) {}

  // 0, or what went wrong first.
  int Empty() {
    int error = 0;
    do {
      moved_ = false;
      error = EmptyLevel(::openat(top_, ".", kDirectory), 1);
    } while (error == 0 && moved_);
    return error;
  }

 private:
  static constexpr int kLevelsMax = 100;

  // Closes `dir`.
  int EmptyLevel(int dir, int level) {
    DIR* list = dir < 0 ? nullptr : ::fdopendir(dir);
    if (list == nullptr) {
      const int error = errno;
      if (dir >= 0) ::close(dir);
      return error;
    }
    int error = 0;
    errno = 0;
    while (const dirent* entry = ::readdir(list)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") error = Remove(dir, entry->d_name, level);
      if (error != 0) break;
      errno = 0;
    }
    if (error == 0) error = errno;  // of readdir
    ::closedir(list);
    return error;
  }

  int Remove(int dir, const char* name, int level) {
    if (::unlinkat(dir, name, 0) == 0 || errno == ENOENT) return 0;
    int error = 0;
    const int below = OpenRefused(dir, name, errno, error);
    if (below < 0) return error;
    if (level == kLevelsMax) {
      ::close(below);
      return MoveUp(dir, name);
    }
    error = EmptyLevel(below, level + 1);
    if (error != 0) return error;
    return ::unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
  }

  int MoveUp(int dir, const char* name) {
    // One that is there under the new name and is empty gives way, which is as good.
    do {
      const std::string at = StrCat(".removed-", next_++);
      if (::renameat(dir, name, top_, at.c_str()) == 0) {
        moved_ = true;
        return 0;
      }
    } while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
    return errno;
  }

  const int top_;
  uint64_t next_ = 0;
  bool moved_ = false;
};

// Refuses files that may have no end. Reads of a pipe wait for data again.
Status CheckEnds(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "open " + path);
  const auto refused = [&path](std::string_view what) {
    return Status(Code::kBadRequest, StrCat(path, " is a ", what, ", not a file"));
  };
  if (S_ISDIR(info.st_mode)) return refused("directory");
  // The null device is what people name for an empty file.
  const bool null = S_ISCHR(info.st_mode) && info.st_rdev == ::makedev(1, 3);
  if (!null && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))) return refused("device");
  if (!S_ISFIFO(info.st_mode)) return Status::Ok();
  // The pipe of a shell's <(command) has no name of its own: its other end is open already.
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return ErrnoStatus(errno, "open " + path);
  if (system.f_type != PIPEFS_MAGIC) return refused("named pipe");
  return ::fcntl(fd, F_SETFL, 0) == 0 ? Status::Ok() : ErrnoStatus(errno, "open " + path);
}

}  // namespace

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write " + path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

Status ErrnoStatus(int error, std::string_view what) {
  Code code = Code::kInternal;
  if (error == ENOSPC || error == EDQUOT) code = Code::kNoSpace;
  if (error == ENOENT || error == ENOTDIR) code = Code::kNotFound;
  if (error == EACCES || error == EPERM) code = Code::kForbidden;
  return Status(code, StrCat(what, ": ", std::strerror(error)));
}

Result<UniqueFd> OpenToRead(const std::string& path) {
  // Without O_NONBLOCK the open of a named pipe waits for a writer.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  SWELL_RETURN_IF_ERROR(CheckEnds(fd.get(), path));
  return fd;
}

Result<std::string> ReadFile(const std::string& path, size_t limit_bytes) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd fd, OpenToRead(path));
  std::string out;
  char buffer[65536];
  while (true) {
    ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read " + path);
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
    if (out.size() > limit_bytes) {
      return Status(Code::kTooLarge, StrCat(path, ": larger than ", limit_bytes, " bytes"));
    }
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view bytes, int mode) {
  std::string tmp = StrCat(path, ".tmp.", ::getpid());
  {
    UniqueFd fd(::open(tmp.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (fd.get() < 0) return ErrnoStatus(errno, "create " + tmp);
    Status written = WriteAll(fd.get(), bytes, tmp);
    if (written.ok() && ::fsync(fd.get()) != 0) written = ErrnoStatus(errno, "fsync " + tmp);
    if (!written.ok()) {
      ::unlink(tmp.c_str());
      return written;
    }
  }
  if (::rename(tmp.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, "rename to " + path);
  std::string dir = std::filesystem::path(path).parent_path().string();
  UniqueFd dir_fd(::open(dir.empty() ? "." : dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir_fd.get() < 0 || ::fsync(dir_fd.get()) != 0) return ErrnoStatus(errno, "fsync " + dir);
  return Status::Ok();
}

Status WriteThrough(const std::string& path, std::string_view bytes) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  if (error) return Status(Code::kInvalid, StrCat(path, ": ", error.message()));
  const std::filesystem::file_status what = std::filesystem::status(real, error);
  if (!std::filesystem::exists(what) || std::filesystem::is_regular_file(what)) {
    return WriteFileAtomically(real.string(), bytes);
  }
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "open " + path);
  return WriteAll(fd.get(), bytes, path);
}

Status MakeDirs(const std::string& path, int mode) {
  auto make = [mode](const std::string& dir) {
    return ::mkdir(dir.c_str(), static_cast<mode_t>(mode)) == 0 ? 0 : errno;
  };
  // Most often no more than the last step is missing.
  int error = make(path);
  if (error == 0) return Status::Ok();
  if (error != EEXIST && error != ENOENT) return ErrnoStatus(error, "mkdir " + path);
  for (size_t end = 0; error == ENOENT && end != std::string::npos;) {
    end = path.find('/', end + 1);
    std::string prefix = path.substr(0, end);
    int made = make(prefix);
    if (made != 0 && made != EEXIST) return ErrnoStatus(made, "mkdir " + prefix);
  }
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "stat " + path);
  if (!S_ISDIR(info.st_mode)) return ErrnoStatus(ENOTDIR, path);
  return Status::Ok();
}

Status RemoveTree(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return Status::Ok();
  int error = 0;
  const UniqueFd dir(OpenRefused(AT_FDCWD, path.c_str(), errno, error));
  if (dir.get() >= 0) error = TreeRemover(dir.get()).Empty();
  if (error == 0 && ::rmdir(path.c_str()) != 0 && errno != ENOENT) error = errno;
  return error == 0 ? Status::Ok() : ErrnoStatus(error, "remove " + path);
}

bool FileExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Result<std::vector<std::string>> ListDir(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return ErrnoStatus(errno, "open directory " + path);
  std::vector<std::string> names;
  while (dirent* entry = ::readdir(dir)) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace swell
