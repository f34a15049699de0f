// Kubernetes' protobuf bodies ("k8s\0" + runtime.Unknown), as kubectl 1.32 posts them for its typed
// generators, read into JSON objects. Answers stay JSON: every client that sends protobuf accepts
// it. Source: the published generated.proto files (field numbers).
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace swell::api {

inline constexpr std::string_view kProtobufContentType = "application/vnd.kubernetes.protobuf";

// kUnsupportedMediaType for a kind without a decoder, kBadRequest for malformed bytes.
Result<json::Value> DecodeKubernetesProtobuf(std::string_view body);

}  // namespace swell::api
