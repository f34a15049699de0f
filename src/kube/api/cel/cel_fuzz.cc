// The first line is an expression, the rest a JSON document that it looks at.
#include "kube/api/cel/cel.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\n'), input.size());
  const auto program = swell::api::CelProgram::Compile(input.substr(0, end));
  if (!program.ok()) return 0;
  auto document = swell::json::Parse(input.substr(std::min(end + 1, input.size())));
  const swell::json::Value self = document.ok() ? *document : swell::json::Value();
  swell::api::CelBudget budget{10'000};
  (void)(*program)->Evaluate(self, &self, budget);
  return 0;
}
