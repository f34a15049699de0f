// ContainerIn: a container of one of a pod's lists, by its name.
// - Threads: pure function.
#pragma once

#include <algorithm>
#include <string_view>

#include "json/value.h"

namespace swell::api {

// Null if the list has none of that name. `containers` may also be the list of their statuses.
inline const json::Value* ContainerIn(const json::Array& containers, std::string_view name) {
  const auto it = std::find_if(
      containers.begin(), containers.end(),
      [name](const json::Value& one) { return json::GetString(one, {"name"}) == name; });
  return it == containers.end() ? nullptr : &*it;
}

}  // namespace swell::api
