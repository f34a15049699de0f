#include "json/texts.h"

namespace swell::json {

std::vector<std::string> Texts(const Array& list) {
  std::vector<std::string> out;
  for (const Value& item : list) {
    if (item.is_string()) out.emplace_back(View(item.get_string()));
  }
  return out;
}

double GetDouble(const Value& root, Path path) {
  const Value* value = Find(root, path);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

}  // namespace swell::json
