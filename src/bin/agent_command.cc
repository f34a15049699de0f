// swell agent: nodes of a Kubernetes cluster, whose pods run on this machine.
#include <cstdio>
#include <set>

#include "base/file.h"
#include "bin/commands.h"
#include "cli/session.h"
#include "kube/node/network/names.h"
#include "kube/node/node_fleet.h"
#include "ops/cluster/cluster_metrics.h"
#include "ops/monitoring.h"
#include "ops/nodes/fleet_server.h"
#include "ops/nodes/health_source.h"
#include "ops/nodes/node_address.h"
#include "ops/nodes/pod_runtime.h"
#include "ops/nodes/python_choice.h"
#include "ops/options/agent_options.h"
#include "ops/remote_process.h"

namespace swell {
namespace {

// The pieces of one agent process; destroyed from the last to the first.
class AgentProcess {
 public:
  static Result<std::unique_ptr<AgentProcess>> Create(const ops::AgentOptions& options);
  Status Run();

 private:
  Status ListenToServer();
  void Start();
  void PrintWhenReady();
  void StopAll();

  ops::AgentOptions options_;
  ops::DataDir dir_;
  std::vector<node::NodeConfig> nodes_;
  std::unique_ptr<ops::RemoteProcess> process_;
  ops::Monitoring monitoring_;
  std::unique_ptr<ops::PodRuntime> runtime_;
  std::unique_ptr<node::ServiceNames> names_;
  std::unique_ptr<node::NetworkWatch> network_;
  std::unique_ptr<node::HealthSource> health_;
  std::unique_ptr<node::NodeFleet> fleet_;
  std::unique_ptr<ops::FleetServer> serving_;  // null for a large fleet
  bool stopping_ = false;
  std::unique_ptr<Metrics::Registration> registered_;
};

Result<std::unique_ptr<AgentProcess>> AgentProcess::Create(const ops::AgentOptions& options) {
  auto agent = std::make_unique<AgentProcess>();
  agent->options_ = options;
  agent->dir_ = options.Dir();
  SWELL_ASSIGN_OR_RETURN(agent->nodes_, ops::PlanNodes(options.plan));
  ops::SlowLeases(agent->nodes_);
  SWELL_ASSIGN_OR_RETURN(
      agent->process_,
      ops::RemoteProcess::Connect(
          options.remote, {.connections = 16, .waiting_max = 200'000, .event_connections = 1}));
  SWELL_ASSIGN_OR_RETURN(const ops::RuntimeKind kind, ops::ParseRuntimeKind(options.runtime));
  if (!kind.simulated) {
    SWELL_RETURN_IF_ERROR(ops::PrepareDataDir(agent->dir_));
    SWELL_RETURN_IF_ERROR(ops::LockDataDir(agent->dir_));
    SWELL_RETURN_IF_ERROR(ops::KeepImageStore(agent->dir_, options.image_store));
  }
  // Before any thread: it forks.
  process::ProcessOptions process{
      .data_dir = agent->dir_.path,
      .image_store = ops::ImageStoreOf(agent->dir_, options.image_store),
      .cluster_cidr = options.pod_cidr};
  if (kind.processes()) {
    process.sdk_dir = ops::FindSdk();
    SWELL_ASSIGN_OR_RETURN(process.python, ops::TakePython(agent->dir_, options.python));
  }
  SWELL_ASSIGN_OR_RETURN(agent->runtime_,
                         ops::PodRuntime::Make(options.runtime, agent->process_->core(),
                                               agent->process_->clock(), std::move(process)));
  SWELL_RETURN_IF_ERROR(agent->ListenToServer());
  return agent;
}

// kube-apiserver reaches the nodes here for logs and exec. It shows the certificate of its flag
// --kubelet-client-certificate, which the cluster's authority has signed.
Status AgentProcess::ListenToServer() {
  std::string ip = options_.node_ip;
  if (ip.empty()) ip = ops::AddressTowards(process_->access().server);
  for (node::NodeConfig& node : nodes_) {
    if (!ip.empty()) node.internal_ip = ip;
  }
  std::string client_ca = process_->access().ca_pem;
  if (!options_.client_ca_file.empty()) {
    SWELL_ASSIGN_OR_RETURN(client_ca, ReadFile(options_.client_ca_file, 1 << 20));
  }
  SWELL_ASSIGN_OR_RETURN(serving_, ops::FleetServer::Listen(process_->core(), process_->clock(),
                                                            nodes_, client_ca, process_->server()));
  return Status::Ok();
}

void AgentProcess::Start() {
  names_ = runtime_->MakeNames(process_->server(), api::UserInfo{});
  if (names_) names_->Start();
  std::set<std::string, std::less<>> own;
  for (const node::NodeConfig& node : nodes_) own.insert(node.name);
  network_ = runtime_->MakeNetworkWatch(process_->clock(), process_->server(), api::UserInfo{},
                                        std::move(own));
  if (network_) network_->Start();
  health_ = ops::MakeHealthSource(process_->core(), options_.health, dir_.path,
                                  runtime_->has_files(), nodes_);
  fleet_ = std::make_unique<node::NodeFleet>(
      node::AgentPlugs{process_->core(), process_->clock(), process_->server(), runtime_->runtime(),
                       names_.get(), process_->random().Next(), health_.get()},
      nodes_);
  if (serving_) serving_->Serve(*fleet_);
  fleet_->Start();
  PrintWhenReady();
}

void AgentProcess::PrintWhenReady() {
  if (!fleet_) return;
  if (!fleet_->registered()) {
    process_->core().After(std::chrono::milliseconds(100), [this] { PrintWhenReady(); });
    return;
  }
  std::printf("Registered with %s: %zu node%s\n", process_->access().server.c_str(), nodes_.size(),
              nodes_.size() == 1 ? "" : "s");
  std::fflush(stdout);
}

// Pods outlive their agent, as on any node. The next agent adopts them.
void AgentProcess::StopAll() {
  if (std::exchange(stopping_, true)) return;
  if (serving_) serving_->Stop();
  if (!options_.stop_pods) {
    fleet_.reset();
    return process_->core().Stop();
  }
  if (!fleet_) return process_->core().Stop();
  fleet_->StopPods(node::kShutdownGrace, [this] {
    process_->core().Post([this] {
      fleet_.reset();
      runtime_->Shutdown([this] { process_->core().Stop(); });
    });
  });
}

Status AgentProcess::Run() {
  registered_ = monitoring_.metrics.Register([this](MetricPage& page) {
    if (fleet_) ops::AddAgentMetrics(page, *fleet_);
  });
  monitoring_.health.AddReady("registered", [this] {
    return fleet_ && fleet_->registered() ? "" : "some nodes are not registered yet";
  });
  SWELL_RETURN_IF_ERROR(
      monitoring_.Listen(*process_, options_.metrics_address, ops::kAgentMetricsAddress));
  Start();
  return process_->Run([this] { StopAll(); });
}

Status RunAgent(const ops::AgentOptions& options) {
  SWELL_ASSIGN_OR_RETURN(auto agent, AgentProcess::Create(options));
  return agent->Run();
}

class AgentAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override { ops::AddAgentFlags(flags, options_); }
  Result<int> Run(cli::Session&, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(ops::CheckWords(words));
    SWELL_RETURN_IF_ERROR(ops::CheckAgentOptions(options_));
    SetLogSink(MakeFileLogSink(""), ops::LogLevelOf(options_.log_level));
    SWELL_RETURN_IF_ERROR(RunAgent(options_));
    return 0;
  }

 private:
  ops::AgentOptions options_;
};

}  // namespace

cli::Command AgentCommand() {
  return {.name = "agent",
          .group = "Kubernetes",
          .summary = "Run nodes of a Kubernetes cluster on this machine.",
          .examples = {{"This machine with its CPUs and GPUs",
                        "swell agent --kubeconfig ~/.kube/config"},
                       {"Virtual nodes",
                        "swell agent --nodes 3 --gpus-per-node 4 --cpus 4 --memory 15Gi"},
                       {"Pods run by this machine's containerd",
                        "swell agent --runtime cri=/run/containerd/containerd.sock"},
                       {"Many simulated nodes, whose pods start no processes",
                        "swell agent --nodes 1000 --gpus-per-node 8 --runtime simulated"}},
          .notes =
              "Pods that are bound to these nodes run as processes of this machine, unless "
              "--runtime names a container engine.",
          .standalone = true,
          .make = cli::Makes<AgentAction>()};
}

}  // namespace swell
