#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/strings.h"

namespace swell {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write " + path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

}  // namespace

Status ErrnoStatus(int error, std::string_view what) {
  Code code = Code::kInternal;
  if (error == ENOSPC || error == EDQUOT) code = Code::kNoSpace;
  if (error == ENOENT || error == ENOTDIR) code = Code::kNotFound;
  if (error == EACCES || error == EPERM) code = Code::kForbidden;
  return Status(code, StrCat(what, ": ", std::strerror(error)));
}

Result<std::string> ReadFile(const std::string& path, size_t limit_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "open " + path);
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
    Fd fd(::open(tmp.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
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
  Fd dir_fd(::open(dir.empty() ? "." : dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
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
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
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
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return ErrnoStatus(error.value(), "remove " + path);
  return Status::Ok();
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
