// The CustomResourceDefinitions that Swell brings, made from their schemas (schemas/crds.txt).
// Declared in scheme.h: SwellCrds. Here: how a schema becomes a CRD's openAPIV3Schema.
// Thread-safety: pure functions.
#pragma once

#include "api/schema.h"

namespace swell::api {

// JSON Schema as CRDs write it: every named type in place, nothing nullable.
json::Value StructuralSchemaJson(const Schema& schema);

}  // namespace swell::api
