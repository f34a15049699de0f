#include "kube/process/shim/image_root.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/shim/id_map.h"

namespace swell::process {
namespace {

// The files of a layer belong to the ids of the pod that they belong to in the image.
Status MountLayer(const std::string& layer, int user_namespace, const std::string& at) {
  const UniqueFd files(::open(layer.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!files.valid()) return ErrnoStatus(errno, "open layer " + layer);
  auto mapped = CloneMapped(files.get(), user_namespace, MountAccess::kReadOnly);
  if (!mapped.ok()) return mapped.status().WithContext("layer " + layer);
  SWELL_RETURN_IF_ERROR(MakeDirs(at));
  return AttachMount(*mapped, at);
}

// The text of mount options fits a page: layers are named by short links in the container's
// directory, from which the kernel resolves them.
Status LinkLayers(const ShimSpec& spec, int user_namespace, std::string& lower) {
  SWELL_RETURN_IF_ERROR(MakeDirs("l/empty"));
  for (size_t i = 0; i < spec.image_layers.size(); ++i) {
    const std::string link = StrCat("l/", i);
    if (!spec.user_namespace.empty()) {
      SWELL_RETURN_IF_ERROR(MountLayer(spec.image_layers[i], user_namespace, link));
    } else if (::symlink(spec.image_layers[i].c_str(), link.c_str()) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, "link " + link);
    }
    // The overlay's first is the topmost, the image's first the lowest.
    lower = lower.empty() ? link : StrCat(link, ":", lower);
  }
  if (lower.empty()) lower = "l/empty";
  return Status::Ok();
}

Status MountOverlay(const std::string& root,
                    const std::string& lower,
                    const std::string& scratch,
                    bool user,
                    int64_t owner) {
  const std::string upper = scratch + "upper", work = scratch + "workdir";
  SWELL_RETURN_IF_ERROR(MakeDirs(upper));
  const auto id = static_cast<uid_t>(owner);
  if (owner != 0 && ::chown(upper.c_str(), id, id) != 0) return ErrnoStatus(errno, "give " + upper);
  SWELL_RETURN_IF_ERROR(MakeDirs(work));
  std::string options = StrCat("lowerdir=", lower, ",upperdir=", upper, ",workdir=", work);
  // A user namespace may not set the attributes of the other kind.
  if (user) options += ",userxattr";
  // As for the host's overlay: nothing of it needs to reach the disk.
  for (const char* more : {",volatile", ""}) {
    if (::mount("overlay", root.c_str(), "overlay", MS_NODEV, StrCat(options, more).c_str()) == 0) {
      return Status::Ok();
    }
  }
  return ErrnoStatus(errno, "mount the image's layers as an overlay");
}

}  // namespace

Status MountImageRoot(const ShimSpec& spec,
                      const std::string& dir,
                      const std::string& root,
                      int user_namespace) {
  if (::chdir(dir.c_str()) != 0) return ErrnoStatus(errno, "chdir " + dir);
  const bool user = spec.isolation == Isolation::kUser;
  std::string lower;
  SWELL_RETURN_IF_ERROR(LinkLayers(spec, user_namespace, lower));
  Status mounted = MountOverlay(root, lower, "", user, spec.first_id);
  if (!mounted.ok()) {
    // The data directory's file system may not serve as an upper layer; memory always does.
    SWELL_RETURN_IF_ERROR(MakeDirs("scratch"));
    if (::mount("tmpfs", "scratch", "tmpfs", 0, "mode=755") == 0) {
      mounted = MountOverlay(root, lower, "scratch/", user, spec.first_id);
    }
  }
  if (!mounted.ok()) {
    return mounted.WithContext(
        "this machine cannot run images, only names of the catalogue (swell images list)");
  }
  // Upper layer and layers are chosen by us; this name is the image's own affair.
  struct stat info;
  if (::lstat((root + "/.swell-old").c_str(), &info) != 0) return Status::Ok();
  return Status(Code::kInvalid, "the image holds /.swell-old, which is Swell's own place");
}

Status MakeSystemDirs(int64_t owner) {
  struct SystemDir {
    const char* path;
    bool may_be_link;
  };
  // What is mounted below /etc and /run is looked at each time: it stays in the container.
  constexpr SystemDir kDirs[] = {
      {"/proc", false}, {"/sys", false}, {"/dev", false}, {"/etc", true}, {"/run", true}};
  for (const auto& [dir, may_be_link] : kDirs) {
    struct stat info;
    const int found = may_be_link ? ::stat(dir, &info) : ::lstat(dir, &info);
    if (found == 0 && S_ISDIR(info.st_mode)) continue;
    if (::lstat(dir, &info) == 0) {
      return Status(Code::kInvalid, StrCat("the image's ", dir, " is not a directory"));
    }
    if (::mkdir(dir, 0755) != 0) return ErrnoStatus(errno, StrCat("make ", dir));
    const auto id = static_cast<uid_t>(owner);
    if (owner != 0 && ::chown(dir, id, id) != 0) return ErrnoStatus(errno, StrCat("give ", dir));
  }
  return Status::Ok();
}

}  // namespace swell::process
