// ProjectController: makes the namespaces of leaf projects, and tells in the status of projects and
// node pools what the scheduler knows: fair shares, what is allocated and requested, nodes and
// GPUs. A project that is deleted while it is in use stays until its use ends.
// - Threads: core executor only. The scheduler's model outlives it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"
#include "sched/model.h"
#include "sched/past_use.h"

namespace swell::projects {

class ProjectController {
 public:
  using PastUse = std::function<std::vector<sched::PastUse>()>;
  ProjectController(controllers::Context context, const sched::Model& model, PastUse past_use);

  // The model may have changed. Statuses follow within a second, all changes of it at once.
  void OnCycle();

 private:
  void Reconcile(client::WorkQueue::Done done);
  void WriteProject(const json::Value& project,
                    const sched::Model::QueueView* queue,
                    const std::vector<sched::PastUse>& past,
                    bool leaf);
  void WritePool(const json::Value& pool);
  std::string WrongParent(const json::Value& project) const;
  // The first of its node pools that is not there, in words; empty: they all are.
  std::string WrongPool(const json::Value& project) const;
  std::string WrongNamespace(const json::Value& project) const;
  // Pods of a project with others below it, which no quota counts.
  std::string WrongWork(const json::Value& project) const;
  // Any of these; `leaf`: work hangs on it.
  std::string SpecFault(const json::Value& project, bool leaf) const;
  std::vector<std::string> ChildrenOf(std::string_view name) const;
  bool IsParent(std::string_view name) const;
  // The namespace with its Pod Security level, which an existing one gets where it has none.
  void MakeNamespace(const json::Value& project);
  // The NetworkPolicy of a project that is to be isolated; none for others.
  void Isolate(const json::Value& project, std::string_view ns);
  // Why a project that is being deleted must stay; empty when it may go.
  std::string InUse(const json::Value& project, const sched::Model::QueueView* queue) const;
  // Keeps it from going while it is in use, and lets it go when it no longer is.
  void Guard(const json::Value& project, const sched::Model::QueueView* queue);
  void SetFinalizers(const json::Value& project, json::Array finalizers);

  controllers::Context context_;
  const sched::Model& model_;
  const PastUse past_use_;
  client::Informer& projects_;
  client::Informer& pools_;
  client::Informer& namespaces_;
  client::Informer& policies_;
  client::Informer& pods_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::projects
