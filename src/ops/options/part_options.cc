#include "ops/options/part_options.h"

#include "base/file.h"
#include "base/host_port.h"
#include "base/strings.h"
#include "kube/client/usage_record.h"
#include "ops/access/job_keys.h"

namespace swell::ops {
namespace {

constexpr size_t kTokenFileBytesMax = size_t{4} << 20;

}  // namespace

Result<apiserver::Options> ServerOptionsOf(const ClusterOptions& cluster) {
  apiserver::Options server;
  server.anonymous = true;
  server.rbac = true;
  server.token_life_max = cluster.token_life_max;
  if (!cluster.default_scheduler) server.default_scheduler = "default-scheduler";
  if (cluster.token_auth_file.empty()) return server;
  SWELL_ASSIGN_OR_RETURN(const std::string csv,
                         ReadFile(cluster.token_auth_file, kTokenFileBytesMax));
  auto tokens = apiserver::ParseTokenFile(csv);
  if (!tokens.ok()) return tokens.status().WithContext(cluster.token_auth_file);
  server.tokens = std::move(*tokens);
  return server;
}

manager::ManagerOptions ManagerOptionsOf(const ClusterOptions& cluster) {
  manager::ManagerOptions manager;
  manager.controllers = cluster.controllers;
  manager.make_ssh_key = MakeJobKey;
  // Schedulers named in manifests that do not run here.
  for (const char* other : {"volcano", "kai-scheduler", "runai-scheduler"}) {
    manager.scheduler_names.push_back(other);
  }
  if (cluster.default_scheduler) manager.scheduler_names.push_back("default-scheduler");
  manager.scheduler = cluster.scheduler;
  manager.autoscaling_default = cluster.autoscaling_default;
  manager.own_namespace = client::kUsageNamespace;
  manager.grouping_namespace = client::kUsageNamespace;
  return manager;
}

node::MachineAddresses MachineAddressesOf(const ClusterOptions& cluster) {
  std::string own = IpForClients(cluster.listen);
  if (own.find(':') != std::string::npos) own = "127.0.0.1";  // node ports are served on IPv4
  return {.nodes = cluster.listen.starts_with("0.0.0.0") ? "0.0.0.0" : own,
          .external = cluster.external_address.empty() ? own : cluster.external_address};
}

std::vector<std::string> CertificateHosts(const ClusterOptions& cluster,
                                          const std::string& gateway) {
  std::vector<std::string> hosts{HostForClients(cluster.listen)};
  if (!gateway.empty()) hosts.push_back(gateway);
  // The pages have a certificate only where other machines reach them.
  if (cluster.ui_address.find(':') != std::string::npos && !IsLoopback(cluster.ui_address)) {
    hosts.push_back(HostForClients(cluster.ui_address));
  }
  return hosts;
}

std::vector<std::pair<std::string, std::string>> ServerVariables(const std::string& host,
                                                                 uint16_t port) {
  const std::string number = std::to_string(port);
  return {{"KUBERNETES_SERVICE_HOST", host},
          {"KUBERNETES_SERVICE_PORT", number},
          {"KUBERNETES_SERVICE_PORT_HTTPS", number},
          {"KUBERNETES_PORT", StrCat("tcp://", Bracketed(host), ":", number)}};
}

}  // namespace swell::ops
