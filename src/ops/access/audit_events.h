// AuditEvents: says in the cluster's Events when the audit log begins to miss something, and when
// it is written again.
// - Threads: the core thread.
// - Ownership: executor and clock outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kube/client/event_recorder.h"

namespace swell::ops {

class AuditEvents {
 public:
  AuditEvents(Executor& core,
              Clock& clock,
              std::shared_ptr<api::RestHandler> server,
              api::UserInfo user,
              uint64_t seed);

  // As AuditLog::Changed has it: `problem` empty: it is written again.
  void Tell(const std::string& problem, uint64_t missing);

 private:
  client::EventRecorder events_;
};

}  // namespace swell::ops
