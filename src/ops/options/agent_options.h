// AgentOptions: which nodes `swell agent` runs, for which cluster, and the flags that say it.
// - Threads: main thread; plain values.
#pragma once

#include <string>

#include "base/result.h"
#include "ops/data_dir.h"
#include "ops/flags.h"
#include "ops/nodes/health_source.h"
#include "ops/nodes/plan_nodes.h"

namespace swell::ops {

inline constexpr char kAgentMetricsAddress[] = "127.0.0.1:10291";

struct AgentOptions {
  RemoteFlags remote;
  NodePlan plan;
  std::string data_dir;  // empty: beside the cluster's of this machine
  std::string runtime = "process";
  std::string pod_cidr;
  std::string node_ip;
  std::string client_ca_file;
  std::string image_store;
  std::string python;  // empty: TakePython chooses
  HealthPlan health;
  std::string metrics_address;
  std::string log_level = "info";
  bool stop_pods = false;

  DataDir Dir() const;
};
void AddAgentFlags(cli::Flags& flags, AgentOptions& to);
// Misuse names the flag. Makes paths absolute.
Status CheckAgentOptions(AgentOptions& options);

}  // namespace swell::ops
