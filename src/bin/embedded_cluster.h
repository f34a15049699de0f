// EmbeddedCluster: every component of a cluster in one process, wired to real plugs.
//
//   core thread   API server, controllers, scheduler, node agents: one Executor, no locks
//   I/O thread    sockets, TLS, HTTP
//   store thread  SQLite's commits
//
// Ownership: members are destroyed in reverse order of declaration: first what asks, last what
// answers. Thread-safety: the thread that constructs it runs it and is the core thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/node_config.h"
#include "base/result.h"
#include "bin/data_dir.h"

namespace swell {

struct ClusterOptions {
  DataDir data_dir;
  std::string listen = "127.0.0.1:0";
  int nodes = 0;  // 0: one node, this machine as it is
  int gpus_per_node = 0;
  std::string cpus;  // of a virtual node; empty: the machine's
  std::string memory;
  std::string system_reserved;  // "cpu=80m,memory=500Mi"
  int control_plane_nodes = 0;
  bool simulated = false;
  std::string token_auth_file;
  std::string pod_cidr;  // empty: the runtime's own choice
  std::string sdk_path;  // PYTHONPATH of Python images; empty: beside the program
};

class EmbeddedCluster {
 public:
  // Opens the store, binds the port and writes the kubeconfig; nothing runs yet.
  static Result<std::unique_ptr<EmbeddedCluster>> Create(const ClusterOptions& options);
  ~EmbeddedCluster();

  // Runs until SIGINT or SIGTERM (or Stop). `ready` is called once the API answers.
  Status Run(const std::function<void()>& ready);

  const std::string& server_url() const;

 private:
  struct Impl;
  explicit EmbeddedCluster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The nodes that the options ask for: control plane first.
Result<std::vector<agent::NodeConfig>> PlanNodes(const ClusterOptions& options);

}  // namespace swell
