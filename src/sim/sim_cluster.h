// SimCluster: a whole cluster inside one test: the real API server, store, controllers, scheduler
// and node agents, on a virtual clock, with a disk in memory and pods that only pretend.
//
//   SimCluster cluster({.seed = 7, .nodes = 3, .gpus_per_node = 4});
//   cluster.Boot();
//   cluster.Apply(R"({"apiVersion": ...})");
//   cluster.RunUntil([&] { return cluster.Phase("default", "a-0") == "Running"; }, minutes(1));
//
// Nothing in it is random but by the seed: two clusters of one seed, told the same at the same
// virtual times, write the same bytes in the same order, which trace_hash() sums up.
//
// Crash() takes the whole control plane away between two instructions; what the disk holds and the
// pods that run are all that Restart() finds.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/node_agent.h"
#include "agent/simulated_runtime.h"
#include "apiserver/api_server.h"
#include "base/sim_executor.h"
#include "client/client.h"
#include "controllers/manager.h"
#include "store/memory_backend.h"

namespace swell::sim {

struct SimOptions {
  uint64_t seed = 1;
  int nodes = 3;
  int gpus_per_node = 4;
  std::string cpus = "4";
  std::string memory = "15Gi";
  int control_plane_nodes = 0;
  Duration commit_delay = std::chrono::microseconds(100);
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

  // Creates an object from JSON text and waits for the answer; the test fails on an error through
  // the returned Status.
  Status Apply(std::string_view json_text);
  Status Delete(const client::Resource& resource, std::string_view ns, std::string_view name);
  Status Patch(const client::Resource& resource,
               std::string_view ns,
               std::string_view name,
               std::string_view merge_patch,
               std::string_view subresource = {});

  // Durable state, read straight from the store; null when there is none.
  json::SharedValue Get(const std::string& store_resource,
                        std::string_view ns,
                        std::string_view name) const;
  std::vector<json::SharedValue> List(const std::string& store_resource) const;
  std::string PodPhase(std::string_view ns, std::string_view name) const;
  // The newest true condition of a job: Created, Running, Preempted, Succeeded, Failed…
  std::string JobState(std::string_view ns, std::string_view name) const;
  // Messages of the events of this reason about an object of this name.
  std::vector<std::string> Events(std::string_view name, std::string_view reason) const;

  bool RunUntil(const std::function<bool()>& done, Duration limit);
  void Advance(Duration span);

  // FNV-1a over every durable change so far: versions, keys and bytes.
  uint64_t trace_hash() const;
  store::MemoryDisk& disk() { return *disk_; }
  agent::SimulatedRuntime& runtime() { return runtime_; }
  SimExecutor& executor() { return executor_; }
  const SimOptions& options() const { return options_; }

 private:
  struct ControlPlane;
  class Trace;

  std::vector<agent::NodeConfig> NodeConfigs() const;
  Status Wait(const std::function<void(client::ObjectCallback)>& call);

  SimOptions options_;
  SimExecutor executor_;
  Random random_;
  std::shared_ptr<store::MemoryDisk> disk_;
  std::shared_ptr<Trace> trace_;
  agent::SimulatedRuntime runtime_;
  std::unique_ptr<ControlPlane> plane_;
};

}  // namespace swell::sim
