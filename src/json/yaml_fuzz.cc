// Fuzzes YAML: every document that parses must survive printing and parsing.
#include "json/yaml.h"

#include <cstdint>

#include "base/check.h"

namespace {
constexpr swell::json::ParseLimits kLimits = {.depth = 32, .bytes = 1 << 16};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto documents = swell::json::ParseYaml(text, kLimits);
  if (!documents.ok()) {
    SWELL_CHECK(!documents.status().message().empty());
    return 0;
  }
  for (const auto& document : *documents) {
    auto again = swell::json::ParseYaml(swell::json::PrintYaml(document));
    SWELL_CHECK(again.ok() && again->size() == 1 && swell::json::Equal(document, again->front()));
  }
  return 0;
}
