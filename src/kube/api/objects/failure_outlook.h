// FailureOutlook: whether a failure can pass by itself, or somebody has to correct the job first.
// - Threads: pure functions.
#pragma once

#include "kube/api/objects/failure.h"

namespace swell::api {

// Whether every start ends the same way: the command does not exist, or Python cannot read or
// import the program.
bool NeverMends(const Failure& failure);
// Whether somebody has to correct the job: as above, or it names an image or an object that does
// not exist.
bool NeedsCorrection(const Failure& failure);
// Whether its container has printed nothing, because it never ran.
bool NeverRan(const Failure& failure);

}  // namespace swell::api
