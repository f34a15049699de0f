#include "lab/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "base/decimal.h"
#include "base/strings.h"

namespace swell::lab {
namespace {

// The picture, in pixels. Both frames have the same left and right; the legend is at the right.
constexpr double kWidth = 940, kHeight = 760;
constexpr double kLeft = 70, kRight = 760;
constexpr double kFrameHeight = 260;
constexpr double kLabelEvery = 62;  // pixels that the label of a tick needs

constexpr size_t kBuckets = 500;  // of time, for GPUs in use

// Okabe and Ito's colours, told apart by people who do not see all; no yellow on white.
constexpr std::array<const char*, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                 "#cc79a7", "#e69f00", "#56b4e9"};
constexpr std::array<const char*, 3> kDashes = {"", "8 3", "2 3"};

struct Point {
  double x = 0, y = 0;
};

struct Tick {
  double at = 0;
  std::string label;
};

struct Curve {
  std::string name;
  std::string style;  // attributes of its line
  std::vector<Point> points;
};

struct Panel {
  std::string title, x_title, y_title;
  double top = 0;
  double x_min = 0, x_max = 1, y_max = 1;
  bool logarithmic = false;  // x
  std::vector<Tick> x_ticks, y_ticks;
  std::vector<Curve> curves;

  double X(double x) const {
    double part = (x - x_min) / (x_max - x_min);
    if (logarithmic) part = std::log(x / x_min) / std::log(x_max / x_min);
    return kLeft + std::clamp(part, 0.0, 1.0) * (kRight - kLeft);
  }
  double Y(double y) const { return top + (1 - std::clamp(y / y_max, 0.0, 1.0)) * kFrameHeight; }
};

// Names of traces are files': any bytes.
std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return out;
}

// 1, 2 or 5 times a power of ten; at most `count` of them up to `most`.
double RoundStep(double most, int count) {
  const double raw = most / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> RoundTicks(double most, double step, double unit) {
  std::vector<Tick> ticks;
  for (int i = 0; i * step <= most * (1 + 1e-9) && i < 100; ++i) {
    char label[32];
    std::snprintf(label, sizeof label, "%g", i * step / unit);
    ticks.push_back({i * step, label});
  }
  return ticks;
}

std::vector<Tick> SpanTicks(const Panel& panel) {
  static const std::vector<Tick> kSpans{
      {1, "1 s"},          {2, "2 s"},           {5, "5 s"},          {10, "10 s"},
      {30, "30 s"},        {60, "1 min"},        {120, "2 min"},      {300, "5 min"},
      {600, "10 min"},     {1800, "30 min"},     {3600, "1 h"},       {7200, "2 h"},
      {18'000, "5 h"},     {36'000, "10 h"},     {86'400, "1 d"},     {172'800, "2 d"},
      {432'000, "5 d"},    {864'000, "10 d"},    {2'592'000, "30 d"}, {8'640'000, "100 d"},
      {31'536'000, "1 y"}, {315'360'000, "10 y"}};
  std::vector<Tick> ticks;
  for (const Tick& span : kSpans) {
    if (span.at < panel.x_min || span.at > panel.x_max) continue;
    const bool room = ticks.empty() || panel.X(span.at) - panel.X(ticks.back().at) >= kLabelEvery;
    if (room) ticks.push_back(span);
  }
  return ticks;
}

std::string StyleOf(size_t number, bool observed) {
  if (observed) return R"(stroke="#000000" stroke-width="2" stroke-dasharray="5 3")";
  const std::string dash = kDashes[number / kColours.size() % kDashes.size()];
  return StrCat("stroke=\"", kColours[number % kColours.size()], "\" stroke-width=\"2\"",
                dash.empty() ? "" : StrCat(" stroke-dasharray=\"", dash, "\""));
}

// As a staircase has two points a job, every n-th job stands for its neighbours where jobs are
// many.
std::vector<Point> Distribution(const PolicyRuns& policy) {
  std::vector<double> times;
  for (const RunOutcome& run : policy.runs) {
    for (const JobOutcome& job : run.jobs) {
      times.push_back(std::max(1.0, static_cast<double>(job.completion_s())));
    }
  }
  std::sort(times.begin(), times.end());
  const size_t corners = std::min(times.size(), kPointsMax / 2 - 1);
  std::vector<Point> points;
  double before = 0;
  for (size_t i = 1; i <= corners; ++i) {
    const size_t rank = times.size() * i / corners;
    const double part = 100.0 * static_cast<double>(rank) / static_cast<double>(times.size());
    points.push_back({times[rank - 1], before});
    points.push_back({times[rank - 1], part});
    before = part;
  }
  return points;
}

// The mean of each bucket of time, so that the area below the curve is the GPU-seconds held.
std::vector<Point> InUse(const RunOutcome& run, double until_s) {
  std::vector<double> gpu_s(kBuckets, 0.0);
  const double width = until_s / static_cast<double>(kBuckets);
  for (size_t i = 0; i < run.in_use.size(); ++i) {
    double from = static_cast<double>(run.in_use[i].at_s);
    const double end =
        i + 1 < run.in_use.size() ? static_cast<double>(run.in_use[i + 1].at_s) : until_s;
    // Counted, since a sum of widths may fall short of the next edge by rounding.
    for (auto at = static_cast<size_t>(from / width); at < kBuckets && from < end; ++at) {
      const double edge = at + 1 == kBuckets ? until_s : width * static_cast<double>(at + 1);
      const double to = std::clamp(edge, from, end);
      gpu_s[at] += run.in_use[i].gpus * (to - from);
      from = to;
    }
  }
  std::vector<Point> points;
  for (size_t i = 0; i < kBuckets; ++i) {
    points.push_back({width * static_cast<double>(i), gpu_s[i] / width});
    points.push_back({width * static_cast<double>(i + 1), gpu_s[i] / width});
  }
  return points;
}

Panel PanelOfTimes(const std::vector<PolicyRuns>& all) {
  Panel panel{.title = "Jobs that are complete within a time after their submission",
              .x_title = "completion time (logarithmic)",
              .y_title = "% of jobs",
              .top = 50};
  panel.logarithmic = true;
  panel.y_max = 100;
  panel.x_min = 1e12;
  panel.x_max = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    Curve curve{all[i].policy, StyleOf(i, all[i].observed), Distribution(all[i])};
    panel.x_min = std::min(panel.x_min, curve.points.front().x);
    panel.x_max = std::max(panel.x_max, curve.points.back().x);
    panel.curves.push_back(std::move(curve));
  }
  // Room for a curve that rises at one place only.
  panel.x_min /= 1.5;
  panel.x_max *= 1.5;
  for (Curve& curve : panel.curves) {
    curve.points.insert(curve.points.begin(), {panel.x_min, 0});
    curve.points.push_back({panel.x_max, 100});
  }
  panel.x_ticks = SpanTicks(panel);
  panel.y_ticks = RoundTicks(100, 20, 1);
  return panel;
}

Panel PanelOfUse(const std::vector<PolicyRuns>& all, const std::string& trace, int cluster_gpus) {
  Panel panel{
      .title = StrCat("GPUs in use: ", trace), .y_title = "GPUs", .top = 50 + kFrameHeight + 110};
  panel.x_max = 1;
  panel.y_max = cluster_gpus;
  for (const PolicyRuns& policy : all) {
    for (const JobOutcome& job : policy.runs.front().jobs) {
      panel.x_max = std::max(panel.x_max, static_cast<double>(job.ended_s));
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    Curve curve{all[i].policy, StyleOf(i, all[i].observed),
                InUse(all[i].runs.front(), panel.x_max)};
    // The cluster may have been larger than the one that is played.
    for (const Point& point : curve.points) panel.y_max = std::max(panel.y_max, point.y);
    panel.curves.push_back(std::move(curve));
  }
  const auto [unit, name] = panel.x_max > 4 * 86'400.0 ? std::pair(86'400.0, "days")
                            : panel.x_max > 7200       ? std::pair(3600.0, "hours")
                            : panel.x_max > 300        ? std::pair(60.0, "minutes")
                                                       : std::pair(1.0, "seconds");
  panel.x_title = StrCat(name, " since the first submission");
  panel.x_ticks = RoundTicks(panel.x_max, RoundStep(panel.x_max / unit, 10) * unit, unit);
  const double step = std::max(1.0, RoundStep(panel.y_max, 6));
  panel.y_max *= 1.05;
  panel.y_ticks = RoundTicks(panel.y_max, step, 1);
  return panel;
}

std::string Text(double x, double y, std::string_view anchor, std::string_view text) {
  return StrCat("<text x=\"", Decimal(x, 1), "\" y=\"", Decimal(y, 1), "\" text-anchor=\"", anchor,
                "\">", Escaped(text), "</text>\n");
}

std::string Line(double x1, double y1, double x2, double y2, std::string_view style) {
  return StrCat("<line x1=\"", Decimal(x1, 1), "\" y1=\"", Decimal(y1, 1), "\" x2=\"",
                Decimal(x2, 1), "\" y2=\"", Decimal(y2, 1), "\" ", style, "/>\n");
}

std::string Draw(const Panel& panel) {
  constexpr std::string_view kGrid = R"(stroke="#dddddd" stroke-width="1")";
  const double bottom = panel.top + kFrameHeight;
  std::string svg = StrCat("<g font-weight=\"bold\">",
                           Text(kLeft, panel.top - 16, "start", panel.title), "</g>\n");
  for (const Tick& tick : panel.x_ticks) {
    const double x = panel.X(tick.at);
    svg += Line(x, panel.top, x, bottom, kGrid) + Text(x, bottom + 18, "middle", tick.label);
  }
  for (const Tick& tick : panel.y_ticks) {
    const double y = panel.Y(tick.at);
    svg += Line(kLeft, y, kRight, y, kGrid) + Text(kLeft - 8, y + 4, "end", tick.label);
  }
  svg += Text((kLeft + kRight) / 2, bottom + 40, "middle", panel.x_title);
  const std::string middle = Decimal(panel.top + kFrameHeight / 2, 1);
  svg +=
      StrCat("<text x=\"22\" y=\"", middle, "\" text-anchor=\"middle\" transform=\"rotate(-90 22 ",
             middle, ")\">", Escaped(panel.y_title), "</text>\n");
  svg += StrCat("<rect x=\"", Decimal(kLeft, 1), "\" y=\"", Decimal(panel.top, 1), "\" width=\"",
                Decimal(kRight - kLeft, 1), "\" height=\"", Decimal(kFrameHeight, 1),
                "\" fill=\"none\" stroke=\"#333333\"/>\n");
  double legend_y = panel.top + 12;
  for (const Curve& curve : panel.curves) {
    svg += "<polyline fill=\"none\" stroke-linejoin=\"round\" " + curve.style + " points=\"";
    for (size_t i = 0; i < curve.points.size(); ++i) {
      svg += StrCat(i == 0 ? "" : " ", Decimal(panel.X(curve.points[i].x), 1), ",",
                    Decimal(panel.Y(curve.points[i].y), 1));
    }
    svg += "\"/>\n";
    svg += Line(kRight + 16, legend_y, kRight + 52, legend_y, curve.style) +
           Text(kRight + 60, legend_y + 4, "start", curve.name);
    legend_y += 20;
  }
  return svg;
}

}  // namespace

std::string PlotAsSvg(const std::vector<PolicyRuns>& all,
                      const std::vector<std::string>& traces,
                      int cluster_gpus) {
  std::string svg = StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"",
      Decimal(kWidth, 1), "\" height=\"", Decimal(kHeight, 1), "\" viewBox=\"0 0 ",
      Decimal(kWidth, 1), " ", Decimal(kHeight, 1),
      "\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
  svg += Draw(PanelOfTimes(all));
  svg += Draw(PanelOfUse(all, traces.front(), cluster_gpus));
  return svg + "</svg>\n";
}

}  // namespace swell::lab
