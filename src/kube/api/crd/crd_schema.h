// A CRD's openAPIV3Schema, read into a Schema, with Kubernetes' rules for structural schemas.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "kube/api/schema/schema.h"

namespace swell::api {

// Appends to `errors`; the result is usable only when none were added. At the root, apiVersion,
// kind and metadata are added as every object has them.
SchemaPtr ReadOpenApiSchema(const json::Value& open_api_v3,
                            const std::string& path,
                            std::vector<FieldError>& errors);

// What is wrong with a CustomResourceDefinition, beyond its own schema.
void CheckCrd(const json::Value& crd, std::vector<FieldError>& errors);

}  // namespace swell::api
