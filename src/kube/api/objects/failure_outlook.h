// FailureOutlook: whether a failure can pass by itself, or somebody has to correct the job first.
// - Threads: pure functions.
#pragma once

#include "kube/api/objects/failure.h"

namespace swell::api {

// Every start ends the same way: the command is not there, Python cannot read or import the
// program.
bool NeverMends(const Failure& failure);
// Waiting helps as little: it never mends, or names an image or an object that is not there.
bool NeedsCorrection(const Failure& failure);
// Its container has printed nothing, since it never ran.
bool NeverRan(const Failure& failure);

}  // namespace swell::api
