// OnlineBackup: writes the database of a running cluster to a file, for `swell backup`.
// - Threads: the executor's. A thread of its own writes the file, so the executor does not wait.
// - Ownership: the executor outlives it; its destructor waits for the write in progress.
// - Invariants: one backup is written at a time; a file that could not be written whole is removed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/executor.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/store/backend.h"

namespace swell::ops {

class OnlineBackup {
 public:
  explicit OnlineBackup(Executor& executor) : executor_(executor) {}
  ~OnlineBackup();

  // Writes the state of this instant to `path`, Secrets encrypted. Answers {file, version, objects}
  // on the executor; kTooManyRequests if a backup is being written already.
  void Write(const store::Store& store,
             const std::string& path,
             std::shared_ptr<const store::RowSealer> sealer,
             std::function<void(Result<json::Value>)> done);

 private:
  void End(const std::string& path,
           const Status& written,
           json::Value answer,
           const std::function<void(Result<json::Value>)>& done);

  Executor& executor_;
  std::thread thread_;
};

}  // namespace swell::ops
