// JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386), and the merge patch between two documents.
// - Threads: pure functions.
#pragma once

#include "json/value.h"

namespace swell::json {

// Applies the operations in order to a copy. kBadRequest for a malformed patch, kInvalid when an
// operation cannot be applied (test failed, path missing). kTooLarge: more than 10,000 operations,
// or operations that copy or move too much together.
Result<Value> ApplyJsonPatch(const Value& document, const Value& patch);

void ApplyMergePatch(Value& document, const Value& patch);
// The patch p with ApplyMergePatch(from, p) == to. (null members of `to` cannot be expressed.)
Value MakeMergePatch(const Value& from, const Value& to);

}  // namespace swell::json
