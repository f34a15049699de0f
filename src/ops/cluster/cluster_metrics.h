// Metrics of a cluster's sockets, disk and node agents. Server, controllers and scheduler add their
// own.
// - Threads: the core thread, at a scrape.
#pragma once

#include "base/metrics.h"
#include "kube/edge/http/http_front.h"
#include "kube/net/http/server.h"
#include "kube/node/node_fleet.h"
#include "ops/data_dir.h"

namespace swell::ops {

void AddSocketMetrics(MetricPage& page,
                      const net::ServerStats& sockets,
                      const edge::HttpFrontStats& requests);
// Sizes of the database and its log.
void AddDatabaseMetrics(MetricPage& page, const DataDir& dir);
// The pods of all node agents; none if `fleet` is null.
void AddPodMetrics(MetricPage& page, const node::NodeFleet* fleet);

// The nodes of `swell agent`, and their pods.
void AddAgentMetrics(MetricPage& page, const node::NodeFleet& fleet);

}  // namespace swell::ops
