// Failure: what went wrong in a pod, and what to do about it. Conditions, events and commands all
// print the sentence that is made here.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"
#include "kube/api/objects/failure_class.h"

namespace swell::api {

// The reason of a pod that ran when its node went down.
inline constexpr std::string_view kNodeShutdown = "NodeShutdown";
// Begins what the node says where a command is missing and the image is a name of its catalogue.
inline constexpr std::string_view kServedByMachine = "programs of this machine serve image ";
// Ends what the node says where it stopped a container: "its liveness probe failed".
inline constexpr std::string_view kProbeFailed = " probe failed";

struct Failure {
  std::string member;     // the pod
  std::string container;  // empty: the pod as a whole
  std::string role;       // "container", "init container" or "sidecar"
  FailureClass which = FailureClass::kUnknown;
  std::string reason;                // the node's word: OOMKilled, StartError, Evicted
  std::optional<int64_t> exit_code;  // empty: it never ran
  std::string said;                  // its last words
  std::string advice;                // what to do, without a full stop
  std::string waits;                 // CrashLoopBackOff: it is to start again; empty: it is not
  int64_t restarts = 0;
  std::optional<WallTime> time;     // when it ended
  std::optional<WallTime> settles;  // it runs again; if it still does then, it has recovered

  // It starts again and again, or its node still tries to start it.
  bool repeats() const { return !waits.empty(); }
  // Its node stopped the container, as its probe asks.
  bool StoppedByProbe() const;
  // Shorter than a sentence: "OOMKilled", "exit 1", "SIGSEGV", "CrashLoopBackOff".
  std::string Word() const;
  // "train-worker-1 failed: container pytorch exited with 127; its last line: "sh: x: not found";
  // …".
  std::string Sentence() const;
  // Its advice says where its log is, or that there is none.
  bool TellsOfLog() const;
  // Its log was read and is empty: the advice does not send people there.
  void HasNoLog();
  json::Value ToJson() const;
  static std::optional<Failure> FromJson(const json::Value& document);
};

// What is wrong with the pod at `now`; empty: nothing, or it was stopped because others failed.
std::optional<Failure> FailureOf(const json::Value& pod, WallTime now);
// The failure that explains those of the others: the first in time of those that are causes.
std::optional<Failure> FirstFailure(const std::vector<json::SharedValue>& pods, WallTime now);
// status.failure of a job; empty if it has none.
std::optional<Failure> FailureOfJob(const json::Value& job);

}  // namespace swell::api
