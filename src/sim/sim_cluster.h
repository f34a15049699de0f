// SimCluster: a whole cluster inside one test: the real API server, store, controllers, scheduler
// and node agents, on a virtual clock, with a disk in memory and simulated pods.
//
//   SimCluster cluster({.seed = 7, .nodes = 3, .gpus_per_node = 4});
//   cluster.Boot();
//   cluster.Apply(R"({"apiVersion": ...})");
//   cluster.RunUntil([&] { return cluster.Phase("default", "a-0") == "Running"; }, minutes(1));
//
// Nothing in it is random but by the seed: two clusters of one seed, told the same at the same
// virtual times, write the same bytes in the same order, which trace_hash() sums up.
//
// With `replicas` 0 all is one process, as in `swell up`: Crash() takes it away between two
// instructions; what the disk holds and the pods that run are all that Restart() finds. With more,
// these are processes of their own on a SimNetwork, each with its own clock, and die alone: the API
// server, `replicas` of `swell controller` of which one leads, and an agent for each node.
//
// - Threads: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/sim_executor.h"
#include "kube/apiserver/api_server.h"
#include "kube/client/client.h"
#include "kube/node/node_agent.h"
#include "kube/node/runtime/simulated_runtime.h"
#include "kube/store/memory_backend.h"
#include "manager/manager.h"
#include "manager/replica.h"
#include "sim/sim_history.h"
#include "sim/sim_network.h"

namespace swell::sim {

struct SimOptions {
  uint64_t seed = 1;
  int nodes = 3;
  int gpus_per_node = 4;
  std::string cpus = "4";
  std::string memory = "15Gi";
  int control_plane_nodes = 0;
  int replicas = 0;
  Duration commit_delay = std::chrono::microseconds(100);
};

// What the cluster's own components act as.
const api::UserInfo& SystemUser();

// A machine's clock: its wall time may be wrong, and jump; its steady time is everybody's.
class SimClock final : public Clock {
 public:
  explicit SimClock(const SimExecutor& executor) : executor_(executor) {}
  WallTime Now() const override { return executor_.Now() + skew; }
  SteadyTime Steady() const override { return executor_.Steady(); }
  Duration skew{0};

 private:
  const SimExecutor& executor_;
};

class SimCluster {
 public:
  explicit SimCluster(SimOptions options);
  ~SimCluster();

  // Runs until the API is there and every node is Ready.
  void Boot();
  // The control plane stops at once; unanswered writes are lost or kept as the seed has it.
  void Crash();
  void Restart();

  // Processes of a cluster with `replicas`; each call is for one that is up, or down, as it says.
  // A server that dies `silent`ly is missed only after a while.
  void KillServer(bool silent);
  void StartServer();
  bool server_up() const { return server_ != nullptr; }
  // Runs at each start of the server, before it answers anybody.
  std::function<void()> on_server_start;
  void KillReplica(size_t index);
  void StartReplica(size_t index);
  const manager::Replica* replica(size_t index) const { return replicas_[index].get(); }
  // Kills the agent; its pods continue. `with_pods`: kills the machine with its pods.
  void KillAgent(size_t index, bool with_pods);
  void StartAgent(size_t index);
  const node::NodeAgent* agent(size_t index) const { return agents_[index].get(); }
  size_t node_count() const { return nodes_.size(); }
  static std::string ReplicaName(size_t index);  // of its process, on the network
  const std::string& NodeName(size_t index) const { return nodes_[index].name; }
  SimNetwork& network() { return network_; }
  // "server", a replica's or a node's.
  SimClock& clock(const std::string& process);

  // Creates an object from JSON text and waits for the answer; the test fails on an error through
  // the returned Status.
  Status Apply(std::string_view json_text);
  Status Delete(const client::Resource& resource, std::string_view ns, std::string_view name);
  Status Patch(const client::Resource& resource,
               std::string_view ns,
               std::string_view name,
               std::string_view merge_patch,
               std::string_view subresource = {});

  // Durable state, read straight from the store; null if the object does not exist.
  json::SharedValue Get(const std::string& store_resource,
                        std::string_view ns,
                        std::string_view name) const;
  std::vector<json::SharedValue> List(const std::string& store_resource) const;
  // By "ns/name" or "name".
  std::map<std::string, uint64_t> Versions(const std::string& store_resource) const;
  std::string PodPhase(std::string_view ns, std::string_view name) const;
  // The newest true condition of a job: Created, Running, Preempted, Succeeded, Failed…
  std::string JobState(std::string_view ns, std::string_view name) const;
  // Messages of the events of this reason about an object of this name.
  std::vector<std::string> Events(std::string_view name, std::string_view reason) const;

  bool RunUntil(const std::function<bool()>& done, Duration limit);
  void Advance(Duration span);

  // FNV-1a over every durable change so far: versions, keys and bytes.
  uint64_t trace_hash() const { return history_.hash(); }
  SimHistory& history() { return history_; }
  store::MemoryDisk& disk() { return *disk_; }
  node::SimulatedRuntime& runtime(size_t index = 0) { return *runtimes_[index]; }
  SimExecutor& executor() { return executor_; }
  const SimOptions& options() const { return options_; }

 private:
  struct Server;
  struct Everything;

  bool apart() const { return options_.replicas > 0; }
  std::vector<node::NodeConfig> NodeConfigs() const;
  Status Wait(const std::function<void(client::ObjectCallback)>& call);
  client::Client& client();

  SimOptions options_;
  SimExecutor executor_;
  Random random_;
  std::map<std::string, std::unique_ptr<SimClock>> clocks_;
  SimHistory history_;
  std::shared_ptr<store::MemoryDisk> disk_;
  std::unique_ptr<api::Scheme> scheme_;  // with Swell's kinds
  std::vector<node::NodeConfig> nodes_;
  // One for all nodes of a single process, else one each.
  std::vector<std::unique_ptr<node::SimulatedRuntime>> runtimes_;
  SimNetwork network_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Everything> everything_;  // of a single process, but the server
  std::vector<std::unique_ptr<Random>> replica_randoms_;
  std::vector<std::unique_ptr<manager::Replica>> replicas_;
  std::vector<std::unique_ptr<node::NodeAgent>> agents_;
  int incarnations_ = 0;
  std::unique_ptr<client::Client> user_;  // over the network
};

}  // namespace swell::sim
