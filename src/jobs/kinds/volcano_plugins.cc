#include "jobs/kinds/volcano_plugins.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/strings.h"
#include "jobs/kinds/launch_env.h"
#include "jobs/kinds/ssh_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;
using controllers::WrongField;

constexpr std::string_view kHostsFolder = "/etc/volcano";
constexpr std::string_view kKeyPath = "--ssh-key-file-path=";
// Hosts are pods, whose names other pods had before.
constexpr std::string_view kSshConfig = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n";
// SSH's server wants a directory that only its owner writes to, which a volume itself is not.
constexpr std::string_view kKeysInVolume = ".ssh";

// A plugin that tells a framework of its peers. Its arguments name the task of each part:
// --PART=TASK (by default a task of the part's name), and a port.
struct FrameworkPlugin {
  std::string_view name;
  int64_t port;
  std::array<std::string_view, 4> parts;
};
constexpr std::array<FrameworkPlugin, 3> kFrameworkPlugins = {{
    {"pytorch", kLaunchPort, {"master", "worker"}},
    {"tensorflow", 2222, {"ps", "worker", "chief", "evaluator"}},
    {"mpi", 22, {"master", "worker"}},
}};

struct FrameworkArguments {
  std::map<std::string_view, std::string> tasks;  // by part
  int64_t port = 0;
};

bool HasPlugin(const json::Value& job, std::string_view name) {
  return json::Find(job, {"spec", "plugins", name}) != nullptr;
}

bool HasHosts(const json::Value& job) {
  return HasPlugin(job, "svc") ||
         std::any_of(kFrameworkPlugins.begin(), kFrameworkPlugins.end(),
                     [&](const FrameworkPlugin& one) { return HasPlugin(job, one.name); });
}

bool HasKeys(const json::Value& job, const JobKindOptions& options) {
  return options.make_ssh_key && (HasPlugin(job, "ssh") || HasPlugin(job, "mpi"));
}

std::string WhatItTakes(const FrameworkPlugin& plugin) {
  std::string text = "must be ";
  for (std::string_view part : plugin.parts) {
    if (!part.empty()) text += StrCat("--", part, "=TASK, ");
  }
  return text + "or --port=NUMBER";
}

Result<FrameworkArguments> ReadFramework(const json::Value& job, const FrameworkPlugin& plugin) {
  FrameworkArguments says{.tasks = {}, .port = plugin.port};
  for (std::string_view part : plugin.parts) {
    if (!part.empty()) says.tasks[part] = part;
  }
  const json::Array& arguments = json::GetArray(job, {"spec", "plugins", plugin.name});
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string field = StrCat("spec.plugins.", plugin.name, "[", i, "]");
    if (!arguments[i].is_string()) return WrongField(field, "Invalid value: must be a string");
    const std::string_view whole = json::View(arguments[i].get_string());
    std::string_view text = whole;
    while (text.starts_with('-')) text.remove_prefix(1);
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
    const auto port = name == "port" ? ParseInt(value) : std::nullopt;
    // Pods of a gang start together: none waits for the master.
    const bool waits = plugin.name == "pytorch" && name.starts_with("wait-master-");
    if (const auto part = says.tasks.find(name); part != says.tasks.end() && !value.empty()) {
      part->second = value;
    } else if (port && *port > 0 && *port < 65536) {
      says.port = *port;
    } else if (!waits || equals == std::string_view::npos) {
      return controllers::WrongText(field, whole, WhatItTakes(plugin));
    }
  }
  return says;
}

Result<std::string> ReadKeyFolder(const json::Value& job) {
  std::string folder(kRootKeys);
  const json::Array& arguments = json::GetArray(job, {"spec", "plugins", "ssh"});
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view text =
        arguments[i].is_string() ? json::View(arguments[i].get_string()) : std::string_view();
    const std::string_view path = text.starts_with(kKeyPath) ? text.substr(kKeyPath.size()) : "";
    if (!path.starts_with('/')) {
      return controllers::WrongText(StrCat("spec.plugins.ssh[", i, "]"), text,
                                    "must be --ssh-key-file-path=DIRECTORY; Swell makes the keys");
    }
    folder = KeyFolder(path);
  }
  return folder;
}

std::string HostOf(const json::Value& job, const ReplicaSpec& task, int64_t index) {
  return StrCat(task.PodName(api::Name(job), index), ".", api::Name(job));
}

std::vector<std::string> Hosts(const json::Value& job,
                               const ReplicaSpec& task,
                               std::string_view after = "") {
  std::vector<std::string> hosts;
  for (int64_t i = 0; i < task.replicas; ++i) hosts.push_back(HostOf(job, task, i).append(after));
  return hosts;
}

// "VC_PS_WORKER_HOSTS" of task ps-worker.
std::string HostsName(const ReplicaSpec& task, std::string_view what) {
  std::string name = StrCat("VC_", task.type, "_", what);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

std::string HostsObject(const json::Value& job) { return StrCat(api::Name(job), "-svc"); }

void SetHosts(const JobMember& member, json::Value& pod) {
  for (const ReplicaSpec& task : member.spec.replicas) {
    SetEnv(pod, HostsName(task, "HOSTS"), Join(Hosts(member.job, task), ","));
    SetEnv(pod, HostsName(task, "NUM"), std::to_string(task.replicas));
  }
  const std::string name = HostsObject(member.job);
  MountVolume(pod, json::Object{{"name", name}, {"configMap", json::Object{{"name", name}}}},
              kHostsFolder, {"initContainers", "containers"});
}

void SetPyTorchEnv(const JobMember& member, const FrameworkArguments& says, json::Value& pod) {
  const ReplicaSpec* master = member.spec.Find(says.tasks.at("master"));
  if (master == nullptr) return;
  const ReplicaSpec* workers = member.spec.Find(says.tasks.at("worker"));
  AddContainerPort(pod, "pytorchjob-port", says.port);
  SetEnv(pod, "MASTER_ADDR", HostOf(member.job, *master, 0));
  SetEnv(pod, "MASTER_PORT", std::to_string(says.port));
  SetEnv(pod, "WORLD_SIZE",
         std::to_string(master->replicas + (workers != nullptr ? workers->replicas : 0)));
  if (&member.role == master) SetEnv(pod, "RANK", "0");
  if (&member.role == workers) SetEnv(pod, "RANK", std::to_string(member.index + 1));
}

void SetTfConfig(const JobMember& member, const FrameworkArguments& says, json::Value& pod) {
  json::Object cluster;
  std::string_view own;
  for (const auto& [part, task] : says.tasks) {
    const ReplicaSpec* role = member.spec.Find(task);
    if (role == nullptr) continue;
    if (role == &member.role) own = part;
    json::Array addresses;
    for (std::string& one : Hosts(member.job, *role, StrCat(":", says.port))) {
      addresses.emplace_back(std::move(one));
    }
    cluster[part] = std::move(addresses);
  }
  if (own.empty()) return;
  AddContainerPort(pod, "tfjob-port", says.port);
  SetEnv(pod, "TF_CONFIG",
         json::Print(json::Object{{"cluster", std::move(cluster)},
                                  {"task", json::Object{{"type", own}, {"index", member.index}}}}));
}

void SetMpiHosts(const JobMember& member, const FrameworkArguments& says, json::Value& pod) {
  const ReplicaSpec* workers = member.spec.Find(says.tasks.at("worker"));
  const bool leads = member.role.type == says.tasks.at("master");
  if (workers == nullptr || (!leads && workers != &member.role)) return;
  AddContainerPort(pod, "mpijob-port", says.port);
  if (leads) SetEnv(pod, "MPI_HOST", Join(Hosts(member.job, *workers), ","));
}

void SetFrameworks(const JobMember& member, json::Value& pod) {
  for (const FrameworkPlugin& plugin : kFrameworkPlugins) {
    if (!HasPlugin(member.job, plugin.name)) continue;
    const auto says = ReadFramework(member.job, plugin);
    if (!says.ok()) continue;
    if (plugin.name == "pytorch") SetPyTorchEnv(member, *says, pod);
    if (plugin.name == "tensorflow") SetTfConfig(member, *says, pod);
    if (plugin.name == "mpi") SetMpiHosts(member, *says, pod);
  }
}

json::Value HostsConfigMap(const json::Value& job, const JobSpec& spec) {
  json::Object data;
  for (const ReplicaSpec& task : spec.replicas) {
    std::string file = task.type;
    std::replace(file.begin(), file.end(), '-', '_');
    data[file + ".host"] = Join(Hosts(job, task), "\n");
  }
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::Object{{"name", HostsObject(job)}}},
                      {"data", std::move(data)}};
}

}  // namespace

Status CheckVolcanoPlugins(const json::Value& job) {
  for (const auto& plugin : json::GetObject(job, {"spec", "plugins"})) {
    const std::string_view name(plugin.key().data(), plugin.key().size());
    const auto framework =
        std::find_if(kFrameworkPlugins.begin(), kFrameworkPlugins.end(),
                     [&](const FrameworkPlugin& one) { return one.name == name; });
    if (framework != kFrameworkPlugins.end()) {
      SWELL_RETURN_IF_ERROR(ReadFramework(job, *framework).status());
    } else if (name == "ssh") {
      SWELL_RETURN_IF_ERROR(ReadKeyFolder(job).status());
    } else if (name != "env" && name != "svc") {
      return WrongField(
          StrCat("spec.plugins.", name),
          "Unsupported value: supported plugins: env, mpi, pytorch, ssh, svc, tensorflow");
    }
  }
  return Status::Ok();
}

void ApplyVolcanoPlugins(const JobMember& member, const JobKindOptions& options, json::Value& pod) {
  if (HasPlugin(member.job, "env")) {
    SetEnv(pod, "VC_TASK_INDEX", std::to_string(member.index));
    SetEnv(pod, "VK_TASK_INDEX", std::to_string(member.index));
  }
  if (HasHosts(member.job)) SetHosts(member, pod);
  SetFrameworks(member, pod);
  const auto folder = ReadKeyFolder(member.job);
  if (!HasKeys(member.job, options) || !folder.ok()) return;
  const auto all = [](const json::Value&) { return true; };
  MountKeys(member.job,
            {.path = *folder, .in_volume = std::string(kKeysInVolume), .with_config = true}, all,
            pod);
}

Result<std::vector<json::Value>> VolcanoPluginObjects(const json::Value& job,
                                                      const JobSpec& spec,
                                                      const JobKindOptions& options) {
  std::vector<json::Value> objects;
  if (HasHosts(job)) objects.push_back(HostsConfigMap(job, spec));
  if (HasKeys(job, options)) {
    SWELL_ASSIGN_OR_RETURN(const SshKeyPair key, options.make_ssh_key());
    objects.push_back(SshSecret(job, key, kSshConfig));
  }
  return objects;
}

}  // namespace swell::jobs
