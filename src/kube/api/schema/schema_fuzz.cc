// Fuzzes schemas and what they rule: a CustomResourceDefinition's schema (first document of the
// input) with an object (second, after a zero byte) to validate, prune, default and patch (third).
// Pruning and defaulting must be idempotent.
#include "kube/api/schema/schema.h"

#include <cstdint>

#include "base/check.h"
#include "kube/api/patch/strategic.h"

namespace {

constexpr swell::json::ParseLimits kLimits = {.depth = 32, .bytes = 1 << 16};

void CheckObject(const swell::api::Schema& schema, swell::json::Value object) {
  SWELL_CHECK(swell::api::ValidateAgainst(schema, object).size() <= 100);
  SWELL_CHECK(swell::api::UnknownFields(schema, object).size() <= 100);
  swell::api::PruneUnknown(schema, object);
  SWELL_CHECK(swell::api::UnknownFields(schema, object).empty());
  swell::json::Value pruned = object;
  swell::api::PruneUnknown(schema, pruned);
  SWELL_CHECK(swell::json::Equal(object, pruned));
  swell::api::ApplyDefaults(schema, object);
  swell::json::Value defaulted = object;
  swell::api::ApplyDefaults(schema, defaulted);
  SWELL_CHECK(swell::json::Equal(object, defaulted));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t cut = text.find('\0');
  if (cut == std::string_view::npos) return 0;
  auto document = swell::json::Parse(text.substr(0, cut), kLimits);
  if (!document.ok()) return 0;
  auto schema = swell::api::ParseOpenApiSchema(*document);
  if (!schema.ok()) return 0;
  text.remove_prefix(cut + 1);
  cut = text.find('\0');
  auto object = swell::json::Parse(text.substr(0, cut), kLimits);
  if (!object.ok()) return 0;
  CheckObject(**schema, *object);
  if (cut == std::string_view::npos || !object->is_object()) return 0;
  auto patch = swell::json::Parse(text.substr(cut + 1), kLimits);
  if (patch.ok() && patch->is_object()) {
    (void)swell::api::ApplyStrategicMerge(**schema, *object, *patch);
  }
  return 0;
}
