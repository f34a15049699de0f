#include "kube/images/unpack.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/images/tar_reader.h"
#include "kube/images/write_at.h"

namespace swell::images {
namespace {

constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";
constexpr std::string_view kAufs = ".wh..wh.";
constexpr int64_t kRoomCheckBytes = 64 << 20;
constexpr int64_t kRoomCheckEntries = 10'000;
constexpr uint64_t kReserveBytes = 1 << 30;
constexpr uint64_t kReserveFiles = 100'000;
constexpr std::string_view kNoParent = "is in no directory of the layer";
// Directories beyond it keep the time at which they were unpacked.
constexpr size_t kTimeBytesMax = 64 << 20;
constexpr size_t kArchiveLinksMax = 10'000;

Status Refuse(std::string_view path, std::string_view why) {
  return Status(Code::kInvalid, StrCat("entry ", Quote(path), " ", why));
}

// "./usr//bin/x" → usr, bin, x. An absolute name counts from the image's root.
Result<std::vector<std::string>> Steps(std::string_view path) {
  std::vector<std::string> out;
  for (std::string_view step : Split(path, '/')) {
    if (step.empty() || step == ".") continue;
    if (step == "..") return Refuse(path, "leads out of the layer by \"..\"");
    out.emplace_back(step);
  }
  return out;
}

// A path below `root`, every link of which is followed as if `root` were /.
UniqueFd OpenInRoot(int root, const std::string& path, uint64_t flags) {
  struct open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const std::string text = path.empty() ? "." : path;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, text.c_str(), &how, sizeof how)));
}

std::string PathOf(int fd) { return StrCat("/proc/self/fd/", fd); }

class Unpacker {
 public:
  Unpacker(UniqueFd root, TarReader& tar, const UnpackLimits& limits, const Cancellation& cancel)
      : root_(std::move(root)), tar_(tar), limits_(limits), cancel_(cancel) {}

  Status Run(const std::string& dir, bool files_only) {
    for (int64_t entries = 0;; ++entries) {
      SWELL_ASSIGN_OR_RETURN(std::optional<TarEntry> entry, tar_.Next());
      if (!entry) break;
      if (entries >= limits_.entries_max) {
        return Status(Code::kTooLarge, StrCat("it has more than ", entries, " entries"));
      }
      SWELL_RETURN_IF_ERROR(cancel_.Check());
      SWELL_RETURN_IF_ERROR(CheckSizes(dir));
      if (entries % kRoomCheckEntries == kRoomCheckEntries - 1) {
        SWELL_RETURN_IF_ERROR(CheckRoom(dir));
      }
      const bool plain =
          entry->kind == TarEntry::Kind::kFile || entry->kind == TarEntry::Kind::kDirectory;
      if (files_only && !plain) {
        if (links_.size() < kArchiveLinksMax) links_.push_back(*std::move(entry));
        continue;
      }
      SWELL_RETURN_IF_ERROR(Add(*entry, files_only));
    }
    LinkFiles();
    SetDirectoryTimes();
    return Status::Ok();
  }

 private:
  Status CheckSizes(const std::string& dir) {
    if (tar_.bytes() > limits_.bytes_max) {
      return Status(Code::kTooLarge,
                    StrCat("it unpacks to more than ", limits_.bytes_max, " bytes"));
    }
    if (tar_.bytes() < room_checked_) return Status::Ok();
    room_checked_ = tar_.bytes() + kRoomCheckBytes;
    return CheckRoom(dir);
  }

  Status Add(const TarEntry& entry, bool files_only) {
    SWELL_ASSIGN_OR_RETURN(std::vector<std::string> steps, Steps(entry.path));
    if (entry.kind == TarEntry::Kind::kDirectory) NoteTime(Join(steps, "/"), entry.mtime);
    if (steps.empty()) {
      if (entry.kind != TarEntry::Kind::kDirectory) return Refuse(entry.path, "names no file");
      return Finish(entry, root_.get());
    }
    const std::string name = steps.back();
    steps.pop_back();
    SWELL_RETURN_IF_ERROR(EnterParent(entry.path, steps));
    if (!files_only && name.starts_with(kWhiteout)) return Whiteout(entry.path, name);
    return Make(entry, name);
  }

  // Opens the directory that the entry is in; makes what is missing of it.
  Status EnterParent(const std::string& path, const std::vector<std::string>& steps) {
    const std::string parent = Join(steps, "/");
    if (parent_.valid() && parent == parent_path_) return Status::Ok();
    UniqueFd fd = OpenInRoot(root_.get(), parent, O_PATH | O_DIRECTORY);
    if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR)) {
      SWELL_RETURN_IF_ERROR(MakeParents(path, steps));
      fd = OpenInRoot(root_.get(), parent, O_PATH | O_DIRECTORY);
    }
    if (!fd.valid()) return Refuse(path, kNoParent);
    parent_ = std::move(fd);
    parent_path_ = parent;
    return Status::Ok();
  }

  Status MakeParents(const std::string& path, const std::vector<std::string>& steps) {
    std::string so_far;
    for (const std::string& step : steps) {
      const UniqueFd above = OpenInRoot(root_.get(), so_far, O_PATH | O_DIRECTORY);
      if (!above.valid() && errno == ENOTDIR) return Refuse(path, kNoParent);
      if (!above.valid()) return ErrnoStatus(errno, StrCat("entry ", Quote(path)));
      if (IsWhiteout(above.get(), step)) {
        SWELL_RETURN_IF_ERROR(ReplaceWhiteout(above.get(), step, path));
      } else if (::mkdirat(above.get(), step.c_str(), 0755) != 0 && errno != EEXIST) {
        return ErrnoStatus(errno, StrCat("entry ", Quote(path)));
      }
      so_far += StrCat(so_far.empty() ? "" : "/", step);
    }
    return Status::Ok();
  }

  // Layers' own devices are left out, so every device here is a whiteout.
  static bool IsWhiteout(int parent, const std::string& name) {
    struct stat info;
    return ::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISCHR(info.st_mode);
  }

  // The layer removes a name and makes a directory of that name: lower ones stay hidden.
  Status ReplaceWhiteout(int parent, const std::string& name, const std::string& path) {
    if (::unlinkat(parent, name.c_str(), 0) != 0 || ::mkdirat(parent, name.c_str(), 0755) != 0) {
      return ErrnoStatus(errno, StrCat("entry ", Quote(path)));
    }
    return SetOpaque(parent, name, path);
  }

  Status Whiteout(const std::string& path, const std::string& name) {
    if (name == kOpaque) return SetOpaque(parent_.get(), ".", path);
    if (name.starts_with(kAufs)) return Status::Ok();  // aufs' own notes
    const std::string hidden = name.substr(kWhiteout.size());
    if (hidden.empty() || hidden == "." || hidden == "..") {
      return Refuse(path, "removes no file that can be");
    }
    // It removes what lower layers have. What this layer has under the name stays; a file hides the
    // lower one by itself.
    struct stat own;
    if (::fstatat(parent_.get(), hidden.c_str(), &own, AT_SYMLINK_NOFOLLOW) == 0) {
      return S_ISDIR(own.st_mode) ? SetOpaque(parent_.get(), hidden, path) : Status::Ok();
    }
    if (::mknodat(parent_.get(), hidden.c_str(), S_IFCHR | 0600, makedev(0, 0)) == 0) {
      return Status::Ok();
    }
    return ErrnoStatus(errno, StrCat("mark ", Quote(path), " as removed"));
  }

  // `path` is the entry that asks for it.
  Status SetOpaque(int parent, const std::string& name, const std::string& path) {
    const UniqueFd fd(
        ::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const std::string dir = PathOf(fd.get());
    // The first needs root; the second is what overlays in user namespaces read.
    const bool trusted =
        ::geteuid() == 0 && ::setxattr(dir.c_str(), "trusted.overlay.opaque", "y", 1, 0) == 0;
    const bool user = ::setxattr(dir.c_str(), "user.overlay.opaque", "y", 1, 0) == 0;
    if (trusted || user) return Status::Ok();
    return ErrnoStatus(errno, StrCat("mark the directory of ", Quote(path), " as opaque"));
  }

  // Removes what stands where the entry goes.
  Status Clear(const std::string& name, bool keep_directory) {
    struct stat info;
    if (::fstatat(parent_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno == ENOENT ? Status::Ok() : ErrnoStatus(errno, Quote(name));
    }
    if (S_ISDIR(info.st_mode)) {
      if (keep_directory) return Status::Ok();
      return RemoveTree(StrCat(PathOf(parent_.get()), "/", name));
    }
    if (::unlinkat(parent_.get(), name.c_str(), 0) == 0) return Status::Ok();
    return ErrnoStatus(errno, StrCat("replace ", Quote(name)));
  }

  Status Make(const TarEntry& entry, const std::string& name) {
    using Kind = TarEntry::Kind;
    if (entry.kind == Kind::kDevice) return Status::Ok();
    if (entry.kind == Kind::kDirectory && IsWhiteout(parent_.get(), name)) {
      SWELL_RETURN_IF_ERROR(ReplaceWhiteout(parent_.get(), name, entry.path));
    }
    SWELL_RETURN_IF_ERROR(Clear(name, entry.kind == Kind::kDirectory));
    switch (entry.kind) {
      case Kind::kFile:
        return MakeFile(entry, name);
      case Kind::kDirectory:
        return MakeDirectory(entry, name);
      case Kind::kSymlink:
        return MakeSymlink(entry, name);
      case Kind::kHardlink:
        return MakeHardlink(entry, name);
      case Kind::kFifo:
        if (::mkfifoat(parent_.get(), name.c_str(), 0600) != 0) return Failed(entry);
        return FinishNamed(entry, name);
      case Kind::kDevice:
        break;
    }
    return Status::Ok();
  }

  Status Failed(const TarEntry& entry) {
    return ErrnoStatus(errno, StrCat("entry ", Quote(entry.path)));
  }

  Status MakeFile(const TarEntry& entry, const std::string& name) {
    const UniqueFd file(::openat(parent_.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return Failed(entry);
    int64_t since_check = 0;
    SWELL_RETURN_IF_ERROR(tar_.ReadData([&](std::string_view bytes, int64_t offset) -> Status {
      since_check += static_cast<int64_t>(bytes.size());
      if (since_check > kRoomCheckBytes) {
        since_check = 0;
        SWELL_RETURN_IF_ERROR(cancel_.Check());
        SWELL_RETURN_IF_ERROR(CheckSizes(PathOf(root_.get())));
      }
      return WriteAt(file.get(), bytes, offset) ? Status::Ok() : Failed(entry);
    }));
    // A file may end with a hole.
    if (entry.size > 0 && ::ftruncate(file.get(), entry.size) != 0) return Failed(entry);
    return Finish(entry, file.get());
  }

  Status MakeDirectory(const TarEntry& entry, const std::string& name) {
    if (::mkdirat(parent_.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return Failed(entry);
    const UniqueFd dir(
        ::openat(parent_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir.valid()) return Failed(entry);
    return Finish(entry, dir.get());
  }

  Status MakeSymlink(const TarEntry& entry, const std::string& name) {
    if (::symlinkat(entry.link.c_str(), parent_.get(), name.c_str()) != 0) return Failed(entry);
    return FinishNamed(entry, name);
  }

  Status MakeHardlink(const TarEntry& entry, const std::string& name) {
    SWELL_ASSIGN_OR_RETURN(std::vector<std::string> steps, Steps(entry.link));
    if (steps.empty()) return Refuse(entry.path, "is a link to no file");
    const std::string target = steps.back();
    steps.pop_back();
    const UniqueFd dir = OpenInRoot(root_.get(), Join(steps, "/"), O_PATH | O_DIRECTORY);
    if (dir.valid() &&
        ::linkat(dir.get(), target.c_str(), parent_.get(), name.c_str(), /*flags=*/0) == 0) {
      return Status::Ok();
    }
    return Refuse(entry.path,
                  StrCat("is a link to ", Quote(entry.link), ", which the layer does not hold"));
  }

  // Owner, mode, attributes and time of a file that cannot be opened.
  Status FinishNamed(const TarEntry& entry, const std::string& name) {
    if (::geteuid() == 0 && ::fchownat(parent_.get(), name.c_str(), static_cast<uid_t>(entry.uid),
                                       static_cast<gid_t>(entry.gid), AT_SYMLINK_NOFOLLOW) != 0) {
      return Failed(entry);
    }
    if (entry.kind == TarEntry::Kind::kFifo) {
      ::fchmodat(parent_.get(), name.c_str(), static_cast<mode_t>(entry.mode), 0);
    }
    const struct timespec times[] = {{entry.mtime, 0}, {entry.mtime, 0}};
    ::utimensat(parent_.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW);
    return Status::Ok();
  }

  // The owner first: changing it takes set-user-id bits and capabilities away.
  Status Finish(const TarEntry& entry, int fd) {
    if (::geteuid() == 0 &&
        ::fchown(fd, static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid)) != 0) {
      return Failed(entry);
    }
    if (::fchmod(fd, static_cast<mode_t>(entry.mode)) != 0) return Failed(entry);
    for (const auto& [name, value] : entry.xattrs) {
      // The rest would change what the overlay shows, or belongs to the host.
      const bool user = name.starts_with("user.") && !name.starts_with("user.overlay.");
      if (!user && name != "security.capability") continue;
      // Not every file system has them; without root capabilities cannot be given.
      [[maybe_unused]] const int set = ::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0);
    }
    const struct timespec times[] = {{entry.mtime, 0}, {entry.mtime, 0}};
    ::futimens(fd, times);
    return Status::Ok();
  }

  // Every file that is made in a directory changes its time.
  void NoteTime(std::string path, int64_t mtime) {
    time_bytes_ += path.size() + sizeof(std::pair<std::string, int64_t>);
    if (time_bytes_ <= kTimeBytesMax) times_.emplace_back(std::move(path), mtime);
  }
  void SetDirectoryTimes() {
    for (const auto& [path, mtime] : times_) {
      const UniqueFd dir = OpenInRoot(root_.get(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      const struct timespec times[] = {{mtime, 0}, {mtime, 0}};
      if (dir.valid()) ::futimens(dir.get(), times);
    }
  }

  // The links of an archive, which may stand before what they name. Those that lead nowhere are
  // left out: who needs the file says that it is missing.
  void LinkFiles() {
    for (TarEntry& entry : links_) {
      auto steps = Steps(entry.path);
      if (!steps.ok() || steps->empty()) continue;
      const std::string name = steps->back();
      steps->pop_back();
      if (entry.kind == TarEntry::Kind::kSymlink) entry.link = FromRoot(*steps, entry.link);
      if (!EnterParent(entry.path, *steps).ok()) continue;
      [[maybe_unused]] Status linked = MakeHardlink(entry, name);
    }
  }

  // What a link in this directory names, counted from the root; empty if it leads out.
  static std::string FromRoot(std::vector<std::string> steps, std::string_view link) {
    if (link.starts_with('/')) steps.clear();
    for (std::string_view step : Split(link, '/')) {
      if (step.empty() || step == ".") continue;
      if (step != "..") {
        steps.emplace_back(step);
      } else if (steps.empty()) {
        return "";
      } else {
        steps.pop_back();
      }
    }
    return Join(steps, "/");
  }

  UniqueFd root_;
  TarReader& tar_;
  const UnpackLimits& limits_;
  const Cancellation& cancel_;
  UniqueFd parent_;
  std::string parent_path_;
  int64_t room_checked_ = 0;
  std::vector<std::pair<std::string, int64_t>> times_;  // of directories
  size_t time_bytes_ = 0;
  std::vector<TarEntry> links_;
};

Status UnpackAll(const std::string& to_dir,
                 TarReader& tar,
                 const UnpackLimits& limits,
                 const Cancellation& cancel,
                 bool files_only) {
  UniqueFd root(::open(to_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return ErrnoStatus(errno, "open " + to_dir);
  return Unpacker(std::move(root), tar, limits, cancel).Run(to_dir, files_only);
}

// Many file systems have a fixed number of files.
Status CheckFiles(const struct statvfs& info) {
  const uint64_t reserve = std::min<uint64_t>(kReserveFiles, info.f_files / 20);
  if (info.f_ffree >= reserve) return Status::Ok();
  return Status(Code::kNoSpace,
                StrCat("the disk of the image store has no room for more files (", info.f_ffree,
                       " left): remove some, or remove images with swell images remove"));
}

}  // namespace

Status CheckRoom(const std::string& path, int64_t more) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0) return ErrnoStatus(errno, "read the size of " + path);
  SWELL_RETURN_IF_ERROR(CheckFiles(info));
  const uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  const uint64_t total = uint64_t{info.f_blocks} * info.f_frsize;
  const uint64_t reserve = std::min(kReserveBytes, total / 20);
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(more, 0));
  if (free >= reserve && free - reserve >= wanted) return Status::Ok();
  const std::string why =
      free < reserve ? StrCat("is full (", free >> 20, " MiB left)")
                     : StrCat("has no room for a layer of ", wanted >> 20, " MiB (", free >> 20,
                              " MiB left, ", reserve >> 20, " of which stay free)");
  return Status(Code::kNoSpace, StrCat("the disk of the image store ", why,
                                       ": free some, or remove images with swell images remove"));
}

Result<std::string> UnpackLayer(PackedInput& layer,
                                const std::string& to_dir,
                                const UnpackLimits& limits,
                                const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(auto tar, TarReader::Open(layer));
  SWELL_RETURN_IF_ERROR(UnpackAll(to_dir, *tar, limits, cancel, /*files_only=*/false));
  return tar->Finish();
}

Status UnpackFiles(const std::string& file, const std::string& to_dir, const Cancellation& cancel) {
  SWELL_ASSIGN_OR_RETURN(UniqueFd fd, OpenToRead(file));
  FileInput input(std::move(fd));
  SWELL_ASSIGN_OR_RETURN(auto tar, TarReader::Open(input));
  return UnpackAll(to_dir, *tar, UnpackLimits(), cancel, /*files_only=*/true);
}

}  // namespace swell::images
