#include "kube/process/shim/id_map.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// Holds the namespaces open until it is killed. It shares the caller's memory: system calls only.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("address", "thread")))
#endif
int HoldNamespaces(void*) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) ::pause();
}

Status WriteIdMap(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  if (::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
    return Status::Ok();
  }
  return ErrnoStatus(errno, "write " + path);
}

std::string Lines(const std::vector<IdRange>& ranges) {
  std::string text;
  for (const IdRange& range : ranges) {
    text += StrCat(range.inside, " ", range.outside, " ", range.count, "\n");
  }
  return text;
}

Result<Namespaces> Describe(pid_t holder, const IdMap& map, bool with_network) {
  const std::string proc = StrCat("/proc/", holder);
  SWELL_RETURN_IF_ERROR(WriteIdMap(proc + "/uid_map", Lines(map.users)));
  SWELL_RETURN_IF_ERROR(WriteIdMap(proc + "/gid_map", Lines(map.groups)));
  Namespaces made;
  made.user = UniqueFd(::open((proc + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!made.user.valid()) return ErrnoStatus(errno, "open user namespace");
  if (with_network) {
    made.net = UniqueFd(::open((proc + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    if (!made.net.valid()) return ErrnoStatus(errno, "open network namespace");
  }
  return made;
}

Result<UniqueFd> CloneTree(int file, int user_namespace, uint64_t attributes, unsigned below) {
  UniqueFd tree(static_cast<int>(::syscall(
      SYS_open_tree, file, "",
      AT_EMPTY_PATH | below | OPEN_TREE_CLONE | static_cast<unsigned>(OPEN_TREE_CLOEXEC))));
  if (!tree.valid()) return ErrnoStatus(errno, "copy the mount");
  struct mount_attr change = {};
  change.attr_set = MOUNT_ATTR_IDMAP | attributes;
  change.userns_fd = static_cast<uint64_t>(user_namespace);
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | below, &change, sizeof change) !=
      0) {
    return Status(Code::kUnavailable, StrCat("its file system cannot translate owners: ",
                                             ErrnoStatus(errno, "mount_setattr").message()));
  }
  return tree;
}

}  // namespace

IdMap PodIdMap(int64_t first_outside) {
  const IdRange all{0, first_outside, kIdsOfPod};
  return {{all}, {all}};
}

Result<Namespaces> MakeNamespaces(const IdMap& map, NetworkNamespace network) {
  const bool with_network = network == NetworkNamespace::kMade;
  std::vector<char> stack(kStackBytes);
  char* top = stack.data() + kStackBytes;
  top -= reinterpret_cast<uintptr_t>(top) % 64;
  const int flags = CLONE_VM | CLONE_NEWUSER | (with_network ? CLONE_NEWNET : 0);
  const pid_t holder = ::clone(HoldNamespaces, top, flags, nullptr);
  if (holder < 0) return ErrnoStatus(errno, "make a user namespace");
  Result<Namespaces> made = Describe(holder, map, with_network);
  ::kill(holder, SIGKILL);
  while (::waitpid(holder, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  return made;
}

Result<UniqueFd> CloneMapped(int file, int user_namespace, MountAccess access) {
  const int attributes = access == MountAccess::kReadOnly ? MOUNT_ATTR_RDONLY : 0;
  return CloneTree(file, user_namespace, attributes, AT_RECURSIVE);
}

Status CheckMappable(const std::string& path, int user_namespace) {
  const UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, "open " + path);
  return CloneTree(file.get(), user_namespace, 0, 0).status().WithContext(path);
}

Status AttachMount(const UniqueFd& mount, const std::string& target) {
  if (::syscall(SYS_move_mount, mount.get(), "", AT_FDCWD, target.c_str(),
                MOVE_MOUNT_F_EMPTY_PATH) == 0) {
    return Status::Ok();
  }
  return ErrnoStatus(errno, "mount on " + target);
}

}  // namespace swell::process
