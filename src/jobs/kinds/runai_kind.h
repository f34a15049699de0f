// RunaiKind: what all kinds of Run:ai's workloads (run.ai/v2alpha1) have in common.
// - Threads: a JobKind has no state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jobs/kinds/job_kind.h"
#include "kube/api/crd/definitions.h"

namespace swell::jobs {

class RunaiKind : public JobKind {
 public:
  RunaiKind(api::Definition definition, const JobKindOptions& options)
      : definition_(std::move(definition)), options_(options) {}

  client::Resource resource() const override {
    return {definition_.group, definition_.version, definition_.plural, true};
  }
  std::string kind() const override { return definition_.kind; }
  // nodePools names them.
  std::vector<client::Resource> References() const override {
    return {client::resources::kNodePools};
  }

 protected:
  const api::Definition definition_;
  const JobKindOptions options_;
};

}  // namespace swell::jobs
