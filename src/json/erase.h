// Removing many members of an object: in one pass, where StableErase shifts all that follow each.
// - Threads: pure functions.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::json {

// The members for which `goes` holds go; the others keep their order.
void EraseMembers(Object& object, const std::function<bool(std::string_view key)>& goes);
void EraseMembers(Object& object, const std::set<std::string, std::less<>>& keys);

}  // namespace swell::json
