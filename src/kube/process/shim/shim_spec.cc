#include "kube/process/shim/shim_spec.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "json/texts.h"

namespace swell::process {
namespace {

json::Array Pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  json::Array out;
  for (const auto& [first, second] : pairs) {
    out.push_back(json::Array{json::Value(first), json::Value(second)});
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> ReadPairs(const json::Value& root,
                                                           json::Path path) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const json::Value& pair : json::GetArray(root, path)) {
    if (!pair.is_array() || pair.get_array().size() != 2) continue;
    const json::Array& both = pair.get_array();
    if (!both[0].is_string() || !both[1].is_string()) continue;
    out.emplace_back(json::View(both[0].get_string()), json::View(both[1].get_string()));
  }
  return out;
}

std::string Text(const json::Value& root, std::string_view key) {
  return std::string(json::GetString(root, {key}));
}

std::optional<int64_t> OptionalInt(const json::Value& root, std::string_view key) {
  const json::Value* value = json::Find(root, {key});
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return value->get_int64();
}

json::Value ToJson(const ShimHook& hook) {
  return json::Object{{"path", hook.path},
                      {"args", json::TextArray(hook.args)},
                      {"env", json::TextArray(hook.env)},
                      {"timeout", hook.timeout_s}};
}

ShimHook ReadHook(const json::Value& value) {
  return {Text(value, "path"), json::Texts(json::GetArray(value, {"args"})),
          json::Texts(json::GetArray(value, {"env"})), json::GetInt(value, {"timeout"}, 10)};
}

json::Value ToJson(const ShimMount& mount) {
  return json::Object{{"kind", mount.kind == ShimMount::Kind::kBind ? "bind" : "tmpfs"},
                      {"source", mount.source},
                      {"target", mount.target},
                      {"readOnly", mount.read_only},
                      {"size", mount.size_bytes},
                      {"subPath", mount.sub_path},
                      {"owners", static_cast<int64_t>(mount.owners)},
                      {"ofHost", mount.of_host}};
}

ShimMount ReadMount(const json::Value& value) {
  ShimMount mount;
  mount.kind = Text(value, "kind") == "tmpfs" ? ShimMount::Kind::kTmpfs : ShimMount::Kind::kBind;
  mount.source = Text(value, "source");
  mount.target = Text(value, "target");
  mount.read_only = json::GetBool(value, {"readOnly"});
  mount.size_bytes = json::GetInt(value, {"size"});
  mount.sub_path = Text(value, "subPath");
  mount.owners = OwnersFromJson(json::GetInt(value, {"owners"}));
  mount.of_host = json::GetBool(value, {"ofHost"});
  return mount;
}

json::Value ToJson(const CgroupDir& dir) {
  return json::Object{
      {"path", dir.path}, {"values", Pairs(dir.values)}, {"devices", json::TextArray(dir.devices)}};
}

CgroupDir ReadCgroup(const json::Value& value) {
  return {Text(value, "path"), ReadPairs(value, {"values"}),
          json::Texts(json::GetArray(value, {"devices"}))};
}

template <class Part>
json::Array List(const std::vector<Part>& parts) {
  json::Array out;
  for (const Part& part : parts) out.push_back(ToJson(part));
  return out;
}

}  // namespace

ShimMount::Owners OwnersFromJson(int64_t number) {
  const bool known = number >= 0 && number <= static_cast<int64_t>(ShimMount::Owners::kMade);
  return known ? static_cast<ShimMount::Owners>(number) : ShimMount::Owners::kNobody;
}

std::string_view IsolationName(Isolation isolation) {
  switch (isolation) {
    case Isolation::kFull:
      return "full";
    case Isolation::kUser:
      return "user";
    case Isolation::kNone:
      return "none";
  }
  return "none";
}

json::Value ShimSpec::ToJson() const {
  json::Object out{{"argv", json::TextArray(argv)}, {"env", json::TextArray(env)}, {"cwd", cwd}};
  if (uid) out["uid"] = *uid;
  if (gid) out["gid"] = *gid;
  json::Array group_list;
  for (int64_t group : groups) group_list.push_back(group);
  out["groups"] = std::move(group_list);
  out["isolation"] = IsolationName(isolation);
  if (beside) out["beside"] = json::Object{{"pid", beside->pid}, {"start", beside->start}};
  out["hostname"] = hostname;
  out["netns"] = netns;
  out["hidden"] = json::TextArray(hidden);
  out["hostTmp"] = host_tmp;
  out["readOnlyRoot"] = read_only_root;
  if (has_image) {
    out["image"] = json::Object{{"layers", json::TextArray(image_layers)},
                                {"volumes", json::TextArray(image_volumes)}};
  }
  out["stopSignal"] = stop_signal;
  out["confined"] = confined;
  out["userNamespace"] = user_namespace;
  out["firstId"] = first_id;
  out["capabilities"] = static_cast<int64_t>(capabilities);
  out["noNewPrivileges"] = no_new_privileges;
  out["seccompFile"] = seccomp_file;
  out["appArmor"] = app_armor;
  out["privileged"] = privileged;
  out["unmaskedProc"] = unmasked_proc;
  out["hostPID"] = host_pid;
  out["hostIPC"] = host_ipc;
  out["devices"] = Pairs(devices);
  out["hooks"] = List(hooks);
  out["sysctls"] = Pairs(sysctls);
  out["mounts"] = List(mounts);
  out["cgroups"] = List(cgroups);
  out["podCgroups"] = List(pod_cgroups);
  out["oomFile"] = oom_file;
  out["logPath"] = log_path;
  out["oomScore"] = oom_score;
  out["logBytesMax"] = log_bytes_max;
  out["logFilesMax"] = log_files_max;
  out["stdin"] = open_stdin;
  out["stdinOnce"] = stdin_once;
  out["tty"] = tty;
  return out;
}

Result<ShimSpec> ShimSpec::FromJson(const json::Value& value) {
  ShimSpec spec;
  spec.argv = json::Texts(json::GetArray(value, {"argv"}));
  if (spec.argv.empty()) return Status(Code::kInvalid, "argv: must not be empty");
  spec.env = json::Texts(json::GetArray(value, {"env"}));
  spec.cwd = Text(value, "cwd");
  spec.uid = OptionalInt(value, "uid");
  spec.gid = OptionalInt(value, "gid");
  for (const json::Value& group : json::GetArray(value, {"groups"})) {
    if (group.is_int64()) spec.groups.push_back(group.get_int64());
  }
  std::string isolation = Text(value, "isolation");
  spec.isolation = isolation == "full"   ? Isolation::kFull
                   : isolation == "user" ? Isolation::kUser
                                         : Isolation::kNone;
  if (json::Find(value, {"beside"}) != nullptr) {
    spec.beside = {static_cast<pid_t>(json::GetInt(value, {"beside", "pid"})),
                   static_cast<uint64_t>(json::GetInt(value, {"beside", "start"}))};
  }
  spec.hostname = Text(value, "hostname");
  spec.netns = Text(value, "netns");
  spec.hidden = json::Texts(json::GetArray(value, {"hidden"}));
  spec.host_tmp = json::GetBool(value, {"hostTmp"});
  spec.read_only_root = json::GetBool(value, {"readOnlyRoot"});
  spec.has_image = json::Find(value, {"image"}) != nullptr;
  spec.image_layers = json::Texts(json::GetArray(value, {"image", "layers"}));
  spec.image_volumes = json::Texts(json::GetArray(value, {"image", "volumes"}));
  spec.stop_signal = static_cast<int>(json::GetInt(value, {"stopSignal"}));
  spec.confined = json::GetBool(value, {"confined"});
  spec.user_namespace = Text(value, "userNamespace");
  spec.first_id = json::GetInt(value, {"firstId"});
  spec.capabilities = static_cast<uint64_t>(json::GetInt(value, {"capabilities"}));
  spec.no_new_privileges = json::GetBool(value, {"noNewPrivileges"});
  spec.seccomp_file = Text(value, "seccompFile");
  spec.app_armor = Text(value, "appArmor");
  spec.privileged = json::GetBool(value, {"privileged"});
  spec.unmasked_proc = json::GetBool(value, {"unmaskedProc"});
  spec.host_pid = json::GetBool(value, {"hostPID"});
  spec.host_ipc = json::GetBool(value, {"hostIPC"});
  spec.devices = ReadPairs(value, {"devices"});
  for (const json::Value& one : json::GetArray(value, {"hooks"}))
    spec.hooks.push_back(ReadHook(one));
  spec.sysctls = ReadPairs(value, {"sysctls"});
  for (const json::Value& one : json::GetArray(value, {"mounts"})) {
    spec.mounts.push_back(ReadMount(one));
  }
  for (const json::Value& one : json::GetArray(value, {"cgroups"})) {
    spec.cgroups.push_back(ReadCgroup(one));
  }
  for (const json::Value& one : json::GetArray(value, {"podCgroups"})) {
    spec.pod_cgroups.push_back(ReadCgroup(one));
  }
  spec.oom_file = Text(value, "oomFile");
  spec.log_path = Text(value, "logPath");
  spec.oom_score = static_cast<int>(json::GetInt(value, {"oomScore"}));
  spec.log_bytes_max = json::GetInt(value, {"logBytesMax"}, spec.log_bytes_max);
  spec.log_files_max = static_cast<int>(json::GetInt(value, {"logFilesMax"}, spec.log_files_max));
  spec.open_stdin = json::GetBool(value, {"stdin"});
  spec.stdin_once = json::GetBool(value, {"stdinOnce"});
  spec.tty = json::GetBool(value, {"tty"});
  return spec;
}

Result<ShimSpec> ReadShimSpec(const std::string& dir) {
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(dir + "/spec.json", 16 << 20));
  SWELL_ASSIGN_OR_RETURN(json::Value value, json::Parse(text));
  return ShimSpec::FromJson(value);
}

Result<ShimState> ReadShimState(const std::string& dir) {
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(dir + "/state.json", 65536));
  SWELL_ASSIGN_OR_RETURN(json::Value value, json::Parse(text));
  return ShimState::FromJson(value);
}

json::Value ShimState::ToJson() const {
  return json::Object{{"shimPid", shim_pid},     {"shimStart", shim_start}, {"initPid", init_pid},
                      {"initStart", init_start}, {"startedNs", started_ns}, {"ownPids", own_pids}};
}

Result<ShimState> ShimState::FromJson(const json::Value& value) {
  ShimState state;
  state.shim_pid = static_cast<pid_t>(json::GetInt(value, {"shimPid"}));
  state.shim_start = static_cast<uint64_t>(json::GetInt(value, {"shimStart"}));
  state.init_pid = static_cast<pid_t>(json::GetInt(value, {"initPid"}));
  state.init_start = static_cast<uint64_t>(json::GetInt(value, {"initStart"}));
  state.started_ns = json::GetInt(value, {"startedNs"});
  state.own_pids = json::GetBool(value, {"ownPids"});
  if (state.shim_pid <= 1) return Status(Code::kInvalid, "shimPid: not a process id");
  return state;
}

json::Value ShimExit::ToJson() const {
  return json::Object{{"code", code},
                      {"signal", signal},
                      {"oom", oom},
                      {"startedNs", started_ns},
                      {"finishedNs", finished_ns}};
}

Result<ShimExit> ShimExit::FromJson(const json::Value& value) {
  if (!value.is_object()) return Status(Code::kInvalid, "exit.json: not an object");
  ShimExit out;
  out.code = static_cast<int>(json::GetInt(value, {"code"}, 255));
  out.signal = static_cast<int>(json::GetInt(value, {"signal"}));
  out.oom = json::GetBool(value, {"oom"});
  out.started_ns = json::GetInt(value, {"startedNs"});
  out.finished_ns = json::GetInt(value, {"finishedNs"});
  return out;
}

uint64_t ProcessStartTime(pid_t pid) {
  auto stat = ReadFile(StrCat("/proc/", pid, "/stat"), 4096);
  if (!stat.ok()) return 0;
  // The name, in parentheses, may hold anything; the fields after it are numbers.
  size_t end = stat->rfind(')');
  if (end == std::string::npos) return 0;
  std::vector<std::string_view> fields = Split(std::string_view(*stat).substr(end + 2), ' ');
  if (fields.size() < 20) return 0;
  // A zombie has ended, even if it was not collected yet.
  if (fields[0] == "Z" || fields[0] == "X") return 0;
  return ParseUint(fields[19]).value_or(0);
}

namespace {

std::string NewOf(const std::string& path) { return path + ".new"; }

Result<int> OpenNew(const std::string& path, int mode) {
  const std::string temporary = NewOf(path);
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return ErrnoStatus(errno, "create " + temporary);
  ::fchmod(fd, static_cast<mode_t>(mode));
  return fd;
}

}  // namespace

Status PrepareReplace(const std::string& path, int mode) {
  SWELL_ASSIGN_OR_RETURN(const int fd, OpenNew(path, mode));
  ::close(fd);
  return Status::Ok();
}

Status ReplaceFile(const std::string& path, std::string_view bytes, int mode) {
  const std::string temporary = NewOf(path);
  SWELL_ASSIGN_OR_RETURN(const int fd, OpenNew(path, mode));
  int error = 0;
  while (!bytes.empty() && error == 0) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      error = errno == EINTR ? 0 : errno;
    } else {
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  ::close(fd);
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Status::Ok();
  ::unlink(temporary.c_str());
  return ErrnoStatus(error, "write " + path);
}

}  // namespace swell::process
