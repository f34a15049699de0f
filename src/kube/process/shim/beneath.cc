#include "kube/process/shim/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr mode_t kNewMode = 0755;

int OpenAt(int dir, const std::string& path, uint64_t resolve) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how));
}

int OpenIn(int dir, const std::string& relative) {
  return OpenAt(dir, relative.empty() ? "." : relative, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

}  // namespace

std::string DescriptorPath(const UniqueFd& file) { return StrCat("/proc/self/fd/", file.get()); }

Result<UniqueFd> OpenBeneath(const std::string& dir,
                             const std::string& relative,
                             MissingDirs missing,
                             int64_t owner) {
  const UniqueFd base(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (base.get() < 0) return ErrnoStatus(errno, "open " + dir);
  return OpenBeneath(base, relative, missing, owner);
}

Result<UniqueFd> OpenBeneath(const UniqueFd& base,
                             const std::string& relative,
                             MissingDirs missing,
                             int64_t owner) {
  auto failed = [&](int error) {
    // The errors of a link that leads out of the directory, and of a circle of links.
    if (error == EXDEV || error == ELOOP) {
      return Status(Code::kInvalid, StrCat("subPath ", Quote(relative), " leaves the volume"));
    }
    return ErrnoStatus(error, StrCat("subPath ", Quote(relative)));
  };
  if (const int fd = OpenIn(base.get(), relative); fd >= 0) return UniqueFd(fd);
  if (errno != ENOENT || missing == MissingDirs::kAreAnError) return failed(errno);
  const auto id = static_cast<uid_t>(owner);
  std::string so_far;
  for (std::string_view step : Split(relative, '/')) {
    if (step.empty() || step == ".") continue;
    UniqueFd parent(OpenIn(base.get(), so_far));
    if (parent.get() < 0) return failed(errno);
    // Does not follow what is there under that name already.
    const std::string name(step);
    if (::mkdirat(parent.get(), name.c_str(), kNewMode) != 0) {
      if (errno != EEXIST) return failed(errno);
    } else if (owner != 0 &&
               ::fchownat(parent.get(), name.c_str(), id, id, AT_SYMLINK_NOFOLLOW) != 0) {
      return failed(errno);
    }
    so_far += StrCat(so_far.empty() ? "" : "/", step);
  }
  const int fd = OpenIn(base.get(), so_far);
  if (fd < 0) return failed(errno);
  return UniqueFd(fd);
}

Result<UniqueFd> OpenInRoot(const std::string& root, const std::string& path) {
  const UniqueFd base(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (base.get() < 0) return ErrnoStatus(errno, "open " + root);
  UniqueFd opened(OpenAt(base.get(), path, RESOLVE_IN_ROOT));
  // Some sandboxes have no openat2. There, absolute links lead nowhere.
  if (opened.get() < 0 && errno == ENOSYS) {
    opened = UniqueFd(::open((root + path).c_str(), O_PATH | O_CLOEXEC));
  }
  if (opened.get() < 0) return ErrnoStatus(errno, path);
  return opened;
}

Result<std::string> ReadPlainFile(const std::string& dir, const std::string& name, size_t limit) {
  const std::string path = StrCat(dir, "/", name);
  const UniqueFd file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "open " + path);
  if (!S_ISREG(info.st_mode)) return Status(Code::kInvalid, StrCat(path, ": not a plain file"));
  return ReadFile(DescriptorPath(file), limit);
}

}  // namespace swell::process
