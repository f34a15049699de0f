// ConnectedMember: a member of a RoleJob, and how it reaches the others.
// - Ownership: what it refers to outlives it.
// - Threads: a value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jobs/kinds/job_kind.h"
#include "kube/api/meta/meta.h"

namespace swell::jobs {

struct ConnectedMember : JobMember {
  std::vector<std::vector<int64_t>> ports;  // by role and index, as in `spec`
  const JobKindOptions& options;

  std::string_view name() const { return api::Name(job); }
  std::string NameOf(const ReplicaSpec& other, int64_t number) const {
    return other.PodName(name(), number);
  }
  // The name of the first member of the first role, where all members meet.
  std::string leader() const { return NameOf(spec.replicas.front(), 0); }
  int64_t leader_port() const { return ports.front().front(); }
  int64_t port() const {
    const auto of_role = static_cast<size_t>(&role - spec.replicas.data());
    return ports[of_role][static_cast<size_t>(index)];
  }
  bool leads() const { return rank() == 0; }
  // The addresses of all members by their role: {"ps": ["job-ps-0.ns.svc:2222"]}. `domain` stands
  // between name and port (".ns.svc"). Members of the role `without` are left out.
  json::Object Cluster(std::string_view domain, std::string_view without = {}) const;
};

}  // namespace swell::jobs
