#include "kube/process/files/cdi.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/strings.h"
#include "json/texts.h"
#include "json/yaml.h"

namespace swell::process {
namespace {

constexpr size_t kFileBytesMax = 8 << 20;
constexpr int64_t kHookSeconds = 10;

struct CdiFile {
  std::string path;
  json::Value spec;
};

Status WrongCdi(const std::string& path, std::string_view what, std::string_view why) {
  return Status(Code::kForbidden, StrCat(path, ": ", what, ": ", why));
}

Result<json::Value> ReadSpec(const std::string& path) {
  SWELL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  if (path.ends_with(".json")) return json::Parse(text);
  SWELL_ASSIGN_OR_RETURN(std::vector<json::Value> documents, json::ParseYaml(text));
  if (documents.size() == 1) return std::move(documents[0]);
  return Status(Code::kInvalid, "must be one document");
}

// What is not understood may be what keeps devices apart: it is refused.
Status CheckFields(const std::string& path,
                   const json::Value& value,
                   std::string_view what,
                   std::initializer_list<std::string_view> known) {
  if (!value.is_object()) return WrongCdi(path, what, "must be an object");
  for (const auto& item : value.get_object()) {
    if (std::find(known.begin(), known.end(), std::string_view(item.key())) == known.end()) {
      return WrongCdi(path, what,
                      StrCat("field ", Quote(std::string_view(item.key())), " is not supported"));
    }
  }
  return Status::Ok();
}

Status AddHook(const std::string& path, const json::Value& hook, CdiEdits& edits) {
  SWELL_RETURN_IF_ERROR(
      CheckFields(path, hook, "hooks", {"hookName", "path", "args", "env", "timeout"}));
  const std::string_view name = json::GetString(hook, {"hookName"});
  // All of these come before the command, when the container's files are there.
  if (name != "prestart" && name != "createRuntime" && name != "createContainer") {
    return WrongCdi(path, "hooks", StrCat("hookName ", Quote(name), " is not supported"));
  }
  ShimHook out{
      std::string(json::GetString(hook, {"path"})), json::Texts(json::GetArray(hook, {"args"})),
      json::Texts(json::GetArray(hook, {"env"})), json::GetInt(hook, {"timeout"}, kHookSeconds)};
  if (!out.path.starts_with('/')) return WrongCdi(path, "hooks", "path must be absolute");
  if (out.args.empty()) out.args = {out.path};
  edits.hooks.push_back(std::move(out));
  return Status::Ok();
}

Status AddNodes(const std::string& path, const json::Value& from, CdiEdits& edits) {
  for (const json::Value& node : json::GetArray(from, {"deviceNodes"})) {
    SWELL_RETURN_IF_ERROR(CheckFields(
        path, node, "deviceNodes",
        {"path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"}));
    const std::string inside(json::GetString(node, {"path"}));
    const std::string host(json::GetString(node, {"hostPath"}, inside));
    if (!inside.starts_with("/dev/") || !host.starts_with('/')) {
      return WrongCdi(path, "deviceNodes", StrCat("path ", Quote(inside), " must be below /dev"));
    }
    edits.nodes.emplace_back(host, inside);
  }
  return Status::Ok();
}

Status AddEdits(const std::string& path, const json::Value& from, CdiEdits& edits) {
  SWELL_RETURN_IF_ERROR(CheckFields(path, from, "containerEdits",
                                    {"env", "deviceNodes", "mounts", "hooks", "additionalGids"}));
  for (const std::string& item : json::Texts(json::GetArray(from, {"env"}))) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      return WrongCdi(path, "env", StrCat(Quote(item), " must be NAME=VALUE"));
    }
    edits.env.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  SWELL_RETURN_IF_ERROR(AddNodes(path, from, edits));
  for (const json::Value& mount : json::GetArray(from, {"mounts"})) {
    SWELL_RETURN_IF_ERROR(
        CheckFields(path, mount, "mounts", {"hostPath", "containerPath", "options", "type"}));
    const std::vector<std::string> options = json::Texts(json::GetArray(mount, {"options"}));
    ShimMount out;
    out.source = json::GetString(mount, {"hostPath"});
    out.target = json::GetString(mount, {"containerPath"});
    out.read_only = std::find(options.begin(), options.end(), "ro") != options.end();
    if (!out.source.starts_with('/') || !out.target.starts_with('/')) {
      return WrongCdi(path, "mounts", "hostPath and containerPath must be absolute");
    }
    edits.mounts.push_back(std::move(out));
  }
  for (const json::Value& hook : json::GetArray(from, {"hooks"})) {
    SWELL_RETURN_IF_ERROR(AddHook(path, hook, edits));
  }
  for (const json::Value& group : json::GetArray(from, {"additionalGids"})) {
    if (group.is_int64()) edits.groups.push_back(group.get_int64());
  }
  return Status::Ok();
}

// The files about the kind, the one that counts last.
std::vector<CdiFile> FilesOf(const std::vector<std::string>& dirs,
                             std::string_view kind,
                             std::string& broken) {
  std::vector<CdiFile> files;
  for (const std::string& dir : dirs) {
    auto names = ListDir(dir);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const bool spec =
          name.ends_with(".json") || name.ends_with(".yaml") || name.ends_with(".yml");
      if (!spec) continue;
      const std::string path = StrCat(dir, "/", name);
      auto read = ReadSpec(path);
      if (!read.ok()) {
        // A user who misses a device needs to know, no other.
        broken += StrCat("; ", path, " cannot be read: ", read.status().message());
      } else if (json::GetString(*read, {"kind"}) == kind) {
        files.push_back({path, std::move(*read)});
      }
    }
  }
  return files;
}

const json::Value* FindDevice(const json::Value& spec, std::string_view name) {
  for (const json::Value& device : json::GetArray(spec, {"devices"})) {
    if (json::GetString(device, {"name"}) == name) return &device;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> CdiDirs() { return {"/etc/cdi", "/var/run/cdi"}; }

Result<std::optional<CdiEdits>> ReadCdiEdits(const std::vector<std::string>& dirs,
                                             std::string_view kind,
                                             const std::vector<std::string>& devices) {
  std::string broken;
  const std::vector<CdiFile> files = FilesOf(dirs, kind, broken);
  if (files.empty()) return std::optional<CdiEdits>();
  CdiEdits edits;
  std::vector<const CdiFile*> used;
  for (const std::string& name : devices) {
    const json::Value* device = nullptr;
    for (auto file = files.rbegin(); file != files.rend() && device == nullptr; ++file) {
      device = FindDevice(file->spec, name);
      if (device == nullptr) continue;
      if (std::find(used.begin(), used.end(), &*file) == used.end()) used.push_back(&*file);
      if (const json::Value* own = json::Find(*device, {"containerEdits"})) {
        SWELL_RETURN_IF_ERROR(AddEdits(file->path, *own, edits));
      }
    }
    if (device == nullptr) {
      return Status(
          Code::kForbidden,
          StrCat("device ", kind, "=", name, " is in no CDI file of this node (", Join(dirs, ", "),
                 "): make them anew, with nvidia-ctk cdi generate", broken));
    }
  }
  for (const CdiFile* file : used) {
    if (const json::Value* common = json::Find(file->spec, {"containerEdits"})) {
      SWELL_RETURN_IF_ERROR(AddEdits(file->path, *common, edits));
    }
  }
  return std::optional<CdiEdits>(std::move(edits));
}

}  // namespace swell::process
