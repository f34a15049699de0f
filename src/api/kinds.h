// The rows of built-in kinds, for Scheme::BuiltIn.
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "api/schema_text.h"
#include "api/scheme.h"

namespace swell::api {

struct BuiltInKind {
  KindInfo kind;
  bool storage = false;
};
std::vector<BuiltInKind> BuiltInKinds(SchemaLibrary& library);

}  // namespace swell::api
