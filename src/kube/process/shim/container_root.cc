#include "kube/process/shim/container_root.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/shim/beneath.h"
#include "kube/process/shim/container_system.h"
#include "kube/process/shim/hooks.h"
#include "kube/process/shim/id_map.h"
#include "kube/process/shim/image_root.h"
#include "kube/process/shim/mounts.h"

namespace swell::process {
namespace {

constexpr size_t kHostMountsMax = 64;
constexpr size_t kEntriesMax = 2000;

bool IsDataFileSystem(std::string_view type) {
  static constexpr std::string_view kTypes[] = {
      "ext2", "ext3", "ext4", "xfs",   "btrfs", "zfs",    "f2fs",     "nfs",  "nfs4",    "lustre",
      "ceph", "9p",   "vfat", "exfat", "ntfs3", "beegfs", "virtiofs", "gpfs", "squashfs"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes) ||
         type.starts_with("fuse.");
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
std::vector<std::string> HostMounts(const std::vector<std::string>& hidden) {
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
    bool skip = at == "/" || std::any_of(hidden.begin(), hidden.end(),
                                         [&at](const auto& dir) { return IsUnder(at, dir); });
    for (std::string_view dir : {"/proc", "/sys", "/dev", "/run", "/tmp"}) {
      skip = skip || IsUnder(at, dir);
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

// Directories that are the container's own in a user namespace, where the host's files are
// nobody's: its programs add files there, and replace the host's in the container's layer. What is
// in homes stays with their owners, though anybody may read some of it; so does what the machine's
// services keep: a container that runs the same service begins with nothing.
struct OwnDir {
  const char* path;
  bool empty;
};
constexpr OwnDir kOwnDirs[] = {{"/root", true},           {"/home", true},
                               {"/etc", false},           {"/media", false},
                               {"/mnt", false},           {"/opt", false},
                               {"/srv", false},           {"/usr", false},
                               {"/usr/bin", false},       {"/usr/lib", false},
                               {"/usr/local", false},     {"/usr/local/bin", false},
                               {"/usr/local/lib", false}, {"/usr/local/share", false},
                               {"/usr/share", false},     {"/var", false},
                               {"/var/cache", false},     {"/var/lib", true},
                               {"/var/log", true},        {"/var/tmp", false}};

Status MakeOwnDirs(const std::string& upper, int64_t owner) {
  const auto id = static_cast<uid_t>(owner);
  if (::chown(upper.c_str(), id, id) != 0) return ErrnoStatus(errno, "give " + upper);
  for (const OwnDir& dir : kOwnDirs) {
    struct stat info;
    if (::lstat(dir.path, &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    // What not everybody may look into stays as it is.
    if (!dir.empty && (info.st_mode & S_IROTH) == 0) continue;
    const std::string at = upper + dir.path;
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(at, owner));
    ::chmod(at.c_str(), info.st_mode & 07777);
    if (dir.empty && ::setxattr(at.c_str(), "trusted.overlay.opaque", "y", 1, 0) != 0) {
      return ErrnoStatus(errno, "hide the host's " + std::string(dir.path));
    }
  }
  return Status::Ok();
}

Status MountOverlay(const ShimSpec& spec, const std::string& root, const std::string& scratch) {
  std::string upper = scratch + "/upper", work = scratch + "/workdir";
  SWELL_RETURN_IF_ERROR(MakeDirs(upper));
  SWELL_RETURN_IF_ERROR(MakeDirs(work));
  if (spec.first_id != 0) SWELL_RETURN_IF_ERROR(MakeOwnDirs(upper, spec.first_id));
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

Status MountRoot(const ShimSpec& spec,
                 const std::string& dir,
                 const std::string& root,
                 int user_namespace) {
  SWELL_RETURN_IF_ERROR(MakeDirs(root));
  if (spec.has_image) return MountImageRoot(spec, dir, root, user_namespace);
  // A user namespace may not look below the mounts it was given, which an overlay over / would.
  if (spec.isolation == Isolation::kUser) return MountAssembledRoot(spec, root);
  Status overlay = MountOverlay(spec, root, dir);
  if (!overlay.ok()) {
    // The data directory's file system may not serve as an upper layer; memory always does.
    std::string scratch = dir + "/scratch";
    SWELL_RETURN_IF_ERROR(MakeDirs(scratch));
    Status memory = Mount("tmpfs", scratch, "tmpfs", 0, "mode=755");
    if (memory.ok()) overlay = MountOverlay(spec, root, scratch);
  }
  if (!overlay.ok()) return MountAssembledRoot(spec, root);
  if (spec.host_tmp && IsOwnFileSystem("/tmp")) {
    SWELL_RETURN_IF_ERROR(Mount("/tmp", root + "/tmp", nullptr, MS_BIND));
    SWELL_RETURN_IF_ERROR(MakeReadOnly(root + "/tmp"));
  }
  for (const std::string& at : HostMounts(spec.hidden)) {
    // Best effort: a mount point inside another mount is already there with its parent.
    Status bound = Mount(at, root + at, nullptr, MS_BIND | MS_REC);
    if (bound.ok()) SWELL_RETURN_IF_ERROR(MakeReadOnly(root + at));
  }
  return Status::Ok();
}

// The very directory, which is not one of the machine's. A neighbour who shares a volume may turn
// names in it into links at any time: what is made is made in directories that are open.
Result<UniqueFd> OpenInContainer(const std::string& dir) {
  UniqueFd opened(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return ErrnoStatus(errno, "open " + dir);
  char link[4096];
  const ssize_t n = ::readlink(DescriptorPath(opened).c_str(), link, sizeof link);
  if (n <= 0) return ErrnoStatus(errno, "mount path " + dir);
  if (IsUnder(std::string_view(link, static_cast<size_t>(n)), kOldRoot)) {
    return Status(Code::kInvalid, StrCat("mount path ", dir, " leaves the container"));
  }
  return opened;
}

// What the directory had under the name: links are made anew, all else is bound.
Status BindEntry(const UniqueFd& dir, const std::string& name, const std::string& target) {
  const UniqueFd entry(::openat(dir.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!entry.valid() || ::fstat(entry.get(), &info) != 0) return Status::Ok();
  if (S_ISLNK(info.st_mode)) {
    char link[4096];
    const ssize_t n = ::readlinkat(entry.get(), "", link, sizeof link - 1);
    if (n <= 0) return Status::Ok();
    link[n] = '\0';
    return ::symlink(link, target.c_str()) == 0 ? Status::Ok()
                                                : ErrnoStatus(errno, "symlink " + target);
  }
  if (S_ISDIR(info.st_mode)) {
    SWELL_RETURN_IF_ERROR(MakeDirs(target));
  } else {
    const UniqueFd place(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!place.valid()) return ErrnoStatus(errno, "create " + target);
  }
  // Entries that nobody but root may touch stay empty, as unreadable as before.
  Status bound = Mount(DescriptorPath(entry), target, nullptr, MS_BIND | MS_REC);
  (void)bound;
  return Status::Ok();
}

// Mounts a tmpfs over the directory and binds the entries into it that the container has there:
// then something can be added to it. The machine may have others there, which are hidden.
Status CoverWithTmpfs(const std::string& dir) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd from, OpenInContainer(dir));
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(DescriptorPath(from)));
  if (names.size() > kEntriesMax) {
    return Status(Code::kInvalid, StrCat("mount path under ", dir,
                                         ": the directory has too many "
                                         "entries (",
                                         names.size(), ") to be made writable"));
  }
  SWELL_RETURN_IF_ERROR(Mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"));
  SWELL_ASSIGN_OR_RETURN(const UniqueFd cover, OpenInContainer(dir));
  for (const std::string& name : names) {
    SWELL_RETURN_IF_ERROR(BindEntry(from, name, StrCat(DescriptorPath(cover), "/", name)));
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

// What is made, is made downwards from where it was begun.
Status CheckStep(std::string_view step) {
  if (step != "..") return Status::Ok();
  return Status(Code::kInvalid, "a path that is made must not lead up by \"..\"");
}

// Makes the directory `path`, below `dir`, and all that is missing on the way. The last one, open.
Result<UniqueFd> MakeBelow(UniqueFd dir, std::string_view path, int64_t owner) {
  for (std::string_view step : Split(path, '/')) {
    if (step.empty()) continue;
    SWELL_RETURN_IF_ERROR(CheckStep(step));
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(StrCat(DescriptorPath(dir), "/", step), owner));
    UniqueFd next(::openat(dir.get(), std::string(step).c_str(),
                           O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return ErrnoStatus(errno, StrCat("make ", path));
    dir = std::move(next);
  }
  return dir;
}

// The mount in which the open directory lies; null: the container's own layer.
const ShimMount* VolumeOf(std::span<const ShimMount> mounted, const UniqueFd& dir) {
  char link[4096];
  const ssize_t n = ::readlink(DescriptorPath(dir).c_str(), link, sizeof link);
  const std::string_view path(link, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  const ShimMount* found = nullptr;
  size_t longest = 0;
  for (const ShimMount& mount : mounted) {
    char* at = ::realpath(mount.target.c_str(), nullptr);
    if (at == nullptr) continue;
    const std::string resolved = at;
    std::free(at);
    if (!IsUnder(path, resolved) || resolved.size() < longest) continue;
    found = &mount;
    longest = resolved.size();
  }
  return found;
}

// While it lives, files are made with the rights of this user alone.
class RightsOf {
 public:
  RightsOf(uid_t user, gid_t group) {
    groups_.resize(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
    if (!groups_.empty() && ::getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0) {
      groups_.clear();
    }
    ::setgroups(0, nullptr);
    ::setfsgid(group);
    ::setfsuid(user);
  }
  ~RightsOf() {
    ::setfsuid(::geteuid());
    ::setfsgid(::getegid());
    ::setgroups(groups_.size(), groups_.data());
  }
  RightsOf(const RightsOf&) = delete;
  RightsOf& operator=(const RightsOf&) = delete;

 private:
  std::vector<gid_t> groups_;
};

// In a directory of the machine the container's user alone makes places: a mount path gives it no
// more than a program would. `dir` is the part of the target that is there.
Status MakeOnHost(UniqueFd dir, std::string_view missing, bool directory, const RightsOf&) {
  const std::vector<std::string_view> steps = Split(missing, '/');
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty()) continue;
    SWELL_RETURN_IF_ERROR(CheckStep(steps[i]));
    const std::string step(steps[i]);
    if (i + 1 == steps.size() && !directory) {
      const UniqueFd file(::openat(dir.get(), step.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
      return file.valid() ? Status::Ok() : ErrnoStatus(errno, "create " + step);
    }
    if (::mkdirat(dir.get(), step.c_str(), 0755) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, "make " + step);
    }
    UniqueFd next(::openat(dir.get(), step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return ErrnoStatus(errno, "open " + step);
    dir = std::move(next);
  }
  return Status::Ok();
}

// A place to mount on. What blocks it in the container's own layer (a link that leads nowhere) is
// replaced; in a volume it is somebody's.
Status MakeTargetOnce(const ShimSpec& spec,
                      std::span<const ShimMount> mounted,
                      const std::string& target,
                      bool directory) {
  struct stat info;
  if (::stat(target.c_str(), &info) == 0 && S_ISDIR(info.st_mode) == directory) return Status::Ok();
  const std::string parent = ExistingParent(target);
  const size_t slash = target.rfind('/');
  const std::string last = target.substr(slash + 1);
  SWELL_ASSIGN_OR_RETURN(UniqueFd dir, OpenInContainer(parent.empty() ? "/" : parent));
  const ShimMount* volume = VolumeOf(mounted, dir);
  if (volume != nullptr && volume->of_host) {
    const bool root = volume->owners == ShimMount::Owners::kPod;
    const auto first = spec.first_id;
    const RightsOf user(static_cast<uid_t>(first + (root ? 0 : spec.uid.value_or(0))),
                        static_cast<gid_t>(first + (root ? 0 : spec.gid.value_or(0))));
    const Status made =
        MakeOnHost(std::move(dir), std::string_view(target).substr(parent.size()), directory, user);
    return made.WithContext(StrCat("mount path ", target, ", with the container's own rights in ",
                                   "the hostPath at ", volume->target));
  }
  SWELL_ASSIGN_OR_RETURN(
      dir, MakeBelow(std::move(dir),
                     std::string_view(target).substr(parent.size(), slash - parent.size()),
                     spec.first_id));
  if (::fstatat(dir.get(), last.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (volume != nullptr) {
      return Status(Code::kInvalid,
                    StrCat("mount path ", target, ": the volume at ", volume->target, " has ",
                           S_ISDIR(info.st_mode) ? "a directory" : "no directory",
                           " of this name; use another path"));
    }
    const int removed =
        ::unlinkat(dir.get(), last.c_str(), S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0);
    if (removed != 0) return ErrnoStatus(errno, "mount path " + target);
  }
  const std::string place = StrCat(DescriptorPath(dir), "/", last);
  return directory ? MakeOwnedDirs(place, spec.first_id) : MakeOwnedFile(place, spec.first_id);
}

// `mounted`: what is there already, in which the target may be.
Status MakeTarget(const ShimSpec& spec,
                  std::span<const ShimMount> mounted,
                  const std::string& target,
                  bool directory) {
  Status made = MakeTargetOnce(spec, mounted, target, directory);
  if (made.ok()) return made;
  std::string parent = ExistingParent(target);
  if (parent.empty() || !FileExists(StrCat(kOldRoot, parent))) return made;
  Status covered = CoverWithTmpfs(parent);
  return covered.ok() ? MakeTargetOnce(spec, mounted, target, directory) : covered;
}

// The very file that is mounted, whatever is done to its name meanwhile.
Result<UniqueFd> OpenSource(const ShimSpec& spec, const ShimMount& mount) {
  auto opened = OpenInRoot(std::string(kOldRoot), mount.source);
  if (!opened.ok()) return opened.status().WithContext("volume");
  if (mount.sub_path.empty()) return opened;
  return OpenBeneath(*opened, mount.sub_path,
                     mount.of_host ? MissingDirs::kAreAnError : MissingDirs::kAreMade,
                     mount.owners == ShimMount::Owners::kMade ? spec.first_id : 0);
}

bool IsDirectory(const UniqueFd& file) {
  struct stat info;
  return ::fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Programs, and we ourselves, take what is in /proc for the kernel's word. A file of its top level
// may be replaced by another: what it says of the machine.
bool IsKernels(const std::string& resolved) {
  struct stat info;
  if (!IsUnder(resolved, "/proc")) return false;
  return resolved.rfind('/') != std::string_view("/proc").size() ||
         ::stat(resolved.c_str(), &info) != 0 || !S_ISREG(info.st_mode);
}

// A volume that is mounted already may hold a link, in place of the target or on the way to it.
Status CheckTarget(const ShimSpec& spec, const std::string& target) {
  char* found = ::realpath((FileExists(target) ? target : ExistingParent(target)).c_str(), nullptr);
  if (found == nullptr) return Status::Ok();
  const std::string resolved = found;
  std::free(found);
  if (IsUnder(resolved, kOldRoot)) {
    return Status(Code::kInvalid, StrCat("mount path ", target, " leaves the container"));
  }
  if (spec.privileged || !IsKernels(resolved)) return Status::Ok();
  return Status(Code::kInvalid, StrCat("mount path ", target,
                                       ": nothing can be mounted on /proc or below, but on a file "
                                       "such as /proc/meminfo; use another path"));
}

// All places before the first mount: making one may renew the directory around it.
Status MakeTargets(const ShimSpec& spec) {
  for (const ShimMount& mount : spec.mounts) {
    bool file = false;
    if (mount.kind == ShimMount::Kind::kBind) {
      auto source = OpenSource(spec, mount);
      file = source.ok() && !IsDirectory(*source);
    }
    SWELL_RETURN_IF_ERROR(CheckTarget(spec, mount.target));
    SWELL_RETURN_IF_ERROR(MakeTarget(spec, {}, mount.target, !file));
  }
  return Status::Ok();
}

// What an image declares as its data: a mount of its own stays writable under a read-only root.
Status MountImageVolumes(const ShimSpec& spec) {
  for (const std::string& path : spec.image_volumes) {
    SWELL_RETURN_IF_ERROR(CheckTarget(spec, path));
    SWELL_RETURN_IF_ERROR(MakeTarget(spec, {}, path, true));
    if (spec.read_only_root) SWELL_RETURN_IF_ERROR(Mount(path, path, nullptr, MS_BIND | MS_REC));
  }
  return Status::Ok();
}

// The owners on disk that stay the same in a container which is not root: its own.
IdMap OwnIds(const ShimSpec& spec) {
  IdMap map;
  auto keep = [&spec](int64_t id, std::vector<IdRange>& ranges) {
    const bool known = std::any_of(ranges.begin(), ranges.end(),
                                   [id](const IdRange& range) { return range.inside == id; });
    if (id > 0 && id < kIdsOfPod && !known) ranges.push_back({id, spec.first_id + id, 1});
  };
  keep(spec.uid.value_or(0), map.users);
  keep(spec.gid.value_or(0), map.groups);
  for (int64_t group : spec.groups) keep(group, map.groups);
  return map;
}

// The user namespace that translates the owners of a volume's files. Invalid: the files keep the
// host's owners.
Result<UniqueFd> OwnersOf(const ShimSpec& spec, const ShimMount& mount, int user_namespace) {
  if (spec.user_namespace.empty() || mount.owners == ShimMount::Owners::kNobody ||
      mount.owners == ShimMount::Owners::kMade) {
    return UniqueFd();
  }
  if (mount.owners == ShimMount::Owners::kPod) {
    UniqueFd pod(::fcntl(user_namespace, F_DUPFD_CLOEXEC, 0));
    if (!pod.valid()) return ErrnoStatus(errno, "the pod's user namespace");
    return pod;
  }
  const IdMap map = OwnIds(spec);
  if (map.users.empty() || map.groups.empty()) return UniqueFd();
  SWELL_ASSIGN_OR_RETURN(Namespaces made, MakeNamespaces(map, NetworkNamespace::kNone));
  return std::move(made.user);
}

// A path that a user named shows neither what is hidden nor anything in it.
Status CheckHidden(const ShimSpec& spec, const ShimMount& mount, const UniqueFd& source) {
  char link[4096];
  const ssize_t n = ::readlink(DescriptorPath(source).c_str(), link, sizeof link);
  if (n <= 0) return ErrnoStatus(errno, "volume " + mount.source);
  std::string_view path(link, static_cast<size_t>(n));
  if (path.starts_with(kOldRoot)) path.remove_prefix(kOldRoot.size());
  for (const std::string& hidden : spec.hidden) {
    if (!IsUnder(path, hidden)) continue;
    return Status(Code::kInvalid, StrCat("volume ", mount.source, ": hostPath leads into ", hidden,
                                         ", where the cluster keeps its own files"));
  }
  return Status::Ok();
}

// What is hidden and lies below the mounted directory.
Status HideBelow(const ShimSpec& spec, const ShimMount& mount, const UniqueFd& source) {
  char link[4096];
  const ssize_t n = ::readlink(DescriptorPath(source).c_str(), link, sizeof link);
  if (n <= 0) return ErrnoStatus(errno, "volume " + mount.source);
  std::string path(link, static_cast<size_t>(n));
  if (path.starts_with(kOldRoot)) path.erase(0, kOldRoot.size());
  if (path.empty()) path = "/";
  for (const std::string& hidden : spec.hidden) {
    if (!IsUnder(hidden, path)) continue;
    const std::string at = StrCat(mount.target, path == "/" ? hidden : hidden.substr(path.size()));
    if (FileExists(at)) SWELL_RETURN_IF_ERROR(MountTmpfs(at, "mode=755,size=4k", 0));
  }
  return Status::Ok();
}

Status MountOne(const ShimSpec& spec, size_t index, int user_namespace) {
  const ShimMount& mount = spec.mounts[index];
  const auto mounted = std::span(spec.mounts).first(index);
  if (mount.kind == ShimMount::Kind::kTmpfs) {
    SWELL_RETURN_IF_ERROR(CheckTarget(spec, mount.target));
    SWELL_RETURN_IF_ERROR(MakeTarget(spec, mounted, mount.target, true));
    std::string options = "mode=1777";
    if (mount.size_bytes > 0) options += StrCat(",size=", mount.size_bytes);
    return MountTmpfs(mount.target, options, spec.first_id);
  }
  SWELL_ASSIGN_OR_RETURN(const UniqueFd source, OpenSource(spec, mount));
  if (mount.of_host) SWELL_RETURN_IF_ERROR(CheckHidden(spec, mount, source));
  SWELL_RETURN_IF_ERROR(CheckTarget(spec, mount.target));
  SWELL_RETURN_IF_ERROR(MakeTarget(spec, mounted, mount.target, IsDirectory(source)));
  SWELL_ASSIGN_OR_RETURN(const UniqueFd owners, OwnersOf(spec, mount, user_namespace));
  Result<UniqueFd> mapped = UniqueFd();
  const MountAccess access = mount.read_only ? MountAccess::kReadOnly : MountAccess::kReadWrite;
  if (owners.valid()) mapped = CloneMapped(source.get(), owners.get(), access);
  // Below a directory of the machine there may be file systems that cannot translate, such as /proc
  // below /: all files are nobody's then.
  const bool plain = mount.of_host && mapped.status().code() == Code::kUnavailable;
  if (!mapped.ok() && !plain) return mapped.status().WithContext("volume " + mount.source);
  if (mapped.ok() && mapped->valid()) {
    SWELL_RETURN_IF_ERROR(AttachMount(*mapped, mount.target));
  } else {
    SWELL_RETURN_IF_ERROR(Mount(DescriptorPath(source), mount.target, nullptr, MS_BIND | MS_REC));
    if (mount.read_only) SWELL_RETURN_IF_ERROR(MakeReadOnly(mount.target));
  }
  return mount.of_host ? HideBelow(spec, mount, source) : Status::Ok();
}

// Where the container's root may not make it. In a volume, whose links may lead anywhere, the
// container's user makes it with the rights that it has there.
void MakeWorkingDir(const ShimSpec& spec) {
  if (!spec.cwd.starts_with('/') || FileExists(spec.cwd)) return;
  const std::string parent = ExistingParent(spec.cwd);
  auto dir = OpenInContainer(parent.empty() ? "/" : parent);
  struct stat top, place;
  if (!dir.ok() || ::stat("/", &top) != 0 || ::fstat(dir->get(), &place) != 0) return;
  if (place.st_dev != top.st_dev) return;
  auto made =
      MakeBelow(std::move(*dir), std::string_view(spec.cwd).substr(parent.size()), spec.first_id);
  (void)made;
}

}  // namespace

Status EnterContainerRoot(const ShimSpec& spec, const std::string& dir, int user_namespace) {
  SWELL_RETURN_IF_ERROR(Mount("none", "/", nullptr, MS_REC | MS_PRIVATE));
  std::string root = dir + "/root";
  SWELL_RETURN_IF_ERROR(MountRoot(spec, dir, root, user_namespace));
  std::string old = StrCat(root, kOldRoot);
  SWELL_RETURN_IF_ERROR(MakeDirs(old));
  if (::syscall(SYS_pivot_root, root.c_str(), old.c_str()) != 0) {
    return ErrnoStatus(errno, "pivot_root " + root);
  }
  if (::chdir("/") != 0) return ErrnoStatus(errno, "chdir /");
  if (spec.has_image) SWELL_RETURN_IF_ERROR(MakeSystemDirs(spec.first_id));
  SWELL_RETURN_IF_ERROR(MountSystem(spec, dir));
  SWELL_RETURN_IF_ERROR(MakeTargets(spec));
  SWELL_RETURN_IF_ERROR(MountImageVolumes(spec));
  for (size_t i = 0; i < spec.mounts.size(); ++i) {
    SWELL_RETURN_IF_ERROR(MountOne(spec, i, user_namespace));
  }
  SWELL_RETURN_IF_ERROR(RunHooks(spec, dir));
  // Last, so that volumes under /sys stay writable if somebody asks for them.
  if (::umount2(std::string(kOldRoot).c_str(), MNT_DETACH) != 0) {
    return ErrnoStatus(errno, "detach the old root");
  }
  ::rmdir(std::string(kOldRoot).c_str());
  MakeWorkingDir(spec);
  if (spec.read_only_root) {
    SWELL_RETURN_IF_ERROR(Mount("none", "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY));
  }
  return Status::Ok();
}

}  // namespace swell::process
