// Lists of texts and numbers with fractions in documents: read with a default, as in value.h.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"

namespace swell::json {

// The items that are texts; others are left out.
std::vector<std::string> Texts(const Array& list);

// A list of these texts.
template <class Strings>
Array TextArray(const Strings& texts) {
  Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

// 0 where there is no number.
double GetDouble(const Value& root, Path path);

}  // namespace swell::json
