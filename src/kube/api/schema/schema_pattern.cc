#include "kube/api/schema/schema_pattern.h"

#include <boost/regex.hpp>

namespace swell::api {

struct SchemaPattern::Rep {
  boost::regex regex;
};

SchemaPattern::SchemaPattern(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
SchemaPattern::~SchemaPattern() = default;

std::shared_ptr<const SchemaPattern> SchemaPattern::Compile(const std::string& pattern) {
  try {  // the library reports errors by exceptions only
    auto rep = std::make_unique<Rep>();
    // As RE2 has it: ^ and $ are the text's ends, and a dot does not match a newline.
    rep->regex.assign(pattern,
                      boost::regex::perl | boost::regex::no_mod_m | boost::regex::no_mod_s);
    return std::shared_ptr<const SchemaPattern>(new SchemaPattern(std::move(rep)));
  } catch (const std::exception&) {
    return nullptr;
  }
}

bool SchemaPattern::Matches(std::string_view text) const {
  constexpr size_t kMaxText = 64 << 10;
  if (text.size() > kMaxText) return false;
  try {
    return boost::regex_search(text.begin(), text.end(), rep_->regex);
  } catch (const std::exception&) {  // its complexity limit
    return false;
  }
}

}  // namespace swell::api
