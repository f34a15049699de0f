// RequestLog: what becomes of every request: counted for metrics, and told to the audit log.
//
// The audit log has Kubernetes' events (audit.k8s.io/v1) at the level Metadata: who asked for what,
// from where, when, and what the answer was; never the bodies. A stream has two events, when it
// starts and when it ends; another request has one. Requests of Swell's own components in this
// process are left out: they follow from what people asked for.
//
// - Threads: core executor only.
// - Ownership: shared by the server and the calls under way; clock, random and metrics outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "kube/apiserver/api_server.h"
#include "kube/apiserver/call.h"

namespace swell::apiserver {

class RequestLog final : public CallObserver {
 public:
  RequestLog(const Clock& clock, Random& random, const Options& options);

  void Received(Call& call) override;
  void Routed(Call& call, std::string verb) override;
  Status Admit(const Call& call) const override;
  void Answered(Call& call, int status, std::string_view reason) override;
  void StreamStarted(Call& call, int status) override;
  void Ended(Call& call) override;

 private:
  void Collect(MetricPage& page) const;
  void Count(const Call& call, int status);
  void Leave(Call& call);
  bool Audited(const Call& call, int status) const;
  void Audit(Call& call, std::string_view stage, int status, std::string_view reason);

  const Clock& clock_;
  Random& random_;
  std::function<void(std::string)> audit_;
  AuditLevel level_;
  std::function<std::string()> problem_;  // of the audit log; empty: the log may fail
  CounterVec requests_;
  HistogramVec durations_;
  HistogramVec sizes_;
  int64_t reading_ = 0;  // under way
  int64_t writing_ = 0;
  int64_t streaming_ = 0;
  std::unique_ptr<Metrics::Registration> registered_;
};

}  // namespace swell::apiserver
