// OpenAPI documents from the very schemas that validate: v2 (JSON, and the gnostic protobuf form
// that kubectl 1.20 requires) and v3 (index and one document per group version).
// - Threads: pure functions of a scheme that nobody changes meanwhile.
#pragma once

#include <string>

#include "kube/api/schema/scheme.h"

namespace swell::api {

json::Value OpenApiV2(const Scheme& scheme);
// application/com.github.proto-openapi.spec.v2@v1.0+protobuf (openapi_v2.proto of gnostic).
std::string OpenApiV2Protobuf(const json::Value& open_api_v2);
// {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=…"}}}
json::Value OpenApiV3Index(const Scheme& scheme);
json::Value OpenApiV3(const Scheme& scheme, std::string_view group, std::string_view version);

}  // namespace swell::api
