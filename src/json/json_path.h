// JsonPath: kubectl's -o jsonpath templates, and the paths of printer columns.
//
//   {.metadata.name}  {.items[*].status.phase}  {.items[?(@.spec.nodeName=="a")].metadata.name}
//   {range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}
//
// Supported: fields with dots escaped (.a\.b) or quoted (['a.b']), indices (also negative), unions,
// slices, wildcards, recursive descent (..), filters with == != < > <= >= or bare existence, range
// and end, quoted text with \n, \t and \\. What is missing prints nothing.
//
// - Threads: immutable after Parse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::json {

class JsonPath {
 public:
  // Braces may be left out around a single expression. kBadRequest says where the text is wrong.
  static Result<JsonPath> Parse(std::string_view text);
  ~JsonPath();
  JsonPath(JsonPath&&) noexcept;
  JsonPath& operator=(JsonPath&&) noexcept;

  std::string Print(const Value& root) const;
  // What the first expression finds; for sorting and waiting. At most `visits` values are looked
  // at: a path of few characters can visit each value many times.
  std::vector<const Value*> Find(const Value& root, size_t visits = SIZE_MAX) const;

  struct Step;
  struct Node;

 private:
  JsonPath();
  std::vector<Node> nodes_;
};

// As jsonpath prints one value: strings bare, everything else as JSON.
std::string PlainText(const Value& value);

}  // namespace swell::json
