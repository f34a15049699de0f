// Rules: where the published simulators of Pollux, Sia and Rubick differ.
//
// Sia's simulator is built on Pollux'. There, each application has a delay of its own, trains
// slower than its profile says by a factor that was found on real clusters, and a job that moves to
// other nodes in the same shape (as many GPUs on as many nodes, of the same type) pays nothing. In
// Rubick's each start, resize or move costs 260 s, and a move in the same shape nothing.
//
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace swell::lab {

enum class Rules { kPollux, kSia, kRubick };

struct ApplicationCosts {
  int64_t resize_s = 30;   // a start, resize or move without progress
  double slowdown = 1;     // true speed is that of the profile divided by this
  int64_t penalty_s = 30;  // the cost of a restart in Sia's policy
};

// What the authors measured of an application, or of all; else the defaults.
ApplicationCosts CostsOf(Rules rules, std::string_view application);

// The largest batch of one GPU that the published simulator lets an application have on a type of
// GPU, given the largest that was measured.
int64_t LocalBatchMax(Rules rules,
                      std::string_view application,
                      std::string_view gpu_type,
                      int64_t measured);

}  // namespace swell::lab
