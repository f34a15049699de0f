// Policy: decides which job trains on which GPUs. The simulator carries it out.
//
// - Threads: none.
// - Ownership: a policy belongs to one run and may remember what it decided. It may refer to the
//   shape that it was made with: the run keeps it, and changes which nodes are away.
// - Invariants: equal input, equal decisions; no node gives more GPUs than it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/model/sim_job.h"

namespace swell::lab {

// What a tenant's project has of the cluster, for policies that have projects.
struct TenantShare {
  double quota = 0;   // GPUs that it can always get back
  double weight = 1;  // of what no quota covers
};

// Nodes with GPUs of one type.
struct NodeGroup {
  int nodes = 16;
  int gpus_per_node = 4;
  std::string type;  // of profiles; empty: the first one that was read

  int gpus() const { return nodes * gpus_per_node; }
};

inline constexpr size_t kGroupsMax = 8;

struct ClusterShape {
  // At least one, at most kGroupsMax. Node numbers run through all groups, in their order.
  std::vector<NodeGroup> groups;
  std::map<std::string, TenantShare>
      tenants;         // tenants that are not here have no quota, and a weight of 1
  std::set<int> away;  // nodes that are revoked, or about to be

  explicit ClusterShape(std::vector<NodeGroup> all) : groups(std::move(all)) {}
  ClusterShape(int nodes, int gpus_per_node) : groups{{nodes, gpus_per_node, ""}} {}
  ClusterShape() : ClusterShape(16, 4) {}

  int gpus() const;   // without those of nodes that are away
  int nodes() const;  // all of them
  // For a cluster with one type of GPU.
  int gpus_per_node() const { return groups.front().gpus_per_node; }
  int GroupOf(int node) const;
  std::string ToString() const;  // "16x4", "6x4:aws,2x8:dgx-ext"
};

// The node of each GPU of a job, in the order of its ranks, all of one group. A change restarts the
// job. By Sia's rules only a change of its shape or group does.
using Allocation = std::vector<int>;
// By the job's number in the trace; jobs without GPUs are left out.
using Allocations = std::map<int, Allocation>;

struct ActiveJob {
  int number = 0;
  const SimJob* job = nullptr;
};

// Submitted jobs that have not ended, in the order of the trace.
using ActiveJobs = std::deque<ActiveJob>;  // those that run, and end, are mostly the first

class Policy {
 public:
  virtual ~Policy() = default;
  // Tell policies that keep jobs of their own what happened since the last decision: a job was
  // submitted; a job ended, and had its GPUs until then.
  virtual void Submitted(const ActiveJob& /*job*/) {}
  virtual void Ended(int /*number*/) {}
  // A node is about to go, and the shape does not count its GPUs any more; or it is back. A
  // decision follows.
  virtual void Leaves(int /*node*/) {}
  virtual void Returns(int /*node*/) {}
  // `now` holds the allocations of active jobs only. A job that lost a node since the last decision
  // is there with what is left if the policy resizes jobs and the job can train on with that. Else
  // it is not there.
  virtual Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) = 0;
  // What the job's turn in the last decision depended on: the key by which the policy orders jobs,
  // and the job's value of it. The job is as it was when the policy decided.
  virtual std::string Reason(const ActiveJob& job) const = 0;
};

struct PolicyKind {
  std::string name;
  std::string summary;
  int64_t round_s = 60;      // it decides this often
  bool on_events = false;    // and whenever a job comes or ends
  bool looks_ahead = false;  // knows how long jobs will run
  BatchMode batch = BatchMode::kRequested;
  bool learns = false;      // a job begins with what others of its application measured
  bool resizes = false;     // else jobs hold the GPUs they requested or none
  bool many_types = false;  // it knows GPUs of several types
  bool nodes_go = false;    // it knows that nodes go and come back, on one type of GPU
  bool plans = false;       // if it resizes: it chooses only sizes on which a job's plan trains
  // The memory in bytes that a decision about `jobs` jobs takes. Null: a few bytes for each job.
  double (*bytes)(const ClusterShape& shape, size_t jobs) = nullptr;
  std::unique_ptr<Policy> (*make)(const ClusterShape&) = nullptr;
};

const std::vector<PolicyKind>& Policies();
// An error lists the names there are.
Result<const PolicyKind*> FindPolicy(std::string_view name);

}  // namespace swell::lab
