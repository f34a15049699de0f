// The picture of runs: well-formed, inside its frames, bounded, and equal for equal input.
#include "lab/plot.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::lab {
namespace {

RunOutcome RunOf(int jobs, int64_t stretch) {
  RunOutcome run;
  for (int i = 0; i < jobs; ++i) {
    const int64_t submitted = i * 10;
    run.jobs.push_back({StrCat("j", i), submitted, submitted, submitted + 60 + i * stretch, 0, 1});
    run.in_use.push_back({submitted, static_cast<double>(i % 9)});
  }
  return run;
}

std::vector<PolicyRuns> Runs(int jobs) {
  return {{"as it was", false, {RunOf(jobs, 3)}, true}, {"fifo", false, {RunOf(jobs, 7)}}};
}

// Every tag that is opened is closed, in order; nothing but tags and text.
bool WellFormed(std::string_view xml) {
  std::vector<std::string_view> open;
  for (size_t at = xml.find('<'); at != std::string_view::npos; at = xml.find('<', at)) {
    const size_t end = xml.find('>', at);
    if (end == std::string_view::npos) return false;
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with("?") || tag.ends_with("/")) continue;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty();
}

// The points of each polyline.
std::vector<std::vector<std::pair<double, double>>> Lines(const std::string& svg) {
  std::vector<std::vector<std::pair<double, double>>> lines;
  for (size_t at = svg.find("<polyline"); at != std::string::npos;
       at = svg.find("<polyline", at + 1)) {
    const size_t from = svg.find("points=\"", at) + 8;
    auto& points = lines.emplace_back();
    const std::string all = svg.substr(from, svg.find('"', from) - from);
    for (std::string_view point : Split(all, ' ')) {
      const std::string text(point);
      points.emplace_back(std::atof(text.c_str()),
                          std::atof(text.substr(text.find(',') + 1).c_str()));
    }
  }
  return lines;
}

TEST(Plot, IsWellFormedInsideItsFramesAndBounded) {
  for (int jobs : {1, 2, 40, 5000}) {
    const std::string svg = PlotAsSvg(Runs(jobs), {"a<b>&\"c\x01"}, 8);
    EXPECT_TRUE(WellFormed(svg));
    EXPECT_NE(svg.find("a&lt;b&gt;&amp;&quot;c?"), std::string::npos);
    EXPECT_EQ(svg.find("script"), std::string::npos);
    const auto lines = Lines(svg);
    ASSERT_EQ(lines.size(), 4u);
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_LE(lines[i].size(), kPointsMax);
      EXPECT_GE(lines[i].size(), 4u);
      const double top = i < 2 ? 50 : 420;
      for (const auto& [x, y] : lines[i]) {
        EXPECT_TRUE(x >= 70 && x <= 760 && y >= top && y <= top + 260) << x << "," << y;
      }
    }
    // All jobs end, and no curve falls.
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(lines[i].back().second, 50);
      for (size_t p = 1; p < lines[i].size(); ++p) {
        EXPECT_GE(lines[i][p].first, lines[i][p - 1].first);
        EXPECT_LE(lines[i][p].second, lines[i][p - 1].second);
      }
    }
    EXPECT_EQ(svg, PlotAsSvg(Runs(jobs), {"a<b>&\"c\x01"}, 8));
  }
}

TEST(Plot, GpusInUseAreMeansOverTime) {
  PolicyRuns runs{"fifo", false, {{}}};
  runs.runs[0].jobs.push_back({"j", 0, 0, 1000, 0, 4000});
  runs.runs[0].in_use = {{0, 8}, {500, 0}};
  const auto lines = Lines(PlotAsSvg({runs}, {"t"}, 8));
  const auto& in_use = lines[1];
  // 8 of 8.4 at first, then none.
  EXPECT_NEAR(in_use.front().second, 420 + 260 * (1 - 8 / 8.4), 0.1);
  EXPECT_EQ(in_use[499].second, in_use.front().second);
  EXPECT_EQ(in_use[500].second, 680);
  EXPECT_EQ(in_use.back().second, 680);
}

TEST(Plot, AMeanIsNeverMoreThanWhatWasHeld) {
  for (int64_t until : {997, 14'271, 51'372}) {
    PolicyRuns runs{"fifo", false, {{}}};
    runs.runs[0].jobs.push_back({"j", 0, 0, until, 0, 1});
    for (int64_t at = 0; at < until; at += 7) runs.runs[0].in_use.push_back({at, 8});
    const auto lines = Lines(PlotAsSvg({runs}, {"t"}, 8));
    for (const auto& [x, y] : lines[1]) EXPECT_NEAR(y, 420 + 260 * (1 - 8 / 8.4), 0.1) << until;
  }
}

TEST(Plot, PoliciesAreToldApart) {
  std::vector<PolicyRuns> all;
  for (int i = 0; i < 10; ++i) all.push_back({StrCat("p", i), false, {RunOf(3, 1)}, i == 0});
  const std::string svg = PlotAsSvg(all, {"t"}, 8);
  std::vector<std::string> styles;
  for (size_t at = svg.find("<polyline"); at != std::string::npos && styles.size() < 10;
       at = svg.find("<polyline", at + 1)) {
    const size_t from = svg.find("stroke=", at);
    styles.push_back(svg.substr(from, svg.find(" points", from) - from));
  }
  std::sort(styles.begin(), styles.end());
  EXPECT_EQ(std::unique(styles.begin(), styles.end()), styles.end());
}

}  // namespace
}  // namespace swell::lab
