// Plot: runs of policies as one SVG picture: how completion times are distributed, and how many
// GPUs were in use over time.
//
// - Threads: pure functions.
// - Invariants: equal runs give equal bytes; a curve has at most kPointsMax points, all inside its
//   frame; the picture has no script and needs no font or other file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/report.h"

namespace swell::lab {

inline constexpr size_t kPointsMax = 1000;

// `all` has at least one policy and one trace. GPUs in use are those of the first trace.
std::string PlotAsSvg(const std::vector<PolicyRuns>& all,
                      const std::vector<std::string>& traces,
                      int cluster_gpus);

}  // namespace swell::lab
