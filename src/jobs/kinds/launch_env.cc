#include "jobs/kinds/launch_env.h"

#include "base/random.h"
#include "base/strings.h"
#include "jobs/kinds/job_kind.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {

using controllers::SetEnv;

json::Array& ArrayIn(json::Value& holder, std::string_view name) {
  json::Value* found = json::FindMutable(holder, {name});
  if (found == nullptr || !found->is_array()) found = &json::Set(holder, {name}, json::Array{});
  return found->get_array();
}

int64_t LaunchPort(const json::Value& job, int64_t given, bool host_network) {
  if (given != 0) return given;
  if (!host_network) return kLaunchPort;
  return 20'000 + static_cast<int64_t>(StableHash(api::Uid(job)) % 10'000);
}

void AddContainerPort(json::Value& pod, std::string_view name, int64_t number) {
  json::Value* containers = json::FindMutable(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array() || containers->get_array().empty()) return;
  json::Value& first = containers->get_array()[0];
  json::Array& ports = ArrayIn(first, "ports");
  for (const json::Value& port : ports) {
    if (json::GetString(port, {"name"}) == name) return;
  }
  ports.push_back(json::Object{{"name", name}, {"containerPort", number}, {"protocol", "TCP"}});
}

void MountVolume(json::Value& pod,
                 json::Value volume,
                 std::string_view path,
                 std::initializer_list<std::string_view> lists) {
  const json::Value mount =
      json::Object{{"name", json::GetString(volume, {"name"})}, {"mountPath", path}};
  ArrayIn(*json::FindMutable(pod, {"spec"}), "volumes").push_back(std::move(volume));
  for (std::string_view list : lists) {
    json::Value* containers = json::FindMutable(pod, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (json::Value& one : containers->get_array()) ArrayIn(one, "volumeMounts").push_back(mount);
  }
}

void SetRankEnv(json::Value& pod, const RankEnv& env) {
  SetEnv(pod, "MASTER_PORT", std::to_string(env.port));
  SetEnv(pod, "MASTER_ADDR", env.leads ? "localhost" : env.leader);
  SetEnv(pod, "WORLD_SIZE", std::to_string(env.world));
  SetEnv(pod, "RANK", std::to_string(env.rank));
}

void SetNodeEnv(json::Value& pod, const RankEnv& env) {
  SetEnv(pod, "PET_NNODES", std::to_string(env.world));
  SetEnv(pod, "PET_NODE_RANK", std::to_string(env.rank));
  // The first agent tells the others this name.
  SetEnv(pod, "PET_MASTER_ADDR", env.leader);
  SetEnv(pod, "PET_MASTER_PORT", std::to_string(env.port));
}

void SetRendezvousEnv(json::Value& pod, const RendezvousEnv& env) {
  SetEnv(pod, "PET_RDZV_BACKEND", env.backend);
  SetEnv(pod, "PET_RDZV_ENDPOINT", env.endpoint);
  SetEnv(pod, "PET_RDZV_ID", env.id);
  SetEnv(pod, "PET_NNODES", StrCat(env.nodes_min, ":", env.nodes_max));
  SetEnv(pod, "PET_MAX_RESTARTS", std::to_string(env.max_restarts));
  SetEnv(pod, "PET_NPROC_PER_NODE", env.nproc_per_node);
  if (!env.conf.empty()) SetEnv(pod, "PET_RDZV_CONF", env.conf);
  if (env.standalone) SetEnv(pod, "PET_STANDALONE", "1");
}

bool StartsLauncher(const json::Value& pod_template) {
  for (const json::Value& container : json::GetArray(pod_template, {"spec", "containers"})) {
    for (std::string_view list : {"command", "args"}) {
      for (const json::Value& one : json::GetArray(container, {list})) {
        if (!one.is_string()) continue;
        const std::string_view word = json::View(one.get_string());
        // Also within the script of a shell.
        for (std::string_view name : {"torchrun", "swell.launch", "torch.distributed.run"}) {
          if (word.find(name) != std::string_view::npos) return true;
        }
      }
    }
  }
  return false;
}

json::Value LeaderService(std::string_view name,
                          json::Object labels,
                          std::string_view port_name,
                          int64_t port) {
  json::Object selector = labels;
  json::Object service_port{{"name", port_name}, {"port", port}, {"protocol", "TCP"}};
  service_port["targetPort"] = port;
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Service"},
                      {"metadata", json::Object{{"name", name}, {"labels", std::move(labels)}}},
                      {"spec", json::Object{{"clusterIP", "None"},
                                            {"selector", std::move(selector)},
                                            {"publishNotReadyAddresses", true},
                                            {"ports", json::Array{std::move(service_port)}}}}};
}

}  // namespace swell::jobs
