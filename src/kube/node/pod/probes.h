// ProbeRunner: runs one probe of one container, period after period, and counts what it says.
//
// Reports a change only when the threshold is reached: healthy after successThreshold successes in
// a row, unhealthy after failureThreshold failures. It runs until it is destroyed.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/callback_scope.h"
#include "base/executor.h"
#include "base/timer.h"
#include "json/value.h"
#include "kube/node/runtime/runtime.h"

namespace swell::node {

enum class ProbeKind { kStartup, kReadiness, kLiveness };
std::string_view ProbeName(ProbeKind kind);  // "Startup", …

// What an httpGet, tcpSocket or grpc of a probe or hook asks for; `container` has the named ports.
ProbeSpec ReadNetAction(const json::Value& container, const json::Value& action, Duration timeout);

class ProbeRunner {
 public:
  struct Callbacks {
    // The verdict changed (the first one counts).
    std::function<void(bool healthy)> on_verdict;
    // Every failure, for events: "Readiness probe failed: …".
    std::function<void(const std::string& message)> on_failure;
  };

  // `container` is the container's object (for named ports), `probe` its probe field.
  ProbeRunner(Executor& executor,
              Runtime& runtime,
              ProbeKind kind,
              const json::Value& container,
              const json::Value& probe,
              ContainerRef ref,
              Callbacks callbacks);

  void Start();
  ProbeKind kind() const { return kind_; }

  // Why the probe cannot be run here at all; OK when it can.
  static Status Check(const json::Value& container, const json::Value& probe);

 private:
  void Run();
  void OnResult(bool ok, const std::string& message);

  Executor& executor_;
  Runtime& runtime_;
  ProbeKind kind_;
  ContainerRef ref_;
  Callbacks callbacks_;
  bool exec_ = false;
  ExecSpec exec_spec_;
  ProbeSpec net_spec_;
  Duration initial_delay_, period_;
  int success_threshold_, failure_threshold_;
  int successes_ = 0, failures_ = 0;
  int verdict_ = -1;
  Timer timer_{executor_};
  CallbackScope scope_;
};

}  // namespace swell::node
