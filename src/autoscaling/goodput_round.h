// GoodputScaler::Round: one look at a job, and texts that its parts share.
// - Threads: core executor only; lives until the round's last write is answered.
#pragma once

#include <string>
#include <vector>

#include "autoscaling/goodput_scaler.h"

namespace swell::autoscaling {

struct GoodputScaler::Round : JobScaler::Round {
  GoodputRole target;
  std::vector<json::SharedValue> members;  // of the role, that run
  std::string group;                       // the name of the PodGroup
  int nodes = 1;
  GoodputOutlook outlook;
};

// "0.3 s", "12 s".
std::string SecondsText(double seconds);
// "+61 %": of the ratio 1.61.
std::string PercentText(double ratio);

}  // namespace swell::autoscaling
