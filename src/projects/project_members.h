// ProjectMembers: gives the members of projects (spec.members) their roles: in the namespace of a
// project that has work, one RoleBinding for each role that somebody has there, called
// swell:members:ROLE and owned by the project.
//
// Level-triggered: a round compares what all projects say with the bindings that projects own,
// makes, changes and removes those, and touches no others. Whether the writer of a project may give
// these roles is checked when the project is written.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <string>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::projects {

class ProjectMembers {
 public:
  explicit ProjectMembers(controllers::Context context);

 private:
  using Bindings = std::map<std::string, json::Value>;  // by "namespace/name"

  void Reconcile(client::WorkQueue::Done done);
  Bindings Wanted() const;
  void AddBindings(const json::Value& project, Bindings& to) const;

  controllers::Context context_;
  client::Informer& projects_;
  client::Informer& namespaces_;
  client::Informer bindings_;  // those that belong to a project
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::projects
