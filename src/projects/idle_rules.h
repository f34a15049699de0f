// IdleRules: stops interactive work that leaves its GPUs idle. A project says how long it may
// (annotation swell.dev/idle-timeout), and so does a job for itself. Its user is warned first. Then
// the job is suspended: its pods get notice, and `swell resume` starts it again.
//
// A virtual GPU is as busy as its pod keeps the processors that it requests, by the metrics API.
// Pods that are not measured are not idle.
//
// - Threads: core executor only.
// - Ownership: the informers outlive it.
// - Invariants: asks about kNamespacesMax namespaces at most in one round.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/client/event_recorder.h"
#include "kube/controllers/context.h"

namespace swell::projects {

class IdleRules {
 public:
  explicit IdleRules(controllers::Context context);

  // Once the informers are in sync.
  void Start();

  static constexpr Duration kEvery = std::chrono::seconds(30);
  static constexpr size_t kNamespacesMax = 64;
  // How long before its end a user is warned: this, or a fifth of the timeout if that is less.
  static constexpr Duration kWarning = std::chrono::minutes(5);

 private:
  // A job with a timeout, and its pods that hold GPUs.
  struct Work {
    json::SharedValue job;
    client::Resource resource;
    std::string suspend;  // the field below spec
    Duration timeout{0};
    std::vector<json::SharedValue> pods;
  };
  struct Idle {
    WallTime since;
    bool warned = false;
  };

  void Round();
  std::map<std::string, Work> Find() const;  // by the job's uid
  std::optional<Duration> TimeoutOf(const json::Value& job, const json::Value& pod) const;
  void Measure(const std::string& ns);
  void OnMeasured(const std::string& ns, const json::Value& list);
  void Decide(const std::string& uid, const Work& work);
  void Stop(const Work& work, Duration idle);

  controllers::Context context_;
  client::Informer& pods_;
  client::Informer& projects_;
  std::vector<std::pair<client::Informer*, std::string>> jobs_;  // each kind, how it is suspended
  std::map<std::string, Idle, std::less<>> idle_;                // by the job's uid
  client::EventRecorder events_;
  client::Client client_;
  Timer timer_{context_.executor};
  CallbackScope scope_;
};

// The part of its processors that a pod keeps busy, from the metrics API's row about it.
double BusyPart(const json::Value& metrics, const json::Value& pod);

}  // namespace swell::projects
