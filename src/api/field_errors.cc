#include "api/field_errors.h"

#include <map>

#include "base/strings.h"

namespace swell::api {

std::string ShowValue(const json::Value& value) {
  constexpr size_t kMaxShown = 512;
  std::string text = value.is_string() ? Quote(json::View(value.get_string())) : json::Print(value);
  if (value.is_null()) text = "\"null\"";
  if (text.size() > kMaxShown) text.replace(kMaxShown, std::string::npos, "...");
  return text;
}

std::string ShowLabels(const json::Value& labels) {
  std::map<std::string, std::string> sorted;
  for (const auto& member : json::GetObject(labels, {})) {
    sorted[std::string(std::string_view(member.key()))] = ShowValue(member.value());
  }
  if (sorted.empty()) return "map[string]string(nil)";
  std::vector<std::string> parts;
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
