// ProjectController: makes the namespaces of leaf projects, and tells in the status of projects and
// node pools what the scheduler knows: fair shares, what is allocated and requested, nodes and
// GPUs. Thread-safety: core executor only. The scheduler's model outlives it.
#pragma once

#include <memory>
#include <string>

#include "client/work_queue.h"
#include "controllers/context.h"
#include "sched/model.h"

namespace swell::controllers {

class ProjectController {
 public:
  ProjectController(Context context, const sched::Model& model);

  // The model may have changed. Statuses follow within a second, all changes of it at once.
  void OnCycle();

 private:
  void Reconcile(client::WorkQueue::Done done);
  void WriteProject(const json::Value& project, const sched::Model::QueueView* queue, bool leaf);
  void WritePool(const json::Value& pool);
  std::string WrongParent(const json::Value& project) const;
  void MakeNamespace(const json::Value& project);

  Context context_;
  const sched::Model& model_;
  client::Informer& projects_;
  client::Informer& pools_;
  client::Informer& namespaces_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
