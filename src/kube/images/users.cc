#include "kube/images/users.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::images {
namespace {

constexpr size_t kFileBytesMax = 4 << 20;
constexpr size_t kGroupsMax = 1000;
constexpr int kLinksMax = 40;

// What one layer itself has under a path. No link is followed, the last one neither.
UniqueFd OpenInLayer(int layer, const std::string& path) {
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, layer, path.c_str(), &how, sizeof how)));
}

std::string PathOf(int fd) { return StrCat("/proc/self/fd/", fd); }

mode_t TypeOf(int fd) {
  struct stat info;
  return ::fstat(fd, &info) == 0 ? info.st_mode & S_IFMT : 0;
}

bool IsOpaque(int dir) {
  char value = 0;
  const std::string path = PathOf(dir);
  return (::getxattr(path.c_str(), "trusted.overlay.opaque", &value, 1) == 1 && value == 'y') ||
         (::getxattr(path.c_str(), "user.overlay.opaque", &value, 1) == 1 && value == 'y');
}

// Whether the layer, which has nothing under the path, hides what lower ones have there.
bool Hides(int layer, const std::string& path) {
  for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    const UniqueFd above = OpenInLayer(layer, path.substr(0, end));
    if (!above.valid()) return false;
    if (TypeOf(above.get()) != S_IFDIR || IsOpaque(above.get())) return true;
  }
  return false;
}

// What a container sees under a path. No directory of it may be a link.
UniqueFd LookUp(const std::vector<std::string>& layers, const std::string& path) {
  for (auto dir = layers.rbegin(); dir != layers.rend(); ++dir) {
    const UniqueFd layer(::open(dir->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    UniqueFd found = OpenInLayer(layer.get(), path);
    if (found.valid()) return found;
    if (Hides(layer.get(), path)) break;
  }
  return UniqueFd();
}

// What a container finds under a path: links lead from layer to layer, never out of the image.
UniqueFd Resolve(const std::vector<std::string>& layers, std::string path) {
  UniqueFd found;
  std::string at;  // the part of the path that is resolved
  for (int links = 0; !path.empty();) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string step = path.substr(0, slash);
    path.erase(0, slash + 1);
    if (step.empty() || step == ".") continue;
    if (step == "..") {
      const size_t parent = at.rfind('/');
      at.erase(parent == std::string::npos ? 0 : parent);
      continue;
    }
    const std::string next = at.empty() ? step : StrCat(at, "/", step);
    found = LookUp(layers, next);
    if (!found.valid()) return found;
    if (TypeOf(found.get()) != S_IFLNK) {
      at = next;
      continue;
    }
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(found.get(), "", target, sizeof target);
    if (size <= 0 || ++links > kLinksMax) return UniqueFd();
    if (target[0] == '/') at.clear();
    path = StrCat(std::string_view(target, static_cast<size_t>(size)), "/", path);
  }
  return found;
}

std::string ReadEtc(const std::vector<std::string>& layers, const char* name) {
  const UniqueFd file = Resolve(layers, StrCat("etc/", name));
  if (!file.valid() || TypeOf(file.get()) != S_IFREG) return "";
  auto text = ReadFile(PathOf(file.get()), kFileBytesMax);
  return text.ok() ? std::move(*text) : "";
}

std::optional<int64_t> Id(std::string_view text) {
  auto id = ParseInt(text);
  return id && *id >= 0 && *id <= UINT32_MAX - 1 ? id : std::nullopt;
}

// The first line of the file whose field is this text.
std::vector<std::string_view> FindLine(std::string_view file, size_t field, std::string_view text) {
  for (std::string_view line : Split(file, '\n')) {
    std::vector<std::string_view> fields = Split(line, ':');
    if (fields.size() > field && fields.size() >= 3 && fields[field] == text) return fields;
  }
  return {};
}

}  // namespace

Result<ImageUser> FindImageUser(const std::vector<std::string>& layers, std::string_view user) {
  ImageUser out;
  const size_t colon = user.find(':');
  const std::string_view name = user.substr(0, colon).empty() ? "0" : user.substr(0, colon);
  const std::string passwd = ReadEtc(layers, "passwd");
  const auto number = Id(name);
  const std::vector<std::string_view> line = FindLine(passwd, number ? 2 : 0, name);
  if (!number && line.empty()) {
    return Status(Code::kInvalid,
                  StrCat("user ", Quote(name), " is not in the image's /etc/passwd"));
  }
  out.by_name = !number;
  out.uid = number ? *number : Id(line[2]).value_or(0);
  if (!number && !Id(line[2])) {
    return Status(Code::kInvalid,
                  StrCat("user ", Quote(name), " has no number in the image's /etc/passwd"));
  }
  if (line.size() > 3) out.gid = Id(line[3]).value_or(0);
  if (line.size() > 5 && line[5].starts_with('/')) out.home = line[5];
  const std::string groups = ReadEtc(layers, "group");
  const std::string_view group = colon == std::string_view::npos ? "" : user.substr(colon + 1);
  if (!group.empty()) {
    auto id = Id(group);
    if (!id) {
      const std::vector<std::string_view> found = FindLine(groups, 0, group);
      if (found.size() > 2) id = Id(found[2]);
    }
    if (!id) {
      return Status(Code::kInvalid,
                    StrCat("group ", Quote(group), " is not in the image's /etc/group"));
    }
    out.gid = *id;
    return out;  // a group that is named is the only one
  }
  if (line.empty()) return out;
  for (std::string_view entry : Split(groups, '\n')) {
    const std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() < 4 || out.groups.size() >= kGroupsMax) continue;
    const std::vector<std::string_view> members = Split(fields[3], ',');
    auto id = Id(fields[2]);
    if (id && std::find(members.begin(), members.end(), line[0]) != members.end()) {
      out.groups.push_back(*id);
    }
  }
  return out;
}

}  // namespace swell::images
