// ClusterAudit: the audit log of an API server in this process, written and searched.
// - Threads: the executor; what it adds to the server's options may run on any thread.
// - Ownership: the executor outlives it; it outlives the server.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "kube/apiserver/api_server.h"
#include "ops/access/audit_log.h"
#include "ops/access/audit_search.h"

namespace swell::ops {

class ClusterAudit {
 public:
  // `path`: the file that is written now. `changed` runs on the executor. Null if nothing is
  // recorded.
  static Result<std::unique_ptr<ClusterAudit>> Open(Executor& core,
                                                    const AuditPlan& plan,
                                                    const std::string& path,
                                                    Metrics* metrics,
                                                    AuditLog::Changed changed);

  // The server records here what the plan says, and searches here.
  void AddTo(apiserver::Options& server);

 private:
  ClusterAudit(Executor& core,
               AuditPlan plan,
               const std::string& path,
               std::unique_ptr<AuditLog> log)
      : plan_(std::move(plan)), log_(std::move(log)), search_(core, path) {}

  const AuditPlan plan_;
  const std::unique_ptr<AuditLog> log_;
  AuditSearch search_;
};

}  // namespace swell::ops
