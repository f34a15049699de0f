// For tests of expressions (CEL): what one makes of a document, as text.
// - Threads: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/cel/cel.h"

namespace swell::api::cel_test {

// What an expression makes of `self`, or what is wrong with it.
inline std::string Eval(std::string_view text, std::string_view self = "null") {
  const auto program = CelProgram::Compile(text);
  if (!program.ok()) return program.status().message();
  const json::Value document = json::J(self);
  CelBudget budget;
  const Result<CelValue> out = (*program)->Evaluate(document, nullptr, budget);
  if (!out.ok()) return out.status().message();
  if (IsCelList(*out)) {
    std::vector<std::string> items;
    for (int64_t i = 0; i < CelSize(*out); ++i) {
      items.push_back(CelText(CelItem(*out, static_cast<size_t>(i), budget)));
    }
    return StrCat("[", Join(items, " "), "]");
  }
  return out->is_null() ? "null" : CelText(*out);
}

// An expression, and what it makes of null.
struct Case {
  const char* text;
  const char* result;
};

}  // namespace swell::api::cel_test
