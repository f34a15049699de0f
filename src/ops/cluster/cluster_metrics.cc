#include "ops/cluster/cluster_metrics.h"

#include <sys/stat.h>

#include <string_view>

#include "base/strings.h"

namespace swell::ops {

using enum MetricType;

void AddSocketMetrics(MetricPage& page,
                      const net::ServerStats& sockets,
                      const edge::HttpFrontStats& requests) {
  auto add = [&page](std::string_view name, MetricType type, std::string_view help, auto value) {
    page.Add({name, type, help}, static_cast<double>(value));
  };
  add("swell_http_connections", kGauge, "Open connections.", sockets.connections_open.load());
  add("swell_http_connections_total", kCounter, "Accepted connections.",
      sockets.connections_accepted.load());
  add("swell_http_connections_refused_total", kCounter,
      "Connections refused because there were too many.", sockets.connections_refused.load());
  add("swell_http_bad_requests_total", kCounter, "Requests that are not valid HTTP.",
      sockets.bad_requests.load());
  add("swell_http_timeouts_total", kCounter, "Connections closed because the client was too slow.",
      sockets.timeouts.load());
  add("swell_http_overflows_total", kCounter,
      "Streams closed because the client did not read them.", sockets.overflows.load());
  add("swell_http_requests_total", kCounter, "Requests received.", requests.requests.load());
  add("swell_http_requests_refused_total", kCounter, "Requests answered with 429.",
      requests.refused.load());
  add("swell_http_requests_abandoned_total", kCounter, "Requests whose client disconnected.",
      requests.abandoned.load());
}

void AddDatabaseMetrics(MetricPage& page, const DataDir& dir) {
  const MetricFamily files{
      "swell_store_size_bytes", kGauge, "Size of the database and its log in bytes.", {"file"}};
  for (const char* file : {"swell.db", "swell.db-wal"}) {
    struct stat facts {};
    if (::stat(StrCat(dir.path, "/", file).c_str(), &facts) != 0) continue;
    page.Add(files, {file}, static_cast<double>(facts.st_size));
  }
}

void AddPodMetrics(MetricPage& page, const node::NodeFleet* fleet) {
  double pods = 0;
  if (fleet != nullptr) {
    for (const node::NodeAgent* node : fleet->nodes()) {
      pods += static_cast<double>(node->worker_count());
    }
  }
  page.Add({"swell_agent_pods", kGauge, "Pods that the agent runs."}, pods);
}

void AddAgentMetrics(MetricPage& page, const node::NodeFleet& fleet) {
  const auto& nodes = fleet.nodes();
  double registered = 0;
  for (const node::NodeAgent* node : nodes) registered += node->registered();
  page.Add({"swell_agent_nodes", kGauge, "Nodes of this agent."},
           static_cast<double>(nodes.size()));
  page.Add({"swell_agent_nodes_registered", kGauge, "Nodes registered with the cluster."},
           registered);
  AddPodMetrics(page, &fleet);
}

}  // namespace swell::ops
