// GoodputReports: the scripts of elastic jobs. Every two seconds the first running member of such a
// job reports its speed, as the SDK does. How well a job scales follows from its name.
// - Threads: one thread.
// - Ownership: executor outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/timer.h"
#include "kube/client/client.h"

namespace swell::sim {

class GoodputReports {
 public:
  GoodputReports(Executor& executor, std::shared_ptr<api::RestHandler> server);

  void Start() { ReportLater(); }

 private:
  void ReportLater();
  void OnPods(const client::ObjectList& pods);
  void Report(const json::Value& first, size_t members);

  std::map<std::string, int64_t> steps_;  // by the job's "ns/name"
  Timer timer_;
  client::Client client_;
};

}  // namespace swell::sim
