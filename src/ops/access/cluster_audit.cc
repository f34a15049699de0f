#include "ops/access/cluster_audit.h"

#include <utility>

namespace swell::ops {

Result<std::unique_ptr<ClusterAudit>> ClusterAudit::Open(Executor& core,
                                                         const AuditPlan& plan,
                                                         const std::string& path,
                                                         Metrics* metrics,
                                                         AuditLog::Changed changed) {
  if (!plan.on()) return std::unique_ptr<ClusterAudit>();
  auto to_core = [&core, changed = std::move(changed)](const std::string& problem,
                                                       uint64_t missing) {
    core.Post([changed, problem, missing] { changed(problem, missing); });
  };
  SWELL_ASSIGN_OR_RETURN(auto log,
                         AuditLog::Open(path, plan.limits(), metrics, std::move(to_core)));
  return std::unique_ptr<ClusterAudit>(new ClusterAudit(core, plan, path, std::move(log)));
}

void ClusterAudit::AddTo(apiserver::Options& server) {
  using Level = apiserver::AuditLevel;
  server.audit_required = plan_.required;
  server.audit_level = plan_.level == "all" ? Level::kAll : Level::kWrites;
  server.audit_problem = [this] { return log_->Problem(); };
  server.audit = [this](std::string line) { log_->Append(std::move(line)); };
  server.search_audit = [this](apiserver::AuditQuery query, AuditSearch::Done done) {
    search_.Find(std::move(query), std::move(done));
  };
}

}  // namespace swell::ops
