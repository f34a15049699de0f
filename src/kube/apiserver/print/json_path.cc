// The part of JSON path that printer columns use: .a.b, ['a.b'], [0], [-1:], [*] and
// [?(@.type=="Ready")].
#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "kube/apiserver/print/table.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxMatches = 1000;

using Matches = std::vector<const json::Value*>;

std::string_view Unquote(std::string_view text) {
  text = Trim(text);
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
      text.back() == text.front()) {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

void AddField(const json::Value& value, std::string_view name, Matches& out) {
  if (name == "*") {
    if (value.is_array()) {
      for (const json::Value& one : value.get_array()) out.push_back(&one);
    } else if (value.is_object()) {
      for (const auto& [key, one] : value.get_object()) out.push_back(&one);
    }
    return;
  }
  if (!value.is_object()) return;
  if (const json::Value* field = value.get_object().if_contains(name)) out.push_back(field);
}

// ?(@.type=="Ready") over a list.
void AddFiltered(const json::Value& value, std::string_view filter, Matches& out) {
  if (!value.is_array()) return;
  const size_t equals = filter.find("==");
  if (equals == std::string_view::npos) return;
  std::string_view field = Trim(filter.substr(0, equals));
  if (field.substr(0, 2) != "@.") return;
  field.remove_prefix(2);
  const std::string_view want = Unquote(filter.substr(equals + 2));
  for (const json::Value& one : value.get_array()) {
    const json::Value* found = &one;
    for (std::string_view step : Split(field, '.')) {
      found = found->is_object() ? found->get_object().if_contains(step) : nullptr;
      if (found == nullptr) break;
    }
    if (found == nullptr) continue;
    const bool equal =
        found->is_string() ? json::View(found->get_string()) == want : json::Print(*found) == want;
    if (equal) out.push_back(&one);
  }
}

// [from:to], either side left out; negative numbers count from the end.
void AddSlice(const json::Value& value, std::string_view from, std::string_view to, Matches& out) {
  if (!value.is_array()) return;
  const json::Array& array = value.get_array();
  const auto size = static_cast<int64_t>(array.size());
  const auto at = [size](std::string_view text, int64_t fallback) {
    const int64_t index = ParseInt(Trim(text)).value_or(fallback);
    return std::clamp<int64_t>(index < 0 ? size + index : index, 0, size);
  };
  const int64_t end = at(to, size);
  for (int64_t i = at(from, 0); i < end; ++i) out.push_back(&array[static_cast<size_t>(i)]);
}

void AddBracket(const json::Value& value, std::string_view inside, Matches& out) {
  inside = Trim(inside);
  if (inside.size() > 3 && inside.substr(0, 2) == "?(" && inside.back() == ')') {
    AddFiltered(value, inside.substr(2, inside.size() - 3), out);
    return;
  }
  if (const auto index = ParseInt(inside)) {
    if (!value.is_array()) return;
    const auto size = static_cast<int64_t>(value.get_array().size());
    const int64_t at = *index < 0 ? size + *index : *index;
    if (at >= 0 && at < size) out.push_back(&value.get_array()[static_cast<size_t>(at)]);
    return;
  }
  const size_t colon = inside.find(':');
  if (colon != std::string_view::npos && inside.front() != '\'' && inside.front() != '"') {
    AddSlice(value, inside.substr(0, colon), inside.substr(colon + 1), out);
    return;
  }
  AddField(value, Unquote(inside), out);
}

// Takes the first step off `path`; false when it cannot be read.
bool TakeStep(std::string_view& path, bool& bracket, std::string& step) {
  bracket = path.front() == '[';
  step.clear();
  if (bracket) {
    const size_t end = path.find(path.substr(0, 3) == "[?(" ? ")]" : "]");
    if (end == std::string_view::npos) return false;
    const size_t length = path[end] == ')' ? end + 1 : end;
    step = path.substr(1, length - 1);
    path.remove_prefix(length + 1);
    return true;
  }
  if (path.front() == '.') path.remove_prefix(1);
  size_t i = 0;
  for (; i < path.size() && path[i] != '.' && path[i] != '['; ++i) {
    if (path[i] == '\\' && i + 1 < path.size()) ++i;  // metadata.annotations.swell\.dev/x
    step += path[i];
  }
  path.remove_prefix(i);
  return !step.empty() || (!path.empty() && path.front() == '[');
}

}  // namespace

json::Value PathValue(const json::Value& object, std::string_view json_path) {
  std::string_view path = Trim(json_path);
  if (path.size() > 1 && path.front() == '{' && path.back() == '}') {
    path = path.substr(1, path.size() - 2);
  }
  Matches matches{&object};
  while (!path.empty() && !matches.empty()) {
    bool bracket = false;
    std::string step;
    if (!TakeStep(path, bracket, step)) return json::Value();
    if (step.empty() && !bracket) continue;
    Matches next;
    for (const json::Value* value : matches) {
      if (next.size() > kMaxMatches) break;
      if (bracket) {
        AddBracket(*value, step, next);
      } else {
        AddField(*value, step, next);
      }
    }
    matches = std::move(next);
  }
  return matches.empty() ? json::Value() : *matches.front();
}

}  // namespace swell::apiserver
