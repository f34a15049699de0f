// The pods that a deleted job has left: they stop, and hold its GPUs and its pods' names until
// then.
// - Threads: plain functions.
#pragma once

#include <string>
#include <string_view>

#include "cli/api.h"

namespace swell::cli {

// Which pods these are, for how long, and how to end them at once; empty: there are none, or the
// user may not read pods. `uid`: of the job that has the name now, whose pods are not meant.
std::string LeftPodsText(Api& api,
                         std::string_view ns,
                         std::string_view name,
                         std::string_view uid = "");

}  // namespace swell::cli
