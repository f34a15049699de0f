#include "kube/process/files/volumes.h"

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

using node::VolumeSpec;

// While it lives, this thread makes files with the rights that everybody has. Its groups are set by
// the system call: the library's function would set those of all threads.
class RightsOfNobody {
 public:
  RightsOfNobody() {
    groups_.resize(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
    if (!groups_.empty() && ::getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0) {
      groups_.clear();
    }
    ::syscall(SYS_setgroups, 0, nullptr);
    ::setfsgid(kNobody);
    ::setfsuid(kNobody);
  }
  ~RightsOfNobody() {
    ::setfsuid(::geteuid());
    ::setfsgid(::getegid());
    ::syscall(SYS_setgroups, groups_.size(), groups_.data());
  }
  RightsOfNobody(const RightsOfNobody&) = delete;
  RightsOfNobody& operator=(const RightsOfNobody&) = delete;

 private:
  static constexpr unsigned kNobody = 65'534;
  std::vector<gid_t> groups_;
};

enum class Missing { kDirectory, kFile };

Status MakeMissing(const std::string& path, Missing what, HostPathMaker maker) {
  auto make = [&] { return what == Missing::kFile ? ReplaceFile(path, "") : MakeDirs(path); };
  if (maker == HostPathMaker::kSwell) return make();
  const Status made = [&make] {
    const RightsOfNobody rights;
    return make();
  }();
  if (made.ok()) return made;
  return Status(Code::kInvalid,
                StrCat("host path ", path, " does not exist on the node, and a pod makes one only ",
                       "where everybody may: ", made.message()));
}

Status CheckType(const std::string& path, const std::string& type, HostPathMaker maker) {
  struct stat info;
  bool there = ::stat(path.c_str(), &info) == 0;
  auto wrong = [&](std::string_view what) {
    if (!there && errno == ENOENT) {
      return Status(Code::kInvalid, StrCat("host path ", path, " does not exist on the node"));
    }
    return Status(Code::kInvalid, StrCat("hostPath type check failed: ", path, " is not a ", what));
  };
  if (type == "DirectoryOrCreate" && !there) return MakeMissing(path, Missing::kDirectory, maker);
  if (type == "FileOrCreate" && !there) return MakeMissing(path, Missing::kFile, maker);
  if (type.empty()) {
    // Container engines make what is missing a directory.
    return there ? Status::Ok() : MakeMissing(path, Missing::kDirectory, maker);
  }
  if (type == "Directory" || type == "DirectoryOrCreate") {
    return there && S_ISDIR(info.st_mode) ? Status::Ok() : wrong("directory");
  }
  if (type == "File" || type == "FileOrCreate") {
    return there && S_ISREG(info.st_mode) ? Status::Ok() : wrong("file");
  }
  if (type == "Socket") return there && S_ISSOCK(info.st_mode) ? Status::Ok() : wrong("socket");
  if (type == "CharDevice") {
    return there && S_ISCHR(info.st_mode) ? Status::Ok() : wrong("character device");
  }
  if (type == "BlockDevice") {
    return there && S_ISBLK(info.st_mode) ? Status::Ok() : wrong("block device");
  }
  return Status(Code::kInvalid, StrCat("hostPath.type: ", Quote(type), " is unknown"));
}

// The mode comes last: chown may take bits of it away.
void GiveToGroup(const std::string& path, std::optional<int64_t> group, int mode) {
  // Without the right to give files away the volume stays ours; the mode says who may read.
  const int given =
      group ? ::chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(*group)) : 0;
  ::chmod(path.c_str(), static_cast<mode_t>(given == 0 ? mode : mode & 0777));
}

// For everybody. What is made in a directory of a group is the group's, too.
void ShareDirectory(const std::string& path, std::optional<int64_t> group) {
  GiveToGroup(path, group, group ? 0777 | S_ISGID : 0777);
}

constexpr std::string_view kDataPrefix = "..data-";

// The files live in DIR/..data-N; DIR/NAME are links through DIR/..data, which is moved in one
// step: the layout that Kubernetes made programs used to.
Status WriteFiles(const VolumeSpec& volume, const std::string& dir, std::optional<int64_t> group) {
  SWELL_RETURN_IF_ERROR(MakeDirs(dir));
  std::string data;
  for (int n = 0; n < 1000; ++n) {
    data = StrCat(kDataPrefix, n);
    struct stat info;
    if (::lstat(StrCat(dir, "/", data).c_str(), &info) != 0) break;
  }
  std::string fresh = dir + "/" + data;
  if (::mkdir(fresh.c_str(), 0755) != 0) return ErrnoStatus(errno, "make " + fresh);
  std::set<std::string> tops;
  for (const node::VolumeFile& file : volume.files) {
    std::string path = fresh + "/" + file.path;
    size_t slash = path.rfind('/');
    SWELL_RETURN_IF_ERROR(MakeDirs(path.substr(0, slash)));
    int mode = group ? file.mode | 040 : file.mode;
    SWELL_RETURN_IF_ERROR(ReplaceFile(path, file.bytes, mode));
    GiveToGroup(path, group, mode);
    if (file.owner) {
      const auto owner = static_cast<uid_t>(*file.owner);
      // Without the right to give files away pods run as this very user.
      if (::chown(path.c_str(), owner, static_cast<gid_t>(-1)) != 0 && ::geteuid() == 0) {
        return ErrnoStatus(errno, "give " + path);
      }
    }
    tops.insert(file.path.substr(0, file.path.find('/')));
  }
  char old_data[256];
  ssize_t n = ::readlink((dir + "/..data").c_str(), old_data, sizeof old_data - 1);
  std::string old_name(old_data, n > 0 ? static_cast<size_t>(n) : 0);
  std::string link = dir + "/..data.new";
  ::unlink(link.c_str());
  if (::symlink(data.c_str(), link.c_str()) != 0) return ErrnoStatus(errno, "link " + link);
  if (::rename(link.c_str(), (dir + "/..data").c_str()) != 0) {
    return ErrnoStatus(errno, "rename " + link);
  }
  for (const std::string& top : tops) {
    std::string at = StrCat(dir, "/", top);
    struct stat info;
    if (::lstat(at.c_str(), &info) == 0) continue;
    if (::symlink(("..data/" + top).c_str(), at.c_str()) != 0) {
      return ErrnoStatus(errno, "link " + at);
    }
  }
  auto names = ListDir(dir);
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (!name.starts_with("..") && !tops.contains(name)) ::unlink(StrCat(dir, "/", name).c_str());
    }
  }
  // A pod may have changed the link: only a directory that was made here is removed.
  const bool own = old_name.starts_with(kDataPrefix) && old_name.find('/') == std::string::npos;
  if (own && old_name != data) return RemoveTree(dir + "/" + old_name);
  return Status::Ok();
}

std::string DirOf(const VolumeSpec& volume, const std::string& pod_dir) {
  return StrCat(pod_dir, "/volumes/", volume.name);
}

}  // namespace

Status RemoveScratch(const std::string& path) {
  Status removed = RemoveTree(path);
  if (removed.code() != Code::kForbidden) return removed;
  // Depth first with a bound, without following links.
  std::vector<std::string> dirs{path};
  for (size_t i = 0; i < dirs.size() && i < 1'000'000; ++i) {
    std::string dir = dirs[i];
    struct stat info;
    if (::lstat(dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    ::chmod(dir.c_str(), 0700);
    auto names = ListDir(dir);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      std::string child = StrCat(dir, "/", name);
      if (::lstat(child.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) dirs.push_back(child);
    }
  }
  return RemoveTree(path);
}

bool IsPlainName(std::string_view name) {
  if (name.empty() || name.size() > 253 || name.find_first_not_of('.') == std::string::npos) {
    return false;
  }
  for (char c : name) {
    bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '.' || c == '-' || c == '_';
    if (!fine) return false;
  }
  return true;
}

Result<std::string> MakeVolume(const VolumeSpec& volume,
                               const std::string& pod_dir,
                               const std::string& data_dir,
                               std::optional<int64_t> fs_group,
                               HostPathMaker maker) {
  if (!IsPlainName(volume.name)) {
    return Status(Code::kInvalid, StrCat("volume ", Quote(volume.name), ": not a usable name"));
  }
  std::string dir = DirOf(volume, pod_dir);
  switch (volume.kind) {
    case VolumeSpec::Kind::kMemory:
      return std::string();
    case VolumeSpec::Kind::kEmptyDir:
      SWELL_RETURN_IF_ERROR(MakeDirs(dir));
      ShareDirectory(dir, fs_group);
      return dir;
    case VolumeSpec::Kind::kHostPath: {
      if (!volume.host_path.starts_with('/')) {
        return Status(Code::kInvalid, StrCat("volume ", Quote(volume.name), ": hostPath.path ",
                                             Quote(volume.host_path), " is not absolute"));
      }
      Status checked = CheckType(volume.host_path, volume.host_path_type, maker);
      if (!checked.ok()) return checked.WithContext(StrCat("volume ", Quote(volume.name)));
      return volume.host_path;
    }
    case VolumeSpec::Kind::kDurable: {
      std::string path = data_dir + "/volumes";
      for (std::string_view step : Split(volume.key, '/')) {
        if (!IsPlainName(step)) {
          return Status(Code::kInvalid, StrCat("volume ", Quote(volume.name), ": key ",
                                               Quote(volume.key), " is not usable"));
        }
        path += StrCat("/", step);
      }
      SWELL_RETURN_IF_ERROR(MakeDirs(path));
      ShareDirectory(path, fs_group);
      return path;
    }
    case VolumeSpec::Kind::kFiles: {
      Status written = WriteFiles(volume, dir, fs_group);
      if (!written.ok()) return written.WithContext(StrCat("volume ", Quote(volume.name)));
      return dir;
    }
  }
  return dir;
}

Status UpdateFiles(const VolumeSpec& volume,
                   const std::string& pod_dir,
                   std::optional<int64_t> fs_group) {
  if (!IsPlainName(volume.name)) return Status(Code::kInvalid, "volume: not a usable name");
  return WriteFiles(volume, DirOf(volume, pod_dir), fs_group);
}

}  // namespace swell::process
