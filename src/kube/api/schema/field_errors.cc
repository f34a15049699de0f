#include "kube/api/schema/field_errors.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {

std::string ShowValue(const json::Value& value) {
  constexpr size_t kMaxShown = 512;
  std::string text = value.is_string() ? Quote(json::View(value.get_string())) : json::Print(value);
  if (value.is_null()) text = "\"null\"";
  if (text.size() > kMaxShown) text.replace(kMaxShown, std::string::npos, "...");
  return text;
}

std::string ShowUntyped(const json::Value& value) {
  if (value.is_string()) return Quote(json::View(value.get_string()));
  if (value.is_null()) return "interface {}(nil)";
  std::vector<std::string> parts;
  if (value.is_array()) {
    parts.reserve(value.get_array().size());
    for (const json::Value& item : value.get_array()) parts.push_back(ShowUntyped(item));
    return StrCat("[]interface {}{", Join(parts, ", "), "}");
  }
  if (!value.is_object()) return json::Print(value);
  std::map<std::string, std::string> sorted;
  for (const auto& member : value.get_object()) {
    sorted[std::string(std::string_view(member.key()))] = ShowUntyped(member.value());
  }
  for (const auto& [key, text] : sorted) parts.push_back(StrCat(Quote(key), ":", text));
  return StrCat("map[string]interface {}{", Join(parts, ", "), "}");
}

std::string ShowLabels(const json::Value& labels) {
  std::map<std::string, std::string> sorted;
  for (const auto& member : json::GetObject(labels, {})) {
    sorted[std::string(std::string_view(member.key()))] = ShowValue(member.value());
  }
  if (sorted.empty()) return "map[string]string(nil)";
  std::vector<std::string> parts;
  parts.reserve(sorted.size());
  for (const auto& [key, text] : sorted) parts.push_back(StrCat(Quote(key), ":", text));
  return StrCat("map[string]string{", Join(parts, ", "), "}");
}

std::string ShowSelector(const json::Value& selector) {
  const json::Value* labels = json::Find(selector, {"matchLabels"});
  std::vector<std::string> terms;
  for (const json::Value& term : json::GetArray(selector, {"matchExpressions"})) {
    std::vector<std::string> values;
    for (const json::Value& value : json::GetArray(term, {"values"})) {
      values.push_back(ShowValue(value));
    }
    terms.push_back(
        StrCat("v1.LabelSelectorRequirement{Key:", Quote(json::GetString(term, {"key"})),
               ", Operator:", Quote(json::GetString(term, {"operator"})), ", Values:[]string",
               values.empty() ? "(nil)" : StrCat("{", Join(values, ", "), "}"), "}"));
  }
  return StrCat("v1.LabelSelector{MatchLabels:", ShowLabels(labels ? *labels : json::Value()),
                ", MatchExpressions:[]v1.LabelSelectorRequirement",
                terms.empty() ? "(nil)" : StrCat("{", Join(terms, ", "), "}"), "}");
}

std::string ShowQuantity(const json::Value& amount) {
  const std::string whole =
      amount.is_string() ? std::string(json::View(amount.get_string())) : json::Print(amount);
  const size_t end = std::min(whole.find_first_not_of("+-.0123456789"), whole.size());
  std::string digits = whole.substr(0, end);
  const std::string_view suffix = std::string_view(whole).substr(end);
  static constexpr std::string_view kDecimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  static constexpr std::string_view kBinary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  int scale = 0;
  int shift = 0;
  std::string_view format = "DecimalSI";
  const auto* decimal = std::find(std::begin(kDecimal), std::end(kDecimal), suffix);
  const auto* binary = std::find(std::begin(kBinary), std::end(kBinary), suffix);
  if (decimal != std::end(kDecimal)) {
    scale = 3 * (static_cast<int>(decimal - std::begin(kDecimal)) - 3);
  } else if (binary != std::end(kBinary)) {
    shift = 10 * static_cast<int>(binary - std::begin(kBinary));
    format = "BinarySI";
  } else {
    scale = static_cast<int>(ParseUint(suffix.substr(1)).value_or(0));
    format = "DecimalExponent";
  }
  const size_t point = digits.find('.');
  const bool fraction = point != std::string::npos;
  if (fraction) {
    scale -= static_cast<int>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  const size_t first = std::min(digits.find_first_not_of("+-"), digits.size());
  const uint64_t value = ParseUint(std::string_view(digits).substr(first)).value_or(0);
  return StrCat("resource.Quantity{i:resource.int64Amount{value:",
                digits.starts_with('-') ? "-" : "", value << shift, ", scale:", scale,
                "}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:", Quote(fraction ? "" : whole),
                ", Format:", Quote(format), "}");
}

std::string ShowTime(std::string_view rfc3339) {
  const auto time = ParseTime(rfc3339);
  if (!time) return Quote(rfc3339);
  const std::string text = FormatTime(*time);
  return StrCat(text.substr(0, 10), " ", text.substr(11, 8), " +0000 UTC");
}

FieldError RequiredError(std::string path, std::string_view detail) {
  std::string message = "Required value";
  if (!detail.empty()) message += StrCat(": ", detail);
  return {"FieldValueRequired", std::move(path), std::move(message)};
}

FieldError InvalidError(std::string path, const json::Value& value, std::string_view detail) {
  return {"FieldValueInvalid", std::move(path),
          StrCat("Invalid value: ", ShowValue(value), ": ", detail)};
}

FieldError InvalidText(std::string path, std::string_view value, std::string_view detail) {
  return InvalidError(std::move(path), json::Value(value), detail);
}

FieldError NotSupportedError(std::string path,
                             std::string_view value,
                             const std::vector<std::string>& supported) {
  std::vector<std::string> quoted;
  quoted.reserve(supported.size());
  for (const std::string& s : supported) quoted.push_back(Quote(s));
  return {"FieldValueNotSupported", std::move(path),
          StrCat("Unsupported value: ", Quote(value), ": supported values: ", Join(quoted, ", "))};
}

FieldError DuplicateError(std::string path, const json::Value& value) {
  return {"FieldValueDuplicate", std::move(path), StrCat("Duplicate value: ", ShowValue(value))};
}

FieldError ForbiddenError(std::string path, std::string_view detail) {
  return {"FieldValueForbidden", std::move(path), StrCat("Forbidden: ", detail)};
}

FieldError TooLongError(std::string path, size_t max_bytes) {
  return {"FieldValueTooLong", std::move(path),
          StrCat("Too long: must have at most ", max_bytes, " bytes")};
}

FieldError TooManyError(std::string path, size_t count, size_t max) {
  return {"FieldValueTooMany", std::move(path),
          StrCat("Too many: ", count, ": must have at most ", max, " items")};
}

FieldError NotFoundError(std::string path, std::string_view value) {
  return {"FieldValueNotFound", std::move(path), StrCat("Not found: ", Quote(value))};
}

std::string PathField(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : StrCat(parent, ".", name);
}

std::string PathIndex(std::string_view parent, size_t index) {
  return StrCat(parent, "[", index, "]");
}

std::string PathKey(std::string_view parent, std::string_view key) {
  return StrCat(parent, "[", key, "]");
}

}  // namespace swell::api
