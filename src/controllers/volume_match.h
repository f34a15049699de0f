// Which volumes fit which claims. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::controllers {

// Of claims and volumes alike; "" when none is named.
std::string ClassOf(const json::Value& claim_or_volume);
// Why the volume cannot be the claim's, in the words of its events; "" when it can.
std::string WhyNotFor(const json::Value& volume, const json::Value& claim);
// Whether the volume is kept for the claim: by its uid, or by its name while that has none.
bool IsKeptFor(const json::Value& volume, const json::Value& claim);
// Whether the volume is smaller.
bool SmallerVolume(const json::Value& a, const json::Value& b);

}  // namespace swell::controllers
