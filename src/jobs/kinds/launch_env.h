// LaunchEnv: the environment with which processes of a distributed job find each other (ranks for a
// rigid job, a rendezvous for an elastic one), and the ports and volumes that pods need for it.
// Variables that the user has set stay.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::jobs {

inline constexpr int64_t kLaunchPort = 23456;

// Where the leader listens. On the host's network jobs share the machine's ports, so each has its
// own; `given` (0: none) is what the user wrote.
int64_t LaunchPort(const json::Value& job, int64_t given, bool host_network);
// Names the port in the pod's first container, unless it is there.
void AddContainerPort(json::Value& pod, std::string_view name, int64_t number);
// The array of that name in `holder`, made if it does not exist.
json::Array& ArrayIn(json::Value& holder, std::string_view name);
// Adds the volume, and mounts it at `path` in the containers of these lists of the pod's spec.
void MountVolume(json::Value& pod,
                 json::Value volume,
                 std::string_view path,
                 std::initializer_list<std::string_view> lists);

// MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE.
struct RankEnv {
  std::string leader;  // pod name of rank 0
  bool leads = false;  // this pod is it
  int64_t port = kLaunchPort;
  int64_t rank = 0;
  int64_t world = 1;
};
void SetRankEnv(json::Value& pod, const RankEnv& env);
// The same for torchrun, which reads PET_*: without it, torchrun in each pod trains a model of its
// own.
void SetNodeEnv(json::Value& pod, const RankEnv& env);

// PET_*, which torchrun reads its options from.
struct RendezvousEnv {
  std::string backend = "c10d";
  std::string endpoint;  // host:port
  std::string id;
  int64_t nodes_min = 1;
  int64_t nodes_max = 1;
  int64_t max_restarts = 100;
  std::string nproc_per_node = "1";
  std::string conf;         // of the back end: "timeout=900,read_timeout=60"
  bool standalone = false;  // each pod rendezvous by itself
};
void SetRendezvousEnv(json::Value& pod, const RendezvousEnv& env);

// Whether a container of the template starts torchrun or swell.launch by name. With the back end
// c10d the first member's launcher keeps the rendezvous, which the others cannot do without.
bool StartsLauncher(const json::Value& pod_template);

// A headless service by which the leader is found before it is ready.
json::Value LeaderService(std::string_view name,
                          json::Object labels,
                          std::string_view port_name,
                          int64_t port);

}  // namespace swell::jobs
