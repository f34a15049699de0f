#include "ops/options/agent_options.h"

#include "cli/flags.h"
#include "ops/monitoring.h"
#include "ops/nodes/pod_runtime.h"
#include "ops/nodes/python_choice.h"

namespace swell::ops {

DataDir AgentOptions::Dir() const {
  DataDir dir = ChooseDataDir(data_dir);
  if (data_dir.empty()) dir.path += "/agent";
  return dir;
}

void AddAgentFlags(cli::Flags& flags, AgentOptions& to) {
  AddRemoteFlags(flags, to.remote);
  flags.Text("--data-dir", &to.data_dir, "DIR",
             "directory for pods, logs and checkpoints (default ~/.swell/agent)");
  flags.Switch(
      "--stop-pods", &to.stop_pods,
      "stop the pods with the agent (default: they keep running, and the next agent adopts them)");
  AddMonitoringFlag(flags, to.metrics_address, kAgentMetricsAddress);
  AddLogLevel(flags, to.log_level);
  flags.Group("Nodes");
  AddNodeFlags(flags, to.plan);
  flags.Text("--node-name", &to.plan.name, "NAME",
             "name of the node (default: host name); with --nodes, the prefix of the names");
  AddRuntimeFlag(flags, to.runtime);
  AddPodCidrFlag(flags, to.pod_cidr);
  flags.Text("--image-store", &to.image_store, "DIR",
             "directory of the images (default: in the data directory)");
  AddPythonFlag(flags, to.python);
  AddHealthFlag(flags, to.health);
  flags.Text(
      "--node-ip", &to.node_ip, "ADDRESS",
      "address at which the API server reaches the nodes (default: the one that connects to it)");
  flags.Text("--client-ca-file", &to.client_ca_file, "FILE",
             "certificate authority of the nodes' clients (default: that of the kubeconfig)");
  flags.Group("");
}

Status CheckAgentOptions(AgentOptions& options) {
  SWELL_RETURN_IF_ERROR(PlanNodes(options.plan).status());
  SWELL_RETURN_IF_ERROR(CheckHealthPlan(options.health));
  SWELL_RETURN_IF_ERROR(CheckPodCidr(options.pod_cidr));
  SWELL_RETURN_IF_ERROR(CheckPython(options.python));
  const auto kind = ParseRuntimeKind(options.runtime);
  return kind.ok() ? Status::Ok() : cli::Misuse(kind.status().message());
}

}  // namespace swell::ops
