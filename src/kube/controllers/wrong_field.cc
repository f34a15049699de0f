#include "kube/controllers/wrong_field.h"

#include <string>
#include <utility>

#include "base/strings.h"

namespace swell::controllers {

Status WrongField(std::string_view field, std::string_view message) {
  constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
      {"Required value", "FieldValueRequired"}, {"Not found", "FieldValueNotFound"},
      {"Too long", "FieldValueTooLong"},        {"Too many", "FieldValueTooMany"},
      {"Forbidden", "FieldValueForbidden"},     {"Unsupported value", "FieldValueNotSupported"}};
  StatusCause cause{"FieldValueInvalid", std::string(field), std::string(message)};
  for (const auto& [words, reason] : kReasons) {
    if (message.starts_with(words)) cause.reason = reason;
  }
  StatusDetails details;
  details.causes.push_back(std::move(cause));
  return Status(Code::kInvalid, StrCat(field, ": ", message), std::move(details));
}

Status WrongField(std::string_view field, int64_t value, std::string_view message) {
  return WrongField(field, StrCat("Invalid value: ", value, ": ", message));
}

Status WrongText(std::string_view field, std::string_view value, std::string_view message) {
  return WrongField(field, StrCat("Invalid value: ", Quote(value), ": ", message));
}

}  // namespace swell::controllers
