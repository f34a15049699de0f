// WrongField: errors about one field of a job or a pod.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace swell::controllers {

// kInvalid, in the words of the API server: "FIELD: MESSAGE", or "FIELD: Invalid value: V:
// MESSAGE"; the cause among its details.
Status WrongField(std::string_view field, std::string_view message);
Status WrongField(std::string_view field, int64_t value, std::string_view message);
Status WrongText(std::string_view field, std::string_view value, std::string_view message);

}  // namespace swell::controllers
