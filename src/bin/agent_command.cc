// `swell agent`: nodes of a cluster that runs elsewhere, their pods on this machine.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/file.h"
#include "base/strings.h"
#include "bin/commands.h"
#include "bin/data_dir.h"
#include "bin/embedded_cluster.h"
#include "bin/monitoring.h"
#include "bin/node_address.h"
#include "bin/remote_process.h"
#include "kube/edge/kubelet/kubelet_server.h"
#include "kube/node/names.h"
#include "kube/node/node_agent.h"
#include "kube/node/simulated_runtime.h"
#include "kube/process/process_runtime.h"

namespace swell {
namespace {

// Every node has a port of its own for logs and commands; a fleet for load tests does without.
constexpr size_t kServingNodesMax = 200;
constexpr char kMetricsAddress[] = "127.0.0.1:10291";

struct AgentFlags {
  RemoteFlags remote;
  NodePlan plan;
  std::string data_dir;
  std::string runtime = "process";
  std::string pod_cidr;
  std::string node_ip;
  std::string client_ca_file;
  std::string metrics_address;
  std::string log_level = "info";
  bool stop_pods = false;
};

std::string AnyPort(const std::string& ip) {
  return ip.find(':') == std::string::npos ? StrCat(ip, ":0") : StrCat("[", ip, "]:0");
}

DataDir AgentDataDir(const std::string& flag) {
  DataDir dir = ChooseDataDir(flag);
  if (flag.empty()) dir.path += "/agent";
  return dir;
}

// The pieces of one agent process; destroyed from the last to the first.
class AgentProcess {
 public:
  static Result<std::unique_ptr<AgentProcess>> Create(const AgentFlags& flags);
  ~AgentProcess() { StopIo(); }
  Status Run();

 private:
  Status MakeRuntime();
  Status MakeKubeletServer();
  void StopIo();
  void Start();
  void TellWhenReady();
  void StopAll();
  void Collect(MetricPage& page) const;

  AgentFlags flags_;
  DataDir dir_;
  std::vector<node::NodeConfig> nodes_;
  std::unique_ptr<RemoteProcess> process_;
  Monitoring monitoring_;
  std::unique_ptr<edge::ProcessRuntime> processes_;
  std::unique_ptr<node::SimulatedRuntime> simulated_;
  std::unique_ptr<node::ServiceNames> names_;
  std::unique_ptr<node::NodeFleet> fleet_;
  net::Reactor io_;
  std::unique_ptr<edge::KubeletServer> kubelets_;
  std::thread io_thread_;
  bool stopping_ = false;
  std::unique_ptr<Metrics::Registration> registered_;
};

Result<std::unique_ptr<AgentProcess>> AgentProcess::Create(const AgentFlags& flags) {
  auto agent = std::make_unique<AgentProcess>();
  agent->flags_ = flags;
  agent->dir_ = AgentDataDir(flags.data_dir);
  SWELL_ASSIGN_OR_RETURN(agent->nodes_, PlanNodes(flags.plan));
  // A node is missed after 40 s; many renew less often, so that their heartbeats stay a small cost.
  auto heartbeat = std::chrono::seconds(std::clamp<size_t>(agent->nodes_.size() / 100, 10, 20));
  for (node::NodeConfig& node : agent->nodes_) node.lease_interval = heartbeat;
  SWELL_ASSIGN_OR_RETURN(
      agent->process_,
      RemoteProcess::Connect(flags.remote,
                             {.connections = 16, .waiting_max = 200'000, .event_connections = 1}));
  if (flags.runtime == "process") {
    SWELL_RETURN_IF_ERROR(PrepareDataDir(agent->dir_));
    SWELL_RETURN_IF_ERROR(LockDataDir(agent->dir_));
  }
  // Before any thread: finding out what is permitted forks.
  SWELL_RETURN_IF_ERROR(agent->MakeRuntime());
  SWELL_RETURN_IF_ERROR(agent->MakeKubeletServer());
  return agent;
}

// Where kube-apiserver reaches the nodes for logs, exec and the like: it shows the certificate that
// --kubelet-client-certificate gave it, which the cluster's own authority has signed.
Status AgentProcess::MakeKubeletServer() {
  std::string ip = flags_.node_ip;
  if (ip.empty()) ip = AddressTowards(process_->access().server);
  for (node::NodeConfig& node : nodes_) {
    if (!ip.empty()) node.internal_ip = ip;
  }
  if (nodes_.size() > kServingNodesMax) return Status::Ok();
  std::string client_ca = process_->access().ca_pem;
  if (!flags_.client_ca_file.empty()) {
    SWELL_ASSIGN_OR_RETURN(client_ca, ReadFile(flags_.client_ca_file, 1 << 20));
  }
  WallTime since = process_->clock().Now() - std::chrono::minutes(5);
  net::CertSpec spec{.common_name = StrCat("system:node:", nodes_[0].name),
                     .organizations = {"system:nodes"},
                     .server = true,
                     .not_before = since};
  for (const node::NodeConfig& node : nodes_) {
    spec.dns_names.push_back(node.name);
    spec.ip_addresses.push_back(node.internal_ip);
  }
  SWELL_ASSIGN_OR_RETURN(net::CertificatePair ca, net::GenerateCa("swell-agent", since));
  SWELL_ASSIGN_OR_RETURN(net::CertificatePair cert, net::IssueCert(ca, spec));
  edge::KubeletServerConfig config;
  config.tls = {cert.cert_pem, cert.key_pem, client_ca};
  config.api = process_->server();
  kubelets_ = std::make_unique<edge::KubeletServer>(process_->core(), io_, process_->clock(),
                                                    std::move(config));
  for (node::NodeConfig& node : nodes_) {
    SWELL_ASSIGN_OR_RETURN(node.kubelet_port,
                           kubelets_->Listen(node.name, AnyPort(node.internal_ip)));
  }
  return Status::Ok();
}

void AgentProcess::StopIo() {
  if (io_thread_.joinable()) {
    io_.Stop();
    io_thread_.join();
  }
  kubelets_.reset();
}

Status AgentProcess::MakeRuntime() {
  if (flags_.runtime == "simulated") {
    simulated_ = std::make_unique<node::SimulatedRuntime>(process_->core(), process_->clock());
    return Status::Ok();
  }
  edge::ProcessOptions options;
  options.data_dir = dir_.path;
  options.shim_command = {"/proc/self/exe", "pod-shim"};
  options.sdk_dir = FindSdk();
  options.config_dir = dir_.path;
  options.cluster_cidr = flags_.pod_cidr;
  SWELL_ASSIGN_OR_RETURN(processes_,
                         edge::ProcessRuntime::Create(process_->core(), std::move(options)));
  return Status::Ok();
}

void AgentProcess::Start() {
  node::Runtime* runtime = simulated_.get();
  if (processes_) {
    runtime = processes_.get();
    names_ = std::make_unique<node::ServiceNames>(process_->core(), process_->server(),
                                                  api::UserInfo{}, processes_->Router());
    names_->Start();
  }
  fleet_ = std::make_unique<node::NodeFleet>(
      node::AgentPlugs{process_->core(), process_->clock(), process_->server(), *runtime,
                       names_.get(), process_->random().Next()},
      nodes_);
  if (kubelets_) {
    for (node::NodeAgent* node : fleet_->nodes()) {
      kubelets_->Serve(node->name(), edge::MakeKubeletEndpoints(*node));
    }
    io_thread_ = std::thread([this] { io_.Run(); });
  }
  fleet_->Start();
  TellWhenReady();
}

void AgentProcess::TellWhenReady() {
  if (!fleet_) return;
  if (!fleet_->registered()) {
    process_->core().After(std::chrono::milliseconds(100), [this] { TellWhenReady(); });
    return;
  }
  std::printf("Registered with %s: %zu node%s\n", process_->access().server.c_str(), nodes_.size(),
              nodes_.size() == 1 ? "" : "s");
  std::fflush(stdout);
}

// Pods outlive their agent, as they do on any node: the next one takes them over.
void AgentProcess::StopAll() {
  if (std::exchange(stopping_, true)) return;
  StopIo();
  fleet_.reset();
  if (!processes_ || !flags_.stop_pods) return process_->core().Stop();
  processes_->Shutdown([this] { process_->core().Stop(); });
}

void AgentProcess::Collect(MetricPage& page) const {
  if (!fleet_) return;
  double registered = 0;
  double pods = 0;
  for (const node::NodeAgent* node : fleet_->nodes()) {
    registered += node->registered();
    pods += static_cast<double>(node->worker_count());
  }
  using enum MetricType;
  page.Add({"swell_agent_nodes", kGauge, "Nodes of this agent."},
           static_cast<double>(nodes_.size()));
  page.Add({"swell_agent_nodes_registered", kGauge, "Nodes the cluster knows."}, registered);
  page.Add({"swell_agent_pods", kGauge, "Pods the agent looks after."}, pods);
}

Status AgentProcess::Run() {
  registered_ = monitoring_.metrics.Register([this](MetricPage& page) { Collect(page); });
  monitoring_.health.AddReady("registered", [this] {
    return fleet_ && fleet_->registered() ? "" : "the cluster does not know all nodes yet";
  });
  SWELL_RETURN_IF_ERROR(monitoring_.Listen(*process_, flags_.metrics_address, kMetricsAddress));
  Start();
  return process_->Run([this] { StopAll(); });
}

Status RunAgent(const AgentFlags& flags) {
  SWELL_ASSIGN_OR_RETURN(auto agent, AgentProcess::Create(flags));
  return agent->Run();
}

const cli::Command kAgent{
    .name = "agent",
    .summary =
        "Run nodes of a Kubernetes cluster on this machine: pods bound to them become "
        "processes here.",
    .examples = {
        {"This machine, its CPUs and GPUs", "swell agent --kubeconfig ~/.kube/config"},
        {"Virtual nodes", "swell agent --nodes 3 --gpus-per-node 4 --cpus 4 --memory 15Gi"},
        {"Many nodes whose pods only pretend",
         "swell agent --nodes 1000 --gpus-per-node 8 --runtime simulated"}}};

void AddAgentFlags(cli::Flags& flags, AgentFlags& to) {
  AddRemoteFlags(flags, to.remote);
  flags.Text("--data-dir", &to.data_dir, "DIR",
             "pods' directories, logs and checkpoints (default ~/.swell/agent)");
  flags.Switch("--stop-pods", &to.stop_pods,
               "end the pods with the agent (default: they run on, and the next agent takes over)");
  AddMonitoringFlag(flags, to.metrics_address, kMetricsAddress);
  AddLogLevel(flags, to.log_level);
  flags.Group("Nodes");
  AddNodeFlags(flags, to.plan);
  flags.Text("--node-name", &to.plan.name, "NAME",
             "of the node (default: this machine's); with --nodes what their names begin with");
  flags.Choice("--runtime", &to.runtime, "KIND", {"process", "simulated"},
               "process: pods are real processes; simulated: pods only pretend (default process)");
  flags.Text("--pod-cidr", &to.pod_cidr, "CIDR", "addresses of pods");
  flags.Text("--node-ip", &to.node_ip, "ADDRESS",
             "where the API server reaches the nodes (default: this machine's address towards it)");
  flags.Text("--client-ca-file", &to.client_ca_file, "FILE",
             "who vouches for callers of the nodes (default: the kubeconfig's authority)");
  flags.Group("");
}

}  // namespace

int AgentCommand(const std::vector<std::string>& arguments) {
  AgentFlags flags;
  cli::Flags declared;
  AddAgentFlags(declared, flags);
  if (auto exit = ParseCommandLine(kAgent, declared, arguments)) return *exit;
  if (auto nodes = PlanNodes(flags.plan); !nodes.ok()) {
    return Misused(kAgent, nodes.status().message());
  }
  SetLogSink(MakeFileLogSink(""), LogLevelOf(flags.log_level));
  Status done = RunAgent(flags);
  return done.ok() ? 0 : FailCommand(done);
}

}  // namespace swell
