#include "cli/views/size_chart.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

struct Span {
  WallTime begin, end;
  double replicas = 0, throughput = 0;
};

std::vector<Span> SpansOf(const api::JobSize& size, WallTime until) {
  std::vector<Span> spans;
  for (const api::SizeChange& change : size.history) {
    if (!change.time) continue;
    if (!spans.empty()) spans.back().end = *change.time;
    spans.push_back({*change.time, std::max(until, *change.time),
                     static_cast<double>(change.replicas), change.throughput});
  }
  return spans;
}

// The value that held for most of each column's time would hide short dips: the least is shown.
template <typename Value>
std::vector<double> Columns(const std::vector<Span>& spans, int width, Value value) {
  std::vector<double> columns(static_cast<size_t>(width), 0);
  WallTime begin = spans.front().begin;
  Duration all = std::max<Duration>(spans.back().end - begin, Duration(1));
  for (size_t i = 0; i < columns.size(); ++i) {
    WallTime from = begin + all / width * static_cast<int64_t>(i);
    WallTime to = from + all / width;
    bool any = false;
    for (const Span& span : spans) {
      bool overlaps = span.begin < to && (from < span.end || &span == &spans.back());
      if (!overlaps) continue;
      columns[i] = any ? std::min(columns[i], value(span)) : value(span);
      any = true;
    }
  }
  return columns;
}

std::string Spark(const std::vector<double>& values) {
  static constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                              "▅", "▆", "▇", "█"};
  double top = *std::max_element(values.begin(), values.end());
  std::string out;
  for (double value : values) {
    size_t level = value <= 0 ? 0 : static_cast<size_t>(1 + value / top * 7.0);
    out += kBlocks[std::min(level, kBlocks.size() - 1)];
  }
  return out;
}

std::string Rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : "%.0f", value);
  return text;
}

std::string ClockText(WallTime time) { return api::FormatTime(time).substr(11, 8); }

}  // namespace

std::string SizeChart(const api::JobSize& job, WallTime until, ChartSize size) {
  std::vector<Span> spans = SpansOf(job, until);
  if (spans.empty()) return "";
  std::vector<double> replicas =
      Columns(spans, size.width, [](const Span& span) { return span.replicas; });
  double top = 1;
  for (const Span& span : spans) top = std::max(top, span.replicas);
  int rows = static_cast<int>(std::min<double>(top, size.height));
  std::string out;
  for (int row = rows; row >= 1; --row) {
    double level = top * row / rows;
    std::string label = Rounded(level).substr(0, Rounded(level).find('.'));
    std::string line;
    for (double value : replicas) line += value >= level - 0.5 * top / rows ? "█" : " ";
    while (line.ends_with(' ')) line.pop_back();
    out += StrCat("  ", std::string(5 - std::min<size_t>(5, label.size()), ' '), label, " │", line,
                  "\n");
  }
  std::string from = ClockText(spans.front().begin), to = ClockText(spans.back().end);
  std::string rule;
  for (int i = 0; i < size.width; ++i) rule += "─";
  out += StrCat("        └", rule, "\n         ", from,
                std::string(static_cast<size_t>(
                                std::max<int>(1, size.width - static_cast<int>(2 * from.size()))),
                            ' '),
                to, "\n");
  std::vector<double> speed =
      Columns(spans, size.width, [](const Span& span) { return span.throughput; });
  double fastest = *std::max_element(speed.begin(), speed.end());
  if (fastest > 0) {
    out += StrCat("   speed  ", Spark(speed), "  up to ", Rounded(fastest), "/s\n");
  }
  return out;
}

std::string SizeChanges(const api::JobSize& job, WallTime now, size_t most) {
  TextTable table({"AGE", "REPLICAS", "THROUGHPUT", "REASON"}, 2);
  const std::vector<api::SizeChange>& history = job.history;
  for (size_t i = history.size(); i-- > 0 && history.size() - i <= most;) {
    const api::SizeChange& change = history[i];
    table.Add({change.time ? api::HumanDuration(std::max(now - *change.time, Duration(0))) : "-",
               std::to_string(change.replicas),
               change.throughput > 0 ? Rounded(change.throughput) + "/s" : "-",
               OneLine(change.reason)});
  }
  return table.ToString("  ");
}

}  // namespace swell::cli
