// Fuzzes the small languages of the API: label and field selectors, quantities, times, queries.
// What parses must print to something that parses to the same.
#include <cstdint>
#include <map>
#include <string>

#include "api/meta.h"
#include "api/quantity.h"
#include "api/rest.h"
#include "api/selector.h"
#include "base/check.h"

namespace {

using swell::api::FieldSelector;
using swell::api::LabelSelector;
using swell::api::Quantity;

void CheckLabels(std::string_view text) {
  auto selector = LabelSelector::Parse(text);
  if (!selector.ok()) return SWELL_CHECK(!selector.status().message().empty());
  std::string printed = selector->ToString();
  auto again = LabelSelector::Parse(printed);
  SWELL_CHECK(again.ok() && again->ToString() == printed);
  std::map<std::string, std::string> pairs;
  for (const auto& requirement : selector->requirements()) {
    pairs.emplace(requirement.key, requirement.values.empty() ? "" : requirement.values.front());
  }
  const auto labels = swell::api::StringPairs::Of(pairs);
  SWELL_CHECK(selector->Matches(labels) == again->Matches(labels));
}

void CheckFields(std::string_view text) {
  auto selector = FieldSelector::Parse(text);
  if (!selector.ok()) return SWELL_CHECK(!selector.status().message().empty());
  std::map<std::string, std::string> pairs;
  for (const auto& term : selector->terms()) {
    if (term.equal) pairs.emplace(term.field, term.value);
  }
  (void)selector->Matches(swell::api::StringPairs::Of(pairs));
}

void CheckQuantity(std::string_view text) {
  auto quantity = Quantity::Parse(text);
  if (!quantity.ok()) return SWELL_CHECK(!quantity.status().message().empty());
  std::string printed = quantity->ToString();
  auto again = Quantity::Parse(printed);
  SWELL_CHECK(again.ok() && *again == *quantity && again->ToString() == printed);
  SWELL_CHECK(again->MilliValue() == quantity->MilliValue());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      CheckLabels(text);
      break;
    case 1:
      CheckFields(text);
      break;
    case 2:
      CheckQuantity(text);
      break;
    case 3:
      if (auto time = swell::api::ParseTime(text)) {
        SWELL_CHECK(swell::api::ParseTime(swell::api::FormatMicroTime(*time)).has_value());
      }
      break;
    default:
      (void)swell::api::ParseQuery(text);
      break;
  }
  return 0;
}
