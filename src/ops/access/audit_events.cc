#include "ops/access/audit_events.h"

#include <utility>

#include "base/strings.h"

namespace swell::ops {

AuditEvents::AuditEvents(Executor& core,
                         Clock& clock,
                         std::shared_ptr<api::RestHandler> server,
                         api::UserInfo user,
                         uint64_t seed)
    : events_(core, clock, std::move(server), std::move(user), "audit", seed) {}

void AuditEvents::Tell(const std::string& problem, uint64_t missing) {
  // About the cluster as a whole, which has no object of its own.
  const json::Value cluster = json::Object{{"apiVersion", "v1"},
                                           {"kind", "Namespace"},
                                           {"metadata", json::Object{{"name", "kube-system"}}}};
  if (problem.empty()) {
    events_.Record(
        cluster, "Normal", "AuditLogWritten",
        StrCat("the audit log is written again; events missing since the start: ", missing));
  } else {
    events_.Record(cluster, "Warning", "AuditLogFailed",
                   StrCat("the audit log misses what happens now: ", problem));
  }
}

}  // namespace swell::ops
