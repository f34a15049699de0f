// Explain: the life of one job in a run, decision by decision, in words.
//
// - Threads: pure functions.
// - Invariants: equal input, equal text; at most kLinesMax decisions are printed.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/simulator.h"

namespace swell::lab {

inline constexpr int kLinesMax = 1000;

// Each decision that changed what the job holds, or first left it waiting, with
// - what the job held before and after, and how the policy expects its goodput to change,
// - which other jobs changed at the same instant,
// - the policy's reason.
// kNotFound if the trace has no such job; the message names some that it has.
Result<std::string> ExplainJob(const Trace& trace,
                               const ProfileLibrary& profiles,
                               const PolicyKind& policy,
                               RunOptions options,
                               const std::string& job);

}  // namespace swell::lab
