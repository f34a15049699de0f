// Fuzzes the small languages of the API: label and field selectors, quantities, times, queries.
// What parses must print to something that parses to the same, and mean what it says.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/selector.h"
#include "kube/api/rest/rest.h"

namespace {

using swell::api::FieldSelector;
using swell::api::LabelSelector;
using swell::api::Quantity;
using swell::api::Requirement;

// "a=b,c=d", each key once.
std::map<std::string, std::string> ReadPairs(std::string_view text) {
  std::map<std::string, std::string> pairs;
  for (const std::string_view pair : swell::Split(text, ',')) {
    const size_t equal = std::min(pair.find('='), pair.size());
    pairs.emplace(pair.substr(0, equal), pair.substr(std::min(equal + 1, pair.size())));
  }
  return pairs;
}

bool Holds(const Requirement& requirement, const std::map<std::string, std::string>& labels) {
  using Op = Requirement::Op;
  const auto found = labels.find(requirement.key);
  const bool there = found != labels.end();
  const auto& values = requirement.values;
  const bool listed =
      there && std::find(values.begin(), values.end(), found->second) != values.end();
  if (requirement.op == Op::kExists) return there;
  if (requirement.op == Op::kDoesNotExist) return !there;
  if (requirement.op == Op::kIn) return listed;
  if (requirement.op == Op::kNotIn) return !listed;
  const auto have = there ? swell::ParseInt(found->second) : std::nullopt;
  const auto bound = swell::ParseInt(values.front());
  if (!have) return false;
  return requirement.op == Op::kGt ? *have > *bound : *have < *bound;
}

// As {matchExpressions}, which knows no comparisons.
swell::json::Value Expressions(const LabelSelector& selector) {
  constexpr const char* kOperators[] = {"In", "NotIn", "Exists", "DoesNotExist"};
  swell::json::Array expressions;
  for (const Requirement& requirement : selector.requirements()) {
    const auto op = static_cast<size_t>(requirement.op);
    if (op >= std::size(kOperators)) return nullptr;
    swell::json::Object expression{{"key", requirement.key}, {"operator", kOperators[op]}};
    if (!requirement.values.empty()) {
      expression["values"] =
          swell::json::Array(requirement.values.begin(), requirement.values.end());
    }
    expressions.emplace_back(std::move(expression));
  }
  return swell::json::Object{{"matchExpressions", std::move(expressions)}};
}

// The selector, and behind a line's end labels that it looks at.
void CheckLabels(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  auto selector = LabelSelector::Parse(text.substr(0, end));
  if (!selector.ok()) return SWELL_CHECK(!selector.status().message().empty());
  std::string printed = selector->ToString();
  auto again = LabelSelector::Parse(printed);
  SWELL_CHECK(again.ok() && again->ToString() == printed);

  auto pairs = ReadPairs(text.substr(end));
  for (const auto& requirement : selector->requirements()) {
    pairs.emplace(requirement.key, requirement.values.empty() ? "" : requirement.values.front());
  }
  const auto& all = selector->requirements();
  const bool holds = std::all_of(all.begin(), all.end(),
                                 [&pairs](const Requirement& one) { return Holds(one, pairs); });
  const auto labels = swell::api::StringPairs::Of(pairs);
  SWELL_CHECK(selector->Matches(labels) == holds && again->Matches(labels) == holds);
  swell::json::Object document;
  for (const auto& [key, value] : pairs) document[key] = value;
  SWELL_CHECK(selector->Matches(swell::json::Value(document)) == holds);
  const swell::json::Value expressions = Expressions(*selector);
  if (expressions.is_null()) return;
  const auto told = LabelSelector::FromJson(&expressions);
  SWELL_CHECK_MSG(told.ok(), told.status().ToString());
  SWELL_CHECK(told->Matches(labels) == holds);
}

// The selector, and behind a line's end fields that it looks at.
void CheckFields(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  auto selector = FieldSelector::Parse(text.substr(0, end));
  if (!selector.ok()) return SWELL_CHECK(!selector.status().message().empty());
  auto pairs = ReadPairs(text.substr(end));
  std::string printed;
  bool holds = true;
  for (const auto& term : selector->terms()) {
    if (term.equal) pairs.emplace(term.field, term.value);
  }
  for (const auto& term : selector->terms()) {
    const auto found = pairs.find(term.field);
    holds = holds && ((found == pairs.end() ? "" : found->second) == term.value) == term.equal;
    printed += swell::StrCat(term.field, term.equal ? "=" : "!=");
    for (const char c : term.value) {
      if (c == ',' || c == '=' || c == '\\') printed += '\\';
      printed += c;
    }
    printed += ',';
  }
  SWELL_CHECK(selector->Matches(swell::api::StringPairs::Of(pairs)) == holds);
  auto again = FieldSelector::Parse(printed);
  SWELL_CHECK(again.ok() && again->terms().size() == selector->terms().size());
  for (size_t i = 0; i < again->terms().size(); ++i) {
    const auto& [field, value, equal] = selector->terms()[i];
    SWELL_CHECK(again->terms()[i].field == field && again->terms()[i].value == value &&
                again->terms()[i].equal == equal);
  }
}

// In thousandths, rounded away from zero: what is short and plain ("-12.5Mi"), by school
// arithmetic.
std::optional<__int128> PlainMilli(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  __int128 billionths = 0;
  size_t digits = 0;
  size_t behind = 0;
  bool point = false;
  for (; !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
       text.remove_prefix(1)) {
    if (text[0] == '.') {
      if (point) return std::nullopt;
      point = true;
      continue;
    }
    if (++digits > 12) return std::nullopt;
    if (point) ++behind;
    billionths = billionths * 10 + (text[0] - '0');
  }
  if (digits == 0 || behind > 9) return std::nullopt;
  for (; behind < 9; ++behind) billionths *= 10;
  constexpr std::pair<std::string_view, int64_t> kSuffixes[] = {
      {"", 1},         {"k", 1000},     {"M", 1000'000}, {"G", 1000'000'000},
      {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30},
  };
  const auto suffix = std::find_if(std::begin(kSuffixes), std::end(kSuffixes),
                                   [text](const auto& known) { return known.first == text; });
  if (suffix == std::end(kSuffixes)) return std::nullopt;
  const __int128 milli = (billionths * suffix->second + 999'999) / 1'000'000;
  return negative ? -milli : milli;
}

// One quantity, or several with spaces between them.
void CheckQuantity(std::string_view text) {
  std::vector<Quantity> all;
  for (const std::string_view word : swell::Split(text, ' ')) {
    auto quantity = Quantity::Parse(word);
    if (!quantity.ok()) return SWELL_CHECK(!quantity.status().message().empty());
    std::string printed = quantity->ToString();
    auto again = Quantity::Parse(printed);
    SWELL_CHECK(again.ok() && *again == *quantity && again->ToString() == printed);
    SWELL_CHECK(again->MilliValue() == quantity->MilliValue());
    const auto plain = PlainMilli(word);
    if (plain && *plain > INT64_MIN / 2 && *plain < INT64_MAX / 2) {
      SWELL_CHECK_MSG(quantity->MilliValue() == *plain, printed);
    }
    all.push_back(*quantity);
    if (all.size() == 3) break;
  }
  if (all.size() != 3) return;
  const auto plus = [](Quantity a, const Quantity& b) { return a += b; };
  const auto& [a, b, c] = std::tie(all[0], all[1], all[2]);
  SWELL_CHECK(plus(a, b) == plus(b, a));
  if (a <= b) SWELL_CHECK(plus(a, c) <= plus(b, c) && a.Value() <= b.Value());
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
