// JsonPath: kubectl's -o jsonpath templates.
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

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::cli {

class JsonPath {
 public:
  // Braces may be left out around a single expression.
  static Result<JsonPath> Parse(std::string_view text);
  ~JsonPath();
  JsonPath(JsonPath&&) noexcept;
  JsonPath& operator=(JsonPath&&) noexcept;

  std::string Print(const json::Value& root) const;
  // What the first expression finds; for sorting and waiting.
  std::vector<const json::Value*> Find(const json::Value& root) const;

  struct Step;
  struct Node;

 private:
  JsonPath();
  std::vector<Node> nodes_;
};

// As jsonpath prints one value: strings bare, everything else as JSON.
std::string PlainText(const json::Value& value);

}  // namespace swell::cli
