// RunaiKind: what all kinds of Run:ai's workloads (run.ai/v2alpha1) have in common.
// - Threads: a JobKind has no state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jobs/kinds/job_kind.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/project.h"

namespace swell::jobs {

class RunaiKind : public JobKind {
 public:
  RunaiKind(api::Definition definition, const JobKindOptions& options)
      : definition_(std::move(definition)), options_(options) {}

  client::Resource resource() const override {
    return {definition_.group, definition_.version, definition_.plural, true};
  }
  std::string kind() const override { return definition_.kind; }
  // nodePools names the first. A namespace that its project made says whose it is; one that was
  // there before has the project's name.
  std::vector<client::Resource> References() const override {
    return {client::resources::kNodePools, client::resources::kNamespaces,
            client::resources::kProjects};
  }

 protected:
  // The project that the member is charged to; empty: none.
  std::string ProjectOf(const JobMember& member) const {
    if (!member.spec.project.empty() || !options_.find) return member.spec.project;
    const std::string_view name = api::Namespace(member.job);
    const auto ns = options_.find(client::resources::kNamespaces, name);
    if (ns && !api::Label(*ns, api::keys::kProject).empty()) {
      return std::string(api::Label(*ns, api::keys::kProject));
    }
    const auto project = options_.find(client::resources::kProjects, name);
    return project && api::NamespaceOfProject(*project) == name ? std::string(name) : "";
  }
  const api::Definition definition_;
  const JobKindOptions options_;
};

}  // namespace swell::jobs
