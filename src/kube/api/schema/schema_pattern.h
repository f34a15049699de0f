// A schema's `pattern`, compiled once. Perl syntax, which holds RE2's; searching is bounded: a
// pattern that backtracks without end, or a text over 64 KiB, does not match.
// - Threads: immutable after construction.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace swell::api {

class SchemaPattern {
 public:
  // nullptr for what is not a regular expression.
  static std::shared_ptr<const SchemaPattern> Compile(const std::string& pattern);
  ~SchemaPattern();

  // Whether the pattern is found anywhere in the text, as JSON Schema says.
  bool Matches(std::string_view text) const;

 private:
  struct Rep;
  explicit SchemaPattern(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace swell::api
