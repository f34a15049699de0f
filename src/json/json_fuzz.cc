// Fuzzes the JSON side: what parses must print and parse to the same document, and the patches must
// keep their laws on any two documents. The input is one or two documents, parted by a zero byte.
#include <cstdint>

#include "base/check.h"
#include "json/document.h"
#include "json/patch.h"
#include "json/value.h"

namespace {

using swell::json::ParseLimits;
using swell::json::Value;

constexpr ParseLimits kLimits = {.depth = 32, .bytes = 1 << 16};

// A merge patch cannot make a null: its laws hold for documents without one.
bool HasNull(const Value& value) {
  if (value.is_null()) return true;
  if (const auto* array = value.if_array()) {
    for (const Value& item : *array) {
      if (HasNull(item)) return true;
    }
  }
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object) {
      if (HasNull(member.value())) return true;
    }
  }
  return false;
}

void CheckRoundTrip(const Value& value) {
  auto again = swell::json::Parse(swell::json::Print(value), kLimits);
  SWELL_CHECK(again.ok() && swell::json::Equal(value, *again));
  auto pretty = swell::json::Parse(swell::json::PrintPretty(value));
  SWELL_CHECK(pretty.ok() && swell::json::Equal(value, *pretty));
  // The first brings its parts, the second makes them, the third has them from it.
  for (int i = 0; i < 3; ++i) {
    SWELL_CHECK(swell::json::Print(*swell::json::Keep(value)) == swell::json::Print(value));
  }
}

void CheckPatches(const Value& from, const Value& to) {
  auto patched = swell::json::ApplyJsonPatch(from, to);
  if (patched.ok()) CheckRoundTrip(*patched);
  Value merged = from;
  swell::json::ApplyMergePatch(merged, to);
  CheckRoundTrip(merged);
  if (!from.is_object() || !to.is_object() || HasNull(from) || HasNull(to)) return;
  Value target = from;
  swell::json::ApplyMergePatch(target, swell::json::MakeMergePatch(from, to));
  SWELL_CHECK(swell::json::Equal(target, to));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t cut = text.find('\0');
  auto first = swell::json::Parse(text.substr(0, cut), kLimits);
  if (!first.ok()) {
    SWELL_CHECK(!first.status().message().empty());
    return 0;
  }
  CheckRoundTrip(*first);
  if (cut == std::string_view::npos) return 0;
  auto second = swell::json::Parse(text.substr(cut + 1), kLimits);
  if (second.ok()) CheckPatches(*first, *second);
  return 0;
}
