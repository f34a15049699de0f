// Fuzzes the reading of logs: the first line is the pattern, the rest the log. Whatever comes, what
// is read is a positive number of seconds, and reading on finds nothing twice.
#include "elastic/log_metrics.h"

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = input.find('\n');
  std::string_view pattern = input.substr(0, end);
  std::string_view log = end == std::string_view::npos ? "" : input.substr(end + 1);
  auto metrics = swell::elastic::LogMetrics::Compile(pattern);
  if (!metrics.ok()) {
    SWELL_CHECK(!metrics.status().message().empty());
    return 0;
  }
  swell::elastic::LogPosition position;
  for (double value : metrics->Read(log, 2, position)) {
    SWELL_CHECK(std::isfinite(value) && value > 0);
  }
  SWELL_CHECK(metrics->Read(log, 2, position).empty());
  return 0;
}
