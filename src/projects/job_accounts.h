// JobAccounts: the service account with which scripts of Slurm's jobs ask the cluster, in every
// namespace where a project has its work, and in "default": a ServiceAccount slurm-job, which has
// the ClusterRole swell:slurm-job there, and reads of the cluster what every user does.
//
// Its rights are a part of those of researchers, and only members of a project may make pods that
// have it, so it gives nobody anything. A project with the annotation `swell.dev/slurm-account:
// none` gets no account.
//
// Level-triggered: a round compares what all projects want with the objects of that label, makes,
// corrects and removes those, and touches no others.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"
#include "kube/controllers/write_batch.h"

namespace swell::projects {

class JobAccounts {
 public:
  explicit JobAccounts(controllers::Context context);

 private:
  using Objects = std::map<std::string, json::Value>;  // by key

  void Reconcile(client::WorkQueue::Done done);
  // For each informer its objects.
  std::vector<Objects> Wanted() const;
  void Apply(const client::Informer& known,
             Objects wanted,
             const std::shared_ptr<controllers::WriteBatch>& writes);

  controllers::Context context_;
  client::Informer& projects_;
  client::Informer& namespaces_;
  std::vector<std::unique_ptr<client::Informer>> known_;  // of each kind, those with the label
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::projects
