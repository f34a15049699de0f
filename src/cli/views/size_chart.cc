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

double Number(const json::Value& entry, std::string_view field) {
  const json::Value* value = json::Find(entry, {field});
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::vector<Span> SpansOf(const json::Value& elastic, WallTime until) {
  std::vector<Span> spans;
  for (const json::Value& entry : json::GetArray(elastic, {"history"})) {
    auto time = api::ParseTime(json::GetString(entry, {"time"}));
    if (!time) continue;
    if (!spans.empty()) spans.back().end = *time;
    spans.push_back(
        {*time, std::max(until, *time), Number(entry, "replicas"), Number(entry, "throughput")});
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

std::string SizeChart(const json::Value& elastic, WallTime until, ChartSize size) {
  std::vector<Span> spans = SpansOf(elastic, until);
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

std::string SizeChanges(const json::Value& elastic, WallTime now, size_t most) {
  TextTable table({"AGE", "REPLICAS", "THROUGHPUT", "REASON"}, 2);
  const json::Array& history = json::GetArray(elastic, {"history"});
  for (size_t i = history.size(); i-- > 0 && history.size() - i <= most;) {
    const json::Value& entry = history[i];
    auto time = api::ParseTime(json::GetString(entry, {"time"}));
    double throughput = Number(entry, "throughput");
    table.Add({time ? api::HumanDuration(std::max(now - *time, Duration(0))) : "-",
               std::to_string(json::GetInt(entry, {"replicas"})),
               throughput > 0 ? Rounded(throughput) + "/s" : "-",
               OneLine(json::GetString(entry, {"reason"}))});
  }
  return table.ToString("  ");
}

}  // namespace swell::cli
