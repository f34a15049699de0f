// LabCluster: what the laboratory takes from a live cluster: its past jobs, its shape, its quotas.
//
// - Threads: one; calls block on the session's loop.
// - Invariants: nothing is written to the cluster.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"
#include "lab/history.h"
#include "lab/policy.h"

namespace swell::ops {

struct LabCluster {
  lab::History history;
  lab::ClusterShape shape;         // nodes only if the caller did not choose them
  std::vector<std::string> notes;  // sentences for people: what was taken, what may be missing
};

struct LabClusterQuery {
  Duration last;
  bool read_shape = true;
  std::string usage_namespace;
};

// Errors say what to do: no cluster answers, no job has ended, no node has GPUs.
Result<LabCluster> ReadLabCluster(cli::Session& session, const LabClusterQuery& query);

// The largest group of equal nodes, and a sentence where nodes differ. An error if none has GPUs.
Result<lab::ClusterShape> ShapeOf(const std::vector<cli::NodeView>& nodes,
                                  std::vector<std::string>& notes);

// What projects without children have of the cluster.
std::map<std::string, lab::TenantShare> SharesOf(const cli::ProjectTree& tree);

}  // namespace swell::ops
