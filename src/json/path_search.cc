#include "json/path_search.h"

#include "base/strings.h"

namespace swell::json {
namespace {

using Is = std::function<bool(std::string_view key, const Value& value)>;

// Appends the path; false if it is not there. `depth_left` is below zero where the search ends.
bool Find(const Value& in, std::string_view key, int depth_left, const Is& is, std::string& path) {
  if (is(key, in)) return true;
  if (depth_left < 0) return false;
  const size_t size = path.size();
  const auto leads = [&](const std::string& step, std::string_view name, const Value& to) {
    path += step;
    if (Find(to, name, depth_left - 1, is, path)) return true;
    path.resize(size);
    return false;
  };
  if (in.is_array()) {
    const Array& items = in.get_array();
    for (size_t i = 0; i < items.size(); ++i) {
      if (leads(StrCat("[", i, "]"), "", items[i])) return true;
    }
  } else if (in.is_object()) {
    for (const auto& [field, value] : in.get_object()) {
      const std::string_view name(field.data(), field.size());
      if (leads(StrCat(path.empty() ? "" : ".", name), name, value)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> FindPathOf(const Value& document, int depth_max, const Is& is) {
  std::string path;
  if (!Find(document, "", depth_max, is, path)) return std::nullopt;
  return path;
}

}  // namespace swell::json
