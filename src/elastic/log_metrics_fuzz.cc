// Fuzzes the reading of logs: the first line is the pattern, the rest the log. Every
// value that is read is a positive number of seconds, and no line is read twice. If the times in
// the log grow, no line is lost either, wherever the log is cut.
#include "elastic/log_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/strings.h"

namespace {

// The log's lines, each a second after the one before it.
std::string Stamped(std::string_view log, size_t* lines) {
  std::string out;
  for (const std::string_view line : swell::Split(log.substr(0, 4096), '\n')) {
    if (*lines == 3600) break;
    const auto two = [](size_t n) { return swell::StrCat(n < 10 ? "0" : "", n); };
    out +=
        swell::StrCat("2026-01-31T10:", two(*lines / 60), ":", two(*lines % 60), "Z ", line, "\n");
    ++*lines;
  }
  return out;
}

void CheckCuts(const swell::elastic::LogMetrics& metrics, std::string_view log) {
  size_t lines = 0;
  const std::string stamped = Stamped(log, &lines);
  swell::elastic::LogPosition whole_position;
  const auto whole = metrics.Read(stamped, 2, whole_position);
  // Another reader reads it thrice while it grows.
  swell::elastic::LogPosition position;
  std::vector<double> parts;
  for (const size_t end : {stamped.size() / 3, stamped.size() * 2 / 3, stamped.size()}) {
    const int64_t nodes = position.nodes;
    const auto more = metrics.Read(std::string_view(stamped).substr(0, end), 2, position);
    if (position.nodes != nodes) parts.clear();  // they were of another size
    parts.insert(parts.end(), more.begin(), more.end());
  }
  SWELL_CHECK(position.nodes == whole_position.nodes);
  SWELL_CHECK(position.seen_unix_ns == whole_position.seen_unix_ns);
  // Saying the size again forgets what was before it, which a reader of parts has already.
  SWELL_CHECK(parts.size() >= whole.size());
  SWELL_CHECK(std::equal(whole.rbegin(), whole.rend(), parts.rbegin()));
}

}  // namespace

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
  CheckCuts(*metrics, log);
  return 0;
}
