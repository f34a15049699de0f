#include "bin/embedded_cluster.h"

#include <csignal>
#include <map>
#include <optional>

#include "base/background_queue.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/timer.h"
#include "cli/cli.h"
#include "jobs/job_rules.h"
#include "kube/apiserver/api_server.h"
#include "kube/client/client.h"
#include "kube/edge/http/http_front.h"
#include "kube/edge/kubelet/kubelet_server.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/network/names.h"
#include "kube/node/network/network_watch.h"
#include "kube/node/network/service_addresses.h"
#include "kube/node/node_fleet.h"
#include "kube/store/backend.h"
#include "manager/manager.h"
#include "ops/access/audit_events.h"
#include "ops/access/client_certificates.h"
#include "ops/access/cluster_audit.h"
#include "ops/access/secret_keys.h"
#include "ops/access/token_key.h"
#include "ops/backup/online_backup.h"
#include "ops/cluster/cluster_metrics.h"
#include "ops/cluster/http_dialer.h"
#include "ops/cluster/last_port.h"
#include "ops/nodes/job_logs.h"
#include "ops/nodes/machine_limits.h"
#include "ops/nodes/old_nodes.h"
#include "ops/nodes/pod_runtime.h"
#include "ops/nodes/python_choice.h"
#include "ops/nodes/volume_files.h"
#include "ops/options/part_options.h"
#include "ops/pages/cluster_pages.h"

namespace swell {
namespace {

const api::UserInfo kSystem{"system:swell", "", {"system:masters", "system:authenticated"}};

constexpr int kHttpsPort = 443;
constexpr Duration kShutdownLimit = std::chrono::seconds(30);
constexpr Duration kQuietStop = std::chrono::seconds(2);  // longer ones are told

constexpr size_t kOffloadBytesMax = size_t{64} << 20;

void RunAll(std::vector<std::function<void()>> all) {
  for (auto& work : all) std::exchange(work, {})();
}

}  // namespace

// Members in the order they are built; destroyed from the last to the first.
struct EmbeddedCluster::Impl {
  explicit Impl(const ops::ClusterOptions& cluster_options)
      : options(cluster_options), random(EntropySeed()) {}
  ~Impl() { StopIo(); }

  Status OpenStore();
  Status OpenAudit(apiserver::Options& server_options);
  void AddDialers(apiserver::Options& server_options);
  void Collect(MetricPage& page) const;
  Status MakeApiServer();
  Status Listen();
  void ListenToPods(uint16_t port, const net::TlsServerConfig& tls);
  // What may fail once the runtime is there.
  Status Open();
  void StartComponents();
  void StartNetwork();
  void StopAll(int signal);
  void EndPods();
  void EndAll();
  void StopIo();

  ops::ClusterOptions options;
  RealClock clock;
  Random random;
  Metrics metrics;
  net::Reactor core;
  net::Reactor io;
  std::unique_ptr<ops::ClusterAudit> audit;
  ops::OnlineBackup backup{core};
  ops::Pki pki;
  std::shared_ptr<const ops::SecretKeys> secret_keys;
  std::vector<node::NodeConfig> node_configs;
  std::unique_ptr<store::Store> store;
  std::shared_ptr<apiserver::ApiServer> server;
  // This and `volume_files` have threads, and are made after the runtime.
  std::optional<BackgroundQueue<std::function<void()>>> offload;
  std::unique_ptr<edge::HttpFront> front;
  std::unique_ptr<net::HttpServer> http;
  std::thread io_thread;
  std::string url;
  std::unique_ptr<controllers::Informers> informers;
  ops::CycleRecorders recorders{options.data_dir.CyclesDir(), options.record_mib};
  std::optional<ops::VolumeFiles> volume_files;
  std::unique_ptr<manager::Manager> manager;
  std::unique_ptr<ops::ClusterPages> pages;
  std::unique_ptr<ops::PodRuntime> runtime;
  std::unique_ptr<node::ServiceAddresses> addresses;  // hears of ports from `names`
  std::unique_ptr<node::ServiceNames> names;
  std::unique_ptr<node::NetworkWatch> network;
  std::unique_ptr<node::HealthSource> health;
  std::unique_ptr<node::NodeFleet> fleet;
  std::map<std::string, std::shared_ptr<api::RestHandler>> kubelets;
  Listeners listeners;
  Timer stop_takes_long{core};
  bool stopping = false, ending = false;
  Status ended;
  std::unique_ptr<Metrics::Registration> registered;
  std::unique_ptr<client::Client> node_client;
  std::unique_ptr<ops::AuditEvents> audit_events;
};

Status EmbeddedCluster::Impl::OpenStore() {
  SWELL_ASSIGN_OR_RETURN(secret_keys, ops::LoadOrMakeSecretKeys(options.data_dir));
  SWELL_ASSIGN_OR_RETURN(auto backend, store::OpenSqliteBackend(core, options.data_dir.Database(),
                                                                &clock, secret_keys));
  SWELL_ASSIGN_OR_RETURN(store, store::Store::Open(core, std::move(backend)));
  return Status::Ok();
}

Status EmbeddedCluster::Impl::OpenAudit(apiserver::Options& server_options) {
  SWELL_ASSIGN_OR_RETURN(
      audit, ops::ClusterAudit::Open(core, options.audit, options.data_dir.AuditFile(), &metrics,
                                     [this](const std::string& problem, uint64_t missing) {
                                       if (!ending) audit_events->Tell(problem, missing);
                                     }));
  if (audit) audit->AddTo(server_options);
  return Status::Ok();
}

// How the server reaches nodes, and the services that webhooks name.
void EmbeddedCluster::Impl::AddDialers(apiserver::Options& server_options) {
  server_options.node_dialer =
      [this](const std::string& node) -> Result<std::shared_ptr<api::RestHandler>> {
    auto it = kubelets.find(node);
    if (it != kubelets.end()) return it->second;
    return Status(Code::kNotFound, StrCat("node ", Quote(node), " is not one of this cluster's"));
  };
  server_options.http_dialer = ops::DialerOf(core);
}

Status EmbeddedCluster::Impl::MakeApiServer() {
  SWELL_ASSIGN_OR_RETURN(apiserver::Options server_options, ops::ServerOptionsOf(options));
  server_options.ca_pem = pki.ca.cert_pem;
  server_options.metrics = &metrics;
  server_options.health.AddReady("informer-sync", [this] {
    return manager && manager->synced() ? "" : "the controllers have not read the cluster yet";
  });
  server_options.health.AddReady("shutdown",
                                 [this] { return stopping ? "the cluster is stopping" : ""; });
  offload.emplace(kOffloadBytesMax, Duration::zero(), RunAll);
  server_options.offload = [this](std::function<void()> work, size_t bytes) {
    return offload->Push(std::move(work), bytes);
  };
  server_options.backup = [this](std::function<void(Result<json::Value>)> done) {
    backup.Write(*store, StrCat(options.data_dir.path, "/backup-", random.NameSuffix(8), ".db"),
                 secret_keys, std::move(done));
  };
  ops::AddCertificates(server_options, pki.ca, clock);
  if (options.has_pages()) {
    server_options.page_code = [this](const api::Credentials& caller) {
      return pages->MakeCode(caller);
    };
  }
  SWELL_RETURN_IF_ERROR(OpenAudit(server_options));
  SWELL_ASSIGN_OR_RETURN(server_options.token_key, ops::LoadOrMakeTokenKey(options.data_dir));
  AddDialers(server_options);
  server_options.bind_check = [this](const json::Value& pod, const std::string& node) {
    return manager ? manager->CheckBind(pod, node) : Status::Ok();
  };
  server_options.object_rules = [this, rules = std::make_shared<const jobs::JobRules>()](
                                    const api::KindInfo& kind, const json::Value& object,
                                    const json::Value* old) {
    auto errors = rules->CheckWrite(kind, object, old);
    if (!errors.empty()) return errors;
    return rules->CheckClasses(kind, object, old, [this](const std::string& name) {
      return store->Latest({"priorityclasses.scheduling.k8s.io", "", name}) != nullptr;
    });
  };
  server = apiserver::ApiServer::Create(core, clock, random, *store, std::move(server_options));
  audit_events = std::make_unique<ops::AuditEvents>(core, clock, server, kSystem, random.Next());
  return Status::Ok();
}

Status EmbeddedCluster::Impl::Listen() {
  front = std::make_unique<edge::HttpFront>(core, *server, edge::HttpFrontConfig{});
  http = std::make_unique<net::HttpServer>(io, clock, *front, net::ServerConfig{});
  net::TlsServerConfig tls{pki.server.cert_pem, pki.server.key_pem, pki.ca.cert_pem};
  const std::string host = options.listen.substr(0, options.listen.rfind(':') + 1);
  auto port = options.listen.ends_with(":0")
                  ? ops::ListenAtRecordedPort(
                        options.data_dir.PortFile(), random,
                        [&](uint16_t one) { return http->Listen(StrCat(host, one), tls); })
                  : http->Listen(options.listen, tls);
  if (!port.ok()) return port.status().WithContext("--listen");
  url = StrCat("https://", HostForClients(options.listen), ":", *port);
  ListenToPods(*port, tls);
  if (options.has_pages()) {
    pages = std::make_unique<ops::ClusterPages>(core, clock,
                                                ops::PagesSources{.server = server,
                                                                  .user = kSystem,
                                                                  .callers = server,
                                                                  .registered_users = true,
                                                                  .address = {url, pki.ca.cert_pem},
                                                                  .metrics = &metrics},
                                                options.data_dir.HistoryFile());
    SWELL_RETURN_IF_ERROR(pages->Listen({.address = options.ui_address,
                                         .port_file = options.data_dir.PagesPortFile(),
                                         .cert_pem = pki.server.cert_pem,
                                         .key_pem = pki.server.key_pem,
                                         .programs_address = options.programs_address,
                                         .programs_port_file = options.data_dir.ProgramsPortFile()},
                                        random));
  }
  SWELL_RETURN_IF_ERROR(ops::WritePagesUrl(options.data_dir, pages ? pages->url() : ""));
  SWELL_RETURN_IF_ERROR(
      WriteFileAtomically(options.data_dir.PortFile(), std::to_string(*port), 0644));
  return Status::Ok();
}

// Pods with addresses of their own reach this machine at their gateway: at the port that all
// clients use, and at the port of https://kubernetes.default.svc if it is free.
void EmbeddedCluster::Impl::ListenToPods(uint16_t port, const net::TlsServerConfig& tls) {
  std::string host = IpForClients(options.listen);
  if (!runtime->gateway().empty()) {
    host = runtime->gateway();
    for (int one : {static_cast<int>(port), kHttpsPort}) {
      auto listening = http->Listen(StrCat(host, ":", one), tls);
      if (listening.ok() || options.listen.starts_with("0.0.0.0")) continue;
      SWELL_LOG_INFO("cluster", "not listening for pods", {"port", std::to_string(one)},
                     {"because", listening.status().message()});
    }
  }
  server->Advertise(host, port);
  for (node::NodeConfig& node : node_configs) node.base_env = ops::ServerVariables(host, port);
}

Status EmbeddedCluster::Impl::Open() {
  SWELL_ASSIGN_OR_RETURN(pki,
                         ops::LoadOrMakePki(options.data_dir, clock,
                                            ops::CertificateHosts(options, runtime->gateway())));
  SWELL_RETURN_IF_ERROR(OpenStore());
  SWELL_RETURN_IF_ERROR(MakeApiServer());
  SWELL_RETURN_IF_ERROR(Listen());
  return ops::WriteAdminKubeconfig(options.data_dir, pki, url);
}

void EmbeddedCluster::Impl::Collect(MetricPage& page) const {
  AddProcessMetrics(page, cli::Version());
  ops::AddSocketMetrics(page, http->stats(), front->stats());
  ops::AddDatabaseMetrics(page, options.data_dir);
  ops::AddPodMetrics(page, fleet.get());
}

void EmbeddedCluster::Impl::StartComponents() {
  node_client = std::make_unique<client::Client>(core, server, kSystem, "swell-up");
  ops::ForgetOldNodes(*node_client, node_configs);
  informers = std::make_unique<controllers::Informers>(core, server, kSystem, random.Next());
  manager::ManagerOptions manager_options = ops::ManagerOptionsOf(options);
  manager_options.scheme = &server->scheme();
  manager_options.root_ca_pem = pki.ca.cert_pem;
  manager_options.sign_client_certificate = ops::SignerOf(pki.ca, clock);
  manager_options.recorder = recorders.Begin();
  manager_options.host_network = runtime->host_network();
  if (runtime->has_files()) {
    manager_options.log_file = options.data_dir.LogFile();
    volume_files.emplace(options.data_dir);
    manager_options.remove_volume = [this](const std::string& handle) {
      volume_files->Remove(handle);
    };
  }
  manager = std::make_unique<manager::Manager>(
      controllers::Context{core, clock, random, server, kSystem, *informers, &metrics},
      manager_options);
  manager->Start();
  if (pages) pages->Start(*informers, random.Next());
  ops::ForgetLogsWithTheirJobs(*informers, runtime->runtime());
  StartNetwork();
  health = ops::MakeHealthSource(core, options.health, options.data_dir.path, runtime->has_files(),
                                 node_configs);
  fleet =
      std::make_unique<node::NodeFleet>(node::AgentPlugs{core, clock, server, runtime->runtime(),
                                                         names.get(), random.Next(), health.get()},
                                        node_configs);
  const auto places = edge::MakeNodePlaces();
  for (node::NodeAgent* node : fleet->nodes()) {
    kubelets[node->name()] = edge::MakeKubeletEndpoints(*node, places);
  }
  fleet->Start();
}

// Names and addresses of services, ports of this machine, NetworkPolicies.
void EmbeddedCluster::Impl::StartNetwork() {
  const node::MachineAddresses machine = ops::MachineAddressesOf(options);
  addresses =
      std::make_unique<node::ServiceAddresses>(core, clock, server, kSystem, machine.external);
  names = runtime->MakeNames(server, kSystem, machine,
                             [this](const auto& faults) { addresses->OnRouted(faults); });
  network = runtime->MakeNetworkWatch(clock, server, kSystem);
  if (network) network->Start();
  if (!names) return;
  names->Start();
  if (!runtime->gateway().empty()) addresses->Start();
}

// Pods end with the cluster, so nothing keeps running on this machine. They are given the time to
// save; a second signal, or SIGQUIT, takes it from them.
void EmbeddedCluster::Impl::StopAll(int signal) {
  const bool again = std::exchange(stopping, true);
  const bool now = again || signal == SIGQUIT || !fleet || options.runtime == "simulated";
  SWELL_LOG_INFO("cluster", "stopping", {"now", now ? "true" : "false"});
  kubelets.clear();
  if (now) return EndPods();
  stop_takes_long.Start(kQuietStop, listeners.pods_save);
  fleet->StopPods(node::kShutdownGrace, [this] { EndPods(); });
}

// The agents first, so that the end of the pods is not reported as their failure.
void EmbeddedCluster::Impl::EndPods() {
  if (std::exchange(ending, true)) return;
  stop_takes_long.Cancel();
  // Not at once: an agent may be the caller.
  core.Post([this] { EndAll(); });
}

void EmbeddedCluster::Impl::EndAll() {
  fleet.reset();
  auto end = [this] { runtime->Shutdown([this] { core.Stop(); }); };
  if (!manager) return end();
  manager->Flush(end);
}

void EmbeddedCluster::Impl::StopIo() {
  if (!io_thread.joinable()) return;
  io.Post([this] { http->Shutdown(std::chrono::milliseconds(200), [this] { io.Stop(); }); });
  io_thread.join();
  if (pages) pages->Stop();
}

EmbeddedCluster::EmbeddedCluster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EmbeddedCluster::~EmbeddedCluster() = default;

Result<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Create(
    const ops::ClusterOptions& options) {
  RaiseDescriptorLimit();
  auto impl = std::make_unique<Impl>(options);
  ops::NodePlan plan = options.plan;
  plan.disk = options.data_dir.path;
  SWELL_ASSIGN_OR_RETURN(impl->node_configs, ops::PlanNodes(plan));
  ops::MarkNodes(impl->node_configs);
  SWELL_RETURN_IF_ERROR(ops::KeepImageStore(options.data_dir, options.image_store));
  SWELL_ASSIGN_OR_RETURN(const ops::RuntimeKind kind, ops::ParseRuntimeKind(options.runtime));
  if (kind.simulated) ops::ForgetMachineLimits(options.data_dir);
  std::string python;
  if (kind.processes()) {
    SWELL_ASSIGN_OR_RETURN(python, ops::TakePython(options.data_dir, options.python));
  }
  // The runtime first: it forks, which must precede any thread.
  SWELL_ASSIGN_OR_RETURN(
      impl->runtime, ops::PodRuntime::Make(
                         options.runtime, impl->core, impl->clock,
                         {.data_dir = options.data_dir.path,
                          .sdk_dir = options.sdk_path,
                          .python = python,
                          .image_store = ops::ImageStoreOf(options.data_dir, options.image_store),
                          .cluster_cidr = options.pod_cidr,
                          .keep_logs = true}));
  const Status opened = impl->Open();
  if (!opened.ok()) {
    // Networks and mounts that were made for this start go with it.
    bool ended = false;
    impl->runtime->Shutdown([&ended] { ended = true; });
    impl->core.RunUntil([&ended] { return ended; }, kShutdownLimit);
    return opened;
  }
  impl->registered =
      impl->metrics.Register([it = impl.get()](MetricPage& page) { it->Collect(page); });
  return std::unique_ptr<EmbeddedCluster>(new EmbeddedCluster(std::move(impl)));
}

Status EmbeddedCluster::Run(const Listeners& listeners) {
  Impl& cluster = *impl_;
  cluster.listeners = listeners;
  auto signals = cluster.core.WatchSignals({SIGINT, SIGTERM, SIGQUIT},
                                           [&cluster](int signal) { cluster.StopAll(signal); });
  if (!signals.ok()) return signals.status();
  cluster.server->Bootstrap([&cluster](const Status& status) {
    if (!status.ok()) {
      cluster.ended = status.WithContext("bootstrap");
      cluster.core.Stop();
      return;
    }
    cluster.io_thread = std::thread([&cluster] {
      cluster.io.KeepTurnsShort();
      cluster.io.Run();
    });
    cluster.StartComponents();
    // After the thread that starts pods: its turns stay ordinary.
    cluster.core.KeepTurnsShort();
    cluster.listeners.ready();
  });
  cluster.core.Run();
  cluster.StopIo();
  return cluster.ended;
}

const std::string& EmbeddedCluster::server_url() const { return impl_->url; }

std::string EmbeddedCluster::pages_url() const { return impl_->pages ? impl_->pages->url() : ""; }

}  // namespace swell
