// The rows of built-in kinds, for Scheme::BuiltIn.
// - Threads: pure functions.
#pragma once

#include <vector>

#include "kube/api/schema/schema_text.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {

struct BuiltInKind {
  KindInfo kind;
  bool storage = false;
};
std::vector<BuiltInKind> BuiltInKinds(SchemaLibrary& library);

}  // namespace swell::api
