// PriorityClasses by name.
// - Threads: as Api.
#pragma once

#include <string>
#include <string_view>

#include "cli/api.h"

namespace swell::cli {

// OK for "" and for a class that exists; else an error that lists those that do.
Status CheckPriorityClass(Api& api, const std::string& name, std::string_view flag = "--priority");

}  // namespace swell::cli
