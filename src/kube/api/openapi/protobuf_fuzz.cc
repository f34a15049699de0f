// Fuzzes Kubernetes' protobuf bodies. What is read of one must be a document that the server can
// keep: it is JSON within the limits under which it will be read again.
#include "kube/api/openapi/protobuf.h"

#include <cstdint>

#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = swell::api::DecodeKubernetesProtobuf(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (!read.ok()) return 0;
  const auto again = swell::json::Parse(swell::json::Print(*read));
  SWELL_CHECK(again.ok() && swell::json::Equal(*again, *read));
  return 0;
}
