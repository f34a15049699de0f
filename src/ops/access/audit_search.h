// AuditSearch: finds events in the files of the audit log, the newest first.
// - Threads: Find on the executor, which also answers. A thread of its own reads the files.
// - Ownership: the executor outlives it; what still waits when it is destroyed is searched first.
// - Invariants: at most kWaitingMax searches wait; one reads at most kBytesMax.
#pragma once

#include <functional>
#include <string>

#include "base/background_queue.h"
#include "base/executor.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/apiserver/audit_query.h"

namespace swell::ops {

// An EventList of audit.k8s.io/v1. "more" is true if older events may match, too.
Result<json::Value> SearchAudit(const std::string& path, const apiserver::AuditQuery& query);

class AuditSearch {
 public:
  static constexpr size_t kWaitingMax = 16;
  using Done = std::function<void(Result<json::Value>)>;

  // `path` as AuditLog has it: PATH.1 is the file before, and so on.
  AuditSearch(Executor& executor, std::string path);

  // kTooManyRequests if too many wait.
  void Find(apiserver::AuditQuery query, Done done);

 private:
  struct Task {
    apiserver::AuditQuery query;
    Done done;
  };

  Executor& executor_;
  const std::string path_;
  BackgroundQueue<Task> queue_;
};

}  // namespace swell::ops
