#include "kube/images/users.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::images {
namespace {

constexpr size_t kFileBytesMax = 4 << 20;
constexpr size_t kGroupsMax = 1000;

// A plain file of /etc as the topmost layer has it. Links are not followed: they might lead into
// another layer.
std::string ReadEtc(const std::vector<std::string>& layers, const char* name) {
  const std::string path = StrCat("etc/", name);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const UniqueFd root(::open(layer->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct open_how how = {};
    how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const UniqueFd file(
        static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
    struct stat info;
    if (!file.valid() || ::fstat(file.get(), &info) != 0) continue;
    if (!S_ISREG(info.st_mode)) return "";  // removed by this layer, or nothing to read
    auto text = ReadFile(StrCat("/proc/self/fd/", file.get()), kFileBytesMax);
    return text.ok() ? std::move(*text) : "";
  }
  return "";
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
