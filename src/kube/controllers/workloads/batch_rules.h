// BatchRules: the pure rules of batch/v1 Jobs: completed indexes, policies of failure and success,
// backoff.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "json/value.h"

namespace swell::controllers {

inline constexpr int64_t kCompletionsMax = 100'000;

// "0,2-4" and back; numbers out of [0, completions) are left out.
std::set<int64_t> ParseIndexes(std::string_view text, int64_t completions);
std::string FormatIndexes(const std::set<int64_t>& indexes);
// The pod's annotation (or label) batch.kubernetes.io/job-completion-index; -1 without one.
int64_t CompletionIndex(const json::Value& pod);

enum class FailureAction { kCount, kIgnore, kFailIndex, kFailJob };
struct FailureVerdict {
  FailureAction action = FailureAction::kCount;
  std::string message;  // of kFailJob
};
// What spec.podFailurePolicy says of a failed pod: the first rule that matches.
FailureVerdict ClassifyFailure(const json::Value& job, const json::Value& pod);

// The first rule of spec.successPolicy that these indexes fulfil.
std::optional<size_t> MatchSuccessPolicy(const json::Value& job,
                                         const std::set<int64_t>& completed);

// When the last of its containers ended; the creation time when that is not known.
WallTime EndTime(const json::Value& pod);
// Before the next pod after `failures` of them: 10 s, doubling, at most 6 minutes.
Duration BackoffAfter(int64_t failures);

}  // namespace swell::controllers
