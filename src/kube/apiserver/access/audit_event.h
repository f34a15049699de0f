// The audit log's words about one request: Kubernetes' audit.k8s.io/v1 Event at the level Metadata.
// - Threads: pure.
// - Invariants: one line per event, whatever users send; nothing that may be a secret in a query.
#pragma once

#include <string>
#include <string_view>

#include "kube/apiserver/call.h"

namespace swell::apiserver {

struct AuditMoment {
  std::string_view stage;   // "ResponseStarted", "ResponseComplete"
  int status = 0;           // 0: there was no answer
  std::string_view reason;  // of a failure
  WallTime at;
};

// One line, its newline included.
std::string AuditLine(const Call& call, const AuditMoment& moment);

}  // namespace swell::apiserver
