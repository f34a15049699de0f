#include "ops/cluster/cluster_record.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/net/tls/tls.h"
#include "ops/cluster/last_port.h"

namespace swell::ops {
namespace {

constexpr size_t kRecordBytesMax = 1 << 16;
// What a cluster is, in contrast to how one start of it runs.
constexpr std::string_view kShape[] = {
    "nodes",           "gpus-per-node", "cpus",     "memory", "control-plane-nodes",
    "system-reserved", "runtime",       "pod-cidr", "listen"};

std::string PathOf(const DataDir& dir) { return dir.path + "/cluster.json"; }
std::string KeyFile(const DataDir& dir, std::string_view name) {
  return StrCat(dir.path, "/pki/", name);
}

const cli::Flag* FindFlag(const cli::Flags& flags, std::string_view name) {
  return flags.Find(StrCat("--", name));
}

std::string ValueOf(const cli::Flag& flag) {
  if (flag.kind == cli::Flag::Kind::kInt) {
    return std::to_string(*static_cast<const int64_t*>(flag.to));
  }
  return *static_cast<const std::string*>(flag.to);
}

// False: the text is not a value of the flag.
bool SetValue(const cli::Flag& flag, const std::string& text) {
  if (flag.kind != cli::Flag::Kind::kInt) {
    *static_cast<std::string*>(flag.to) = text;
    return true;
  }
  const auto number = ParseInt(text);
  if (number) *static_cast<int64_t*>(flag.to) = *number;
  return number.has_value();
}

std::string DigestOf(const std::string& path) {
  auto bytes = ReadFile(path, kRecordBytesMax);
  return bytes.ok() ? net::Sha256Hex(*bytes) : "";
}

// Whether anybody but the owner may use the file so.
bool HasMode(const std::string& path, mode_t mode) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && (info.st_mode & mode) != 0;
}

// What people may put into the directory before the first start, and what Swell's own commands
// and failed starts leave there.
bool IsOurs(const std::string& name) {
  static constexpr std::string_view kNames[] = {
      "pki",        "images",    "images.yaml", "registries.yaml", "image-store", "cluster.json",
      "kubeconfig", "port",      "pods",        "volumes",         "kept-logs",   "checkpoints",
      "cycles",     "lost+found"};
  return name.starts_with("swell") ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Status CheckModes(const DataDir& dir) {
  if (HasMode(dir.path, S_IWOTH)) {
    return Status(Code::kForbidden, StrCat(dir.path,
                                           ": every user of this machine may write there; "
                                           "take that away: chmod o-w ",
                                           dir.path));
  }
  for (const char* name : {"ca.key", "sa.key", "admin.key", "server.key", "secrets.key"}) {
    const std::string path = KeyFile(dir, name);
    if (!HasMode(path, S_IRWXG | S_IRWXO)) continue;
    return Status(
        Code::kForbidden,
        StrCat(path, ": other users may read this key; take that away: chmod 600 ", path));
  }
  return Status::Ok();
}

Status CheckKey(const DataDir& dir, const char* name, const std::string& known) {
  const std::string path = KeyFile(dir, name);
  const std::string digest = DigestOf(path);
  if (digest == known) return Status::Ok();
  return Status(Code::kUnauthorized,
                StrCat(path, digest.empty() ? " is missing" : " is not the one of this cluster",
                       "; kubeconfigs and tokens of users depend on it; ", RestoreHint(dir),
                       ". swell up --new-keys starts with new keys; every user then needs a new "
                       "kubeconfig"));
}

}  // namespace

Result<std::optional<ClusterRecord>> ReadClusterRecord(const DataDir& dir) {
  auto text = ReadFile(PathOf(dir), kRecordBytesMax);
  if (!text.ok() && text.status().code() == Code::kNotFound) return std::optional<ClusterRecord>();
  if (!text.ok()) return text.status();
  const auto parsed = json::Parse(*text);
  if (!parsed.ok() || !parsed->is_object()) {
    return Status(Code::kInvalid, StrCat(PathOf(dir),
                                         ": no record of a cluster; remove the file, and give the "
                                         "cluster's flags once"));
  }
  ClusterRecord record;
  for (const auto& [name, value] : json::GetObject(*parsed, {"flags"})) {
    if (value.is_string()) {
      record.flags.emplace(std::string(name.data(), name.size()), json::View(value.get_string()));
    }
  }
  record.authority = json::GetString(*parsed, {"authority"});
  record.account_key = json::GetString(*parsed, {"accountKey"});
  record.port = static_cast<uint16_t>(json::GetInt(*parsed, {"port"}));
  return std::optional<ClusterRecord>(std::move(record));
}

Status WriteClusterRecord(const DataDir& dir, const ClusterRecord& record) {
  json::Object flags;
  for (const auto& [name, value] : record.flags) flags[name] = value;
  const json::Value text = json::Object{{"flags", std::move(flags)},
                                        {"authority", record.authority},
                                        {"accountKey", record.account_key},
                                        {"port", record.port}};
  return WriteFileAtomically(PathOf(dir), json::PrintPretty(text) + "\n", 0644);
}

Result<std::map<std::string, std::string>> TakeShape(const cli::Flags& flags,
                                                     const std::optional<ClusterRecord>& record,
                                                     const AllowedChanges& allowed) {
  std::map<std::string, std::string> shape;
  std::vector<std::string> differs;
  for (std::string_view name : kShape) {
    const cli::Flag* flag = FindFlag(flags, name);
    if (flag == nullptr) continue;
    const std::string key(name);
    const auto known = record ? record->flags.find(key) : decltype(record->flags.end()){};
    const bool remembered = record && !allowed.shape && known != record->flags.end();
    if (!flag->seen) {
      if (!remembered) continue;
      if (!SetValue(*flag, known->second)) {
        return Status(Code::kInvalid, StrCat("cluster.json: flags.", name, ": ",
                                             Quote(known->second), " is not one of its values"));
      }
      shape[key] = known->second;
      continue;
    }
    shape[key] = ValueOf(*flag);
    if (!record || allowed.shape || (remembered && known->second == shape[key])) continue;
    differs.push_back(StrCat("--", name, " ", shape[key], " (it was started ",
                             remembered ? StrCat("with ", known->second) : "without this flag",
                             ")"));
  }
  if (!differs.empty()) {
    return Status(
        Code::kConflict,
        StrCat(
            "the cluster in this directory has another shape: ", Join(differs, ", "),
            "; leave the flags out to start it as it was, or add --reshape to give it the shape of "
            "these flags alone"));
  }
  return shape;
}

Status CheckClusterFiles(const DataDir& dir,
                         const std::optional<ClusterRecord>& record,
                         const AllowedChanges& allowed) {
  SWELL_RETURN_IF_ERROR(CheckModes(dir));
  // A cluster that was started once has a file of its port, and then a kubeconfig.
  const bool began =
      record.has_value() || FileExists(dir.PortFile()) || FileExists(dir.Kubeconfig());
  if (!began) return Status::Ok();
  struct stat info;
  const bool there = ::stat(dir.Database().c_str(), &info) == 0;
  if (!there || info.st_size == 0) {
    return Status(Code::kNotFound,
                  StrCat(dir.Database(), there ? " is empty" : " is missing",
                         ", although a cluster was started in ", dir.path, "; ", RestoreHint(dir),
                         ". For a new cluster, take another --data-dir or remove this directory"));
  }
  if (!record && !allowed.shape) {
    return Status(Code::kNotFound,
                  StrCat(PathOf(dir),
                         " is missing, which remembers the nodes and addresses of the cluster in ",
                         dir.path, "; ", RestoreHint(dir),
                         ". Or add --reshape to give it the shape of these flags alone"));
  }
  if (allowed.keys || !record) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckKey(dir, "ca.crt", record->authority));
  SWELL_RETURN_IF_ERROR(CheckKey(dir, "sa.key", record->account_key));
  if (!FileExists(KeyFile(dir, "ca.key"))) {
    return Status(Code::kUnauthorized,
                  StrCat(KeyFile(dir, "ca.key"), " is missing; ", RestoreHint(dir)));
  }
  return Status::Ok();
}

Status CheckNotRunning(const DataDir& dir, const AllowedChanges& allowed) {
  const auto running = FindRunning(dir);
  if (!running) return Status::Ok();
  return Status(Code::kConflict,
                StrCat("a cluster already runs in ", dir.path, " (process ", running->pid,
                       allowed.shape ? "); to start it with these flags, stop it first: "
                                     : "); stop it with: ",
                       "swell down --data-dir ", dir.path));
}

Status CheckDirectoryIsOurs(const DataDir& dir) {
  if (!FileExists(dir.path)) return Status::Ok();
  const auto listed = ListDir(dir.path);
  if (!listed.ok()) return listed.status().WithContext("data directory");
  const std::vector<std::string>& names = *listed;
  if (names.empty() || std::any_of(names.begin(), names.end(), IsOurs)) return Status::Ok();
  return Status(Code::kConflict,
                StrCat("the data directory ", dir.path, " holds ", Quote(names[0]),
                       names.size() > 1 ? StrCat(" and ", names.size() - 1, " more") : "",
                       ", and no cluster; name a directory that is empty or does not exist"));
}

Status KeepPort(const DataDir& dir, const std::optional<ClusterRecord>& record) {
  if (!record || record->port == 0 || LastPort(dir.PortFile()) != 0) return Status::Ok();
  return WriteFileAtomically(dir.PortFile(), std::to_string(record->port), 0644);
}

void TakeFiles(const DataDir& dir, ClusterRecord& record) {
  record.port = LastPort(dir.PortFile());
  record.authority = DigestOf(KeyFile(dir, "ca.crt"));
  record.account_key = DigestOf(KeyFile(dir, "sa.key"));
}

}  // namespace swell::ops
