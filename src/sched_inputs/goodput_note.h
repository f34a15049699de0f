// The annotation swell.dev/goodput of a PodGroup: what its autoscaler tells the scheduler of the
// job's goodput. {"role": "worker", "curve": [[1, 1000000], [2, 1890000]], "measuredAt": 2,
// "resizeMs": 300}: members and relative goodput in millionths.
// - Threads: pure functions.
// - Invariants: people may write it, so what makes no sense is left out.
#pragma once

#include <string>

#include "json/value.h"
#include "sched/state/types.h"

namespace swell::sched_inputs {

inline constexpr std::string_view kGoodputNote = "swell.dev/goodput";

// Without a curve where there is no annotation, or none that can be read.
sched::GoodputInfo ToGoodput(const json::Value& pod_group);
std::string GoodputNote(const sched::GoodputInfo& goodput);

}  // namespace swell::sched_inputs
