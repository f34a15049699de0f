// Whether a job needs more than the nodes or its project's limit can ever give it, to warn the user
// who submits it.
// - Threads: blocks on the Api's loop.
#pragma once

#include <string>

#include "cli/session.h"

namespace swell::cli {

// "no node has 9 GPUs; the largest has 2 GPUs. The job waits until such a node is added", and the
// same for labels that no node has. Empty: the cluster could hold the job, or that is not known
// because the user may not list nodes or projects, or there are more than 500 nodes.
std::string TooLargeText(Api& api, const json::Value& job);

}  // namespace swell::cli
