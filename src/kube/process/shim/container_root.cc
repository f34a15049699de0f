#include "kube/process/shim/container_root.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/shim/beneath.h"
#include "kube/process/shim/image_root.h"

namespace swell::edge {
namespace {

constexpr std::string_view kOldRoot = "/.swell-old";
constexpr size_t kHostMountsMax = 64;
constexpr size_t kEntriesMax = 2000;

Status Mount(const std::string& source,
             const std::string& target,
             const char* type,
             unsigned long flags,
             const std::string& data = {}) {
  if (::mount(source.c_str(), target.c_str(), type, flags, data.empty() ? nullptr : data.c_str()) ==
      0) {
    return Status::Ok();
  }
  return ErrnoStatus(
      errno, StrCat("mount ", type == nullptr ? "bind" : type, " ", source, " on ", target));
}

// The whole tree read-only, keeping the flags that a user namespace may not clear.
Status MakeReadOnly(const std::string& target) {
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, target.c_str(), AT_RECURSIVE, &attributes,
                sizeof attributes) == 0) {
    return Status::Ok();
  }
  return Mount("none", target, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY);
}

bool IsDataFileSystem(std::string_view type) {
  static constexpr std::string_view kTypes[] = {
      "ext2", "ext3", "ext4", "xfs",   "btrfs", "zfs",    "f2fs",     "nfs",  "nfs4",    "lustre",
      "ceph", "9p",   "vfat", "exfat", "ntfs3", "beegfs", "virtiofs", "gpfs", "squashfs"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes) ||
         type.starts_with("fuse.");
}

bool Under(std::string_view path, std::string_view dir) {
  return path == dir || (path.starts_with(dir) && path.size() > dir.size() &&
                         (dir == "/" || path[dir.size()] == '/'));
}

// mountinfo writes blanks as \040.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Other file systems of the host that hold data: an overlay's lower layer does not reach into them.
std::vector<std::string> HostMounts(const std::string& mask_dir) {
  std::set<std::string> found;
  auto info = ReadFile("/proc/self/mountinfo", 4 << 20);
  if (!info.ok()) return {};
  for (std::string_view line : Split(*info, '\n')) {
    size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::vector<std::string_view> left = Split(line.substr(0, dash), ' ');
    std::vector<std::string_view> right = Split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.empty() || !IsDataFileSystem(right[0])) continue;
    std::string at = Unescape(left[4]);
    bool skip = at == "/" || (!mask_dir.empty() && Under(at, mask_dir));
    for (std::string_view dir : {"/proc", "/sys", "/dev", "/run", "/tmp"}) {
      skip = skip || Under(at, dir);
    }
    if (!skip && found.size() < kHostMountsMax) found.insert(std::move(at));
  }
  return {found.begin(), found.end()};
}

// Whether an overlay over / would show an empty directory in its place.
bool IsOwnFileSystem(const char* dir) {
  struct stat own, top;
  return ::stat(dir, &own) == 0 && ::stat("/", &top) == 0 && own.st_dev != top.st_dev;
}

Status MountOverlay(const std::string& root, const std::string& scratch) {
  std::string upper = scratch + "/upper", work = scratch + "/workdir";
  SWELL_RETURN_IF_ERROR(MakeDirs(upper));
  SWELL_RETURN_IF_ERROR(MakeDirs(work));
  std::string layers = StrCat("lowerdir=/,upperdir=", upper, ",workdir=", work);
  // The layer is thrown away with the container: nothing in it needs to reach the disk, and the
  // end of a container must not wait for everybody's dirty pages. Linux before 5.10 cannot.
  if (Mount("overlay", root, "overlay", 0, layers + ",volatile").ok()) return Status::Ok();
  return Mount("overlay", root, "overlay", 0, layers);
}

// Where no overlay can be mounted: a small root of its own in memory, into which the host's
// top-level directories are bound read-only.
Status MountAssembledRoot(const ShimSpec& spec, const std::string& root) {
  SWELL_RETURN_IF_ERROR(Mount("tmpfs", root, "tmpfs", 0, "mode=755"));
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir("/"));
  for (const std::string& name : names) {
    const std::string from = StrCat("/", name), to = StrCat(root, "/", name);
    struct stat info;
    if (::lstat(from.c_str(), &info) != 0) continue;
    if (S_ISLNK(info.st_mode)) {
      char target[4096];
      ssize_t n = ::readlink(from.c_str(), target, sizeof target - 1);
      if (n <= 0) continue;
      target[n] = '\0';
      if (::symlink(target, to.c_str()) != 0) return ErrnoStatus(errno, "symlink " + to);
    } else if (S_ISDIR(info.st_mode)) {
      SWELL_RETURN_IF_ERROR(MakeDirs(to));
      bool ours = name == "proc" || name == "sys" || name == "dev" || name == "run";
      if (ours || (name == "tmp" && !spec.host_tmp)) continue;
      // What we may not read is replaced by an empty directory that we may write: /root.
      if (::access(from.c_str(), R_OK | X_OK) != 0) continue;
      SWELL_RETURN_IF_ERROR(Mount(from, to, nullptr, MS_BIND | MS_REC));
      SWELL_RETURN_IF_ERROR(MakeReadOnly(to));
    }
  }
  return Status::Ok();
}

Status MountRoot(const ShimSpec& spec, const std::string& dir, const std::string& root) {
  SWELL_RETURN_IF_ERROR(MakeDirs(root));
  if (spec.has_image) return MountImageRoot(spec, dir, root);
  // A user namespace may not look below the mounts it was given, which an overlay over / would.
  if (spec.isolation == Isolation::kUser) return MountAssembledRoot(spec, root);
  Status overlay = MountOverlay(root, dir);
  if (!overlay.ok()) {
    // The data directory's file system may not serve as an upper layer; memory always does.
    std::string scratch = dir + "/scratch";
    SWELL_RETURN_IF_ERROR(MakeDirs(scratch));
    Status memory = Mount("tmpfs", scratch, "tmpfs", 0, "mode=755");
    if (memory.ok()) overlay = MountOverlay(root, scratch);
  }
  if (!overlay.ok()) return MountAssembledRoot(spec, root);
  if (spec.host_tmp && IsOwnFileSystem("/tmp")) {
    SWELL_RETURN_IF_ERROR(Mount("/tmp", root + "/tmp", nullptr, MS_BIND));
    SWELL_RETURN_IF_ERROR(MakeReadOnly(root + "/tmp"));
  }
  for (const std::string& at : HostMounts(spec.mask_dir)) {
    // Best effort: a mount point inside another mount is already there with its parent.
    Status bound = Mount(at, root + at, nullptr, MS_BIND | MS_REC);
    if (bound.ok()) SWELL_RETURN_IF_ERROR(MakeReadOnly(root + at));
  }
  return Status::Ok();
}

Status BindDevice(const std::string& name) {
  std::string from = StrCat(kOldRoot, "/dev/", name), to = "/dev/" + name;
  struct stat info;
  if (::stat(from.c_str(), &info) != 0) return Status::Ok();
  if (S_ISDIR(info.st_mode)) {
    SWELL_RETURN_IF_ERROR(MakeDirs(to));
  } else {
    int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return ErrnoStatus(errno, "create " + to);
    ::close(fd);
  }
  return Mount(from, to, nullptr, MS_BIND | MS_REC);
}

Status MountDev() {
  SWELL_RETURN_IF_ERROR(Mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=755,size=1m"));
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    SWELL_RETURN_IF_ERROR(BindDevice(name));
  }
  auto all = ListDir(StrCat(kOldRoot, "/dev"));
  if (all.ok()) {
    for (const std::string& name : *all) {
      bool device = name.starts_with("nvidia") || name == "fuse" || name == "infiniband";
      if (device) SWELL_RETURN_IF_ERROR(BindDevice(name));
    }
  }
  static constexpr const char* kLinks[][2] = {{"/proc/self/fd", "/dev/fd"},
                                              {"/proc/self/fd/0", "/dev/stdin"},
                                              {"/proc/self/fd/1", "/dev/stdout"},
                                              {"/proc/self/fd/2", "/dev/stderr"},
                                              {"pts/ptmx", "/dev/ptmx"}};
  for (const auto& link : kLinks) {
    if (::symlink(link[0], link[1]) != 0) return ErrnoStatus(errno, StrCat("symlink ", link[1]));
  }
  SWELL_RETURN_IF_ERROR(MakeDirs("/dev/pts"));
  SWELL_RETURN_IF_ERROR(MakeDirs("/dev/shm", 01777));
  // Without terminals everything but terminals works.
  Status pts = Mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                     "newinstance,ptmxmode=0666,mode=620");
  (void)pts;
  return Status::Ok();
}

Status MountSystem(const ShimSpec& spec, const std::string& dir) {
  Status proc = Mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  if (!proc.ok()) {
    SWELL_RETURN_IF_ERROR(Mount(StrCat(kOldRoot, "/proc"), "/proc", nullptr, MS_BIND | MS_REC));
  }
  SWELL_RETURN_IF_ERROR(Mount(StrCat(kOldRoot, "/sys"), "/sys", nullptr, MS_BIND | MS_REC));
  SWELL_RETURN_IF_ERROR(MountDev());
  if (spec.has_image) return Status::Ok();  // the rest keeps the host's own out of sight
  SWELL_RETURN_IF_ERROR(Mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m"));
  if (!spec.host_tmp) {
    std::string tmp = StrCat(kOldRoot, dir, "/tmp");
    SWELL_RETURN_IF_ERROR(MakeDirs(tmp));
    ::chmod(tmp.c_str(), 01777);
    SWELL_RETURN_IF_ERROR(Mount(tmp, "/tmp", nullptr, MS_BIND));
  }
  if (!spec.mask_dir.empty() && FileExists(spec.mask_dir)) {
    SWELL_RETURN_IF_ERROR(
        Mount("tmpfs", spec.mask_dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m"));
  }
  return Status::Ok();
}

// Mounts a tmpfs over the directory and binds the entries that the host has there into it:
// then something can be added to it.
Status CoverWithTmpfs(const std::string& dir) {
  std::string from = StrCat(kOldRoot, dir);
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(from));
  if (names.size() > kEntriesMax) {
    return Status(Code::kInvalid, StrCat("mount path under ", dir,
                                         ": the directory has too many "
                                         "entries (",
                                         names.size(), ") to be made writable"));
  }
  SWELL_RETURN_IF_ERROR(Mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"));
  for (const std::string& name : names) {
    const std::string source = StrCat(from, "/", name), target = StrCat(dir, "/", name);
    struct stat info;
    if (::lstat(source.c_str(), &info) != 0) continue;
    if (S_ISLNK(info.st_mode)) {
      char link[4096];
      ssize_t n = ::readlink(source.c_str(), link, sizeof link - 1);
      if (n <= 0) continue;
      link[n] = '\0';
      if (::symlink(link, target.c_str()) != 0) return ErrnoStatus(errno, "symlink " + target);
      continue;
    }
    if (S_ISDIR(info.st_mode)) {
      SWELL_RETURN_IF_ERROR(MakeDirs(target));
    } else {
      int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      if (fd < 0) return ErrnoStatus(errno, "create " + target);
      ::close(fd);
    }
    Status bound = Mount(source, target, nullptr, MS_BIND | MS_REC);
    // Entries that nobody but root may touch stay empty, as unreadable as before.
    if (bound.ok()) SWELL_RETURN_IF_ERROR(MakeReadOnly(target));
  }
  return Status::Ok();
}

// The deepest directory on the way that exists.
std::string ExistingParent(std::string path) {
  do {
    path.resize(path.rfind('/'));
  } while (!path.empty() && !FileExists(path));
  return path;
}

// A place to mount on. What blocks it (a link that leads nowhere) is replaced: the upper layer
// takes the change, not the host.
Status MakeTargetOnce(const std::string& target, bool directory) {
  struct stat info;
  if (::stat(target.c_str(), &info) == 0 && S_ISDIR(info.st_mode) == directory) return Status::Ok();
  size_t slash = target.rfind('/');
  if (slash != 0 && slash != std::string::npos) {
    SWELL_RETURN_IF_ERROR(MakeDirs(target.substr(0, slash)));
  }
  if (::lstat(target.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) ? ::rmdir(target.c_str()) != 0 : ::unlink(target.c_str()) != 0) {
      return ErrnoStatus(errno, "mount path " + target);
    }
  }
  if (directory) return MakeDirs(target);
  int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "mount path " + target);
  ::close(fd);
  return Status::Ok();
}

Status MakeTarget(const std::string& target, bool directory) {
  Status made = MakeTargetOnce(target, directory);
  if (made.ok()) return made;
  std::string parent = ExistingParent(target);
  if (parent.empty() || !FileExists(StrCat(kOldRoot, parent))) return made;
  Status covered = CoverWithTmpfs(parent);
  return covered.ok() ? MakeTargetOnce(target, directory) : covered;
}

// The very file that is mounted, whatever is done to its name meanwhile.
Result<UniqueFd> OpenSource(const ShimMount& mount) {
  const std::string source = StrCat(kOldRoot, mount.source);
  if (!mount.sub_path.empty()) return OpenBeneath(source, mount.sub_path);
  UniqueFd opened(::open(source.c_str(), O_PATH | O_CLOEXEC));
  if (opened.get() < 0) return ErrnoStatus(errno, "volume " + mount.source);
  return opened;
}

bool IsDirectory(const UniqueFd& file) {
  struct stat info;
  return ::fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode);
}

// A volume that is mounted already may hold a link on the way to a place in it.
Status CheckTarget(const std::string& target) {
  char* resolved = ::realpath(ExistingParent(target).c_str(), nullptr);
  if (resolved == nullptr) return Status::Ok();
  const bool out = Under(resolved, kOldRoot);
  std::free(resolved);
  if (!out) return Status::Ok();
  return Status(Code::kInvalid, StrCat("mount path ", target, " leaves the container"));
}

// All places before the first mount: making one may renew the directory around it.
Status MakeTargets(const std::vector<ShimMount>& mounts) {
  for (const ShimMount& mount : mounts) {
    bool file = false;
    if (mount.kind == ShimMount::Kind::kBind) {
      auto source = OpenSource(mount);
      file = source.ok() && !IsDirectory(*source);
    }
    SWELL_RETURN_IF_ERROR(CheckTarget(mount.target));
    SWELL_RETURN_IF_ERROR(MakeTarget(mount.target, !file));
  }
  return Status::Ok();
}

// What an image declares as its data: a mount of its own stays writable under a read-only root.
Status MountImageVolumes(const ShimSpec& spec) {
  for (const std::string& path : spec.image_volumes) {
    SWELL_RETURN_IF_ERROR(CheckTarget(path));
    SWELL_RETURN_IF_ERROR(MakeTarget(path, true));
    if (spec.read_only_root) SWELL_RETURN_IF_ERROR(Mount(path, path, nullptr, MS_BIND | MS_REC));
  }
  return Status::Ok();
}

Status MountOne(const ShimMount& mount) {
  if (mount.kind == ShimMount::Kind::kTmpfs) {
    SWELL_RETURN_IF_ERROR(CheckTarget(mount.target));
    SWELL_RETURN_IF_ERROR(MakeTarget(mount.target, true));
    std::string options = "mode=1777";
    if (mount.size_bytes > 0) options += StrCat(",size=", mount.size_bytes);
    return Mount("tmpfs", mount.target, "tmpfs", MS_NOSUID | MS_NODEV, options);
  }
  SWELL_ASSIGN_OR_RETURN(const UniqueFd source, OpenSource(mount));
  SWELL_RETURN_IF_ERROR(CheckTarget(mount.target));
  SWELL_RETURN_IF_ERROR(MakeTarget(mount.target, IsDirectory(source)));
  SWELL_RETURN_IF_ERROR(Mount(DescriptorPath(source), mount.target, nullptr, MS_BIND | MS_REC));
  return mount.read_only ? MakeReadOnly(mount.target) : Status::Ok();
}

}  // namespace

Status EnterContainerRoot(const ShimSpec& spec, const std::string& dir) {
  SWELL_RETURN_IF_ERROR(Mount("none", "/", nullptr, MS_REC | MS_PRIVATE));
  std::string root = dir + "/root";
  SWELL_RETURN_IF_ERROR(MountRoot(spec, dir, root));
  std::string old = StrCat(root, kOldRoot);
  SWELL_RETURN_IF_ERROR(MakeDirs(old));
  if (::syscall(SYS_pivot_root, root.c_str(), old.c_str()) != 0) {
    return ErrnoStatus(errno, "pivot_root " + root);
  }
  if (::chdir("/") != 0) return ErrnoStatus(errno, "chdir /");
  if (spec.has_image) SWELL_RETURN_IF_ERROR(MakeSystemDirs());
  SWELL_RETURN_IF_ERROR(MountSystem(spec, dir));
  SWELL_RETURN_IF_ERROR(MakeTargets(spec.mounts));
  SWELL_RETURN_IF_ERROR(MountImageVolumes(spec));
  for (const ShimMount& mount : spec.mounts) SWELL_RETURN_IF_ERROR(MountOne(mount));
  // Last, so that volumes under /sys stay writable if somebody asks for them.
  if (::umount2(std::string(kOldRoot).c_str(), MNT_DETACH) != 0) {
    return ErrnoStatus(errno, "detach the old root");
  }
  ::rmdir(std::string(kOldRoot).c_str());
  if (spec.read_only_root) {
    SWELL_RETURN_IF_ERROR(Mount("none", "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY));
  }
  return Status::Ok();
}

}  // namespace swell::edge
