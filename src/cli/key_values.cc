#include "cli/key_values.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/flags.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {

Result<KeyValues> ParsePairs(const std::vector<std::string>& texts, std::string_view flag) {
  KeyValues pairs;
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Misuse(StrCat(flag, " ", Quote(text), ": expected KEY=VALUE"));
    }
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

Result<KeyValues> ParseFields(std::string_view text,
                              std::string_view flag,
                              const std::vector<std::string_view>& known) {
  KeyValues fields;
  for (std::string_view part : Split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Misuse(StrCat(flag, " ", Quote(text), ": expected fields ",
                           Join({known.begin(), known.end()}, ", "), ", not ", Quote(name)));
    }
    fields.emplace_back(
        name, equals == std::string_view::npos ? "" : std::string(part.substr(equals + 1)));
  }
  return fields;
}

std::string_view FieldOf(const KeyValues& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

bool HasField(const KeyValues& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(),
                     [name](const auto& field) { return field.first == name; });
}

Result<KeyValues> ParseLabels(const std::vector<std::string>& texts, std::string_view flag) {
  SWELL_ASSIGN_OR_RETURN(KeyValues labels, ParsePairs(texts, flag));
  for (const auto& [key, value] : labels) {
    std::string wrong = api::CheckQualifiedName(key);
    if (wrong.empty()) wrong = api::CheckLabelValue(value);
    if (!wrong.empty())
      return Misuse(StrCat(flag, " ", Quote(StrCat(key, "=", value)), ": ", wrong));
  }
  return labels;
}

}  // namespace swell::cli
