// Words of rules, as those of RBAC and of webhooks: "*" stands for every word.
// - Threads: pure functions.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::api {

inline bool HasWordOrAll(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [word](std::string_view one) { return one == "*" || one == word; });
}
inline bool HasWordOrAll(const json::Array& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(), [word](const json::Value& one) {
    return one.is_string() &&
           (json::View(one.get_string()) == "*" || json::View(one.get_string()) == word);
  });
}

}  // namespace swell::api
