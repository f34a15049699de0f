#include "kube/process/shim/mounts.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::process {

Status Mount(const std::string& source,
             const std::string& target,
             const char* type,
             unsigned long flags,
             const std::string& data) {
  if (::mount(source.c_str(), target.c_str(), type, flags, data.empty() ? nullptr : data.c_str()) ==
      0) {
    return Status::Ok();
  }
  return ErrnoStatus(
      errno, StrCat("mount ", type == nullptr ? "bind" : type, " ", source, " on ", target));
}

Status MakeReadOnly(const std::string& target) {
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, target.c_str(), AT_RECURSIVE, &attributes,
                sizeof attributes) == 0) {
    return Status::Ok();
  }
  return Mount("none", target, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY);
}

Status MountTmpfs(const std::string& target, const std::string& options, int64_t owner) {
  const std::string whose = owner == 0 ? "" : StrCat(",uid=", owner, ",gid=", owner);
  return Mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options + whose);
}

namespace {

// On a mount that translates owners nobody but those it knows can make files. Returns an errno.
template <class Make>
int MakeAs(int64_t owner, Make make) {
  if (make()) return 0;
  if (errno != EOVERFLOW) return errno;
  ::setfsgid(static_cast<gid_t>(owner));
  ::setfsuid(static_cast<uid_t>(owner));
  const int error = make() ? 0 : errno;
  ::setfsuid(0);
  ::setfsgid(0);
  return error;
}

}  // namespace

Status MakeOwnedDirs(const std::string& path, int64_t owner, int mode) {
  if (FileExists(path)) return Status::Ok();
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(path.substr(0, slash), owner));
  }
  const int error =
      MakeAs(owner, [&] { return ::mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0; });
  if (error != 0) return error == EEXIST ? Status::Ok() : ErrnoStatus(error, "make " + path);
  const auto id = static_cast<uid_t>(owner);
  if (owner != 0 && ::lchown(path.c_str(), id, id) != 0) return ErrnoStatus(errno, "give " + path);
  return Status::Ok();
}

Status MakeOwnedFile(const std::string& path, int64_t owner) {
  UniqueFd fd;
  const int error = MakeAs(owner, [&] {
    fd.Reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
    return fd.valid();
  });
  if (error != 0) return ErrnoStatus(error, "create " + path);
  const auto id = static_cast<uid_t>(owner);
  if (owner != 0 && ::fchown(fd.get(), id, id) != 0) return ErrnoStatus(errno, "give " + path);
  return Status::Ok();
}

bool IsUnder(std::string_view path, std::string_view dir) {
  return path == dir || (path.starts_with(dir) && path.size() > dir.size() &&
                         (dir == "/" || path[dir.size()] == '/'));
}

}  // namespace swell::process
