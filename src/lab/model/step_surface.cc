#include "lab/model/step_surface.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "lab/model/pollux_cells.h"

namespace swell::lab {
namespace {

using Place = std::array<int64_t, 3>;

StepTime Between(const StepTime& low, const StepTime& high, double part) {
  return {low.step_s + (high.step_s - low.step_s) * part,
          low.sync_s + (high.sync_s - low.sync_s) * part};
}

// Six times the signed volume.
int64_t Volume(const Place& a, const Place& b, const Place& c, const Place& d) {
  int64_t u[3], v[3], w[3];
  for (int i = 0; i < 3; ++i) {
    u[i] = b[i] - a[i];
    v[i] = c[i] - a[i];
    w[i] = d[i] - a[i];
  }
  return u[0] * (v[1] * w[2] - v[2] * w[1]) - u[1] * (v[0] * w[2] - v[2] * w[0]) +
         u[2] * (v[0] * w[1] - v[1] * w[0]);
}

}  // namespace

StepTime OnCurve(const std::vector<std::pair<int64_t, StepTime>>& curve, int64_t batch) {
  SWELL_CHECK(!curve.empty());
  if (batch <= curve.front().first) return curve.front().second;
  if (batch >= curve.back().first) return curve.back().second;
  const auto high = std::lower_bound(curve.begin(), curve.end(), batch,
                                     [](const auto& point, int64_t b) { return point.first < b; });
  const auto low = high - 1;
  // In the order of operations of SciPy's interp1d, for equal bits.
  const auto width = static_cast<double>(high->first - low->first);
  const auto beyond = static_cast<double>(batch - low->first);
  const StepTime& a = low->second;
  const StepTime& b = high->second;
  return {(b.step_s - a.step_s) / width * beyond + a.step_s,
          (b.sync_s - a.sync_s) / width * beyond + a.sync_s};
}

StepSurface::StepSurface(std::string_view application, const std::vector<StepPoint>& points) {
  for (const StepPoint& point : points) {
    rows_[static_cast<int>(point.at[0])][static_cast<int>(point.at[1])].emplace_back(point.at[2],
                                                                                     point.time);
  }
  for (auto& [nodes, row] : rows_) {
    for (auto& [gpus, curve] : row) {
      std::sort(curve.begin(), curve.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
    }
  }
  UseCells(application, points);
}

void StepSurface::UseCells(std::string_view application, const std::vector<StepPoint>& points) {
  std::map<Place, StepTime> measured;
  for (const StepPoint& point : points) measured[point.at] = point.time;
  PublishedCells published = PolluxCells(application);
  std::vector<Cell> cells;
  for (const std::array<Place, 4>& corners : published.cells) {
    Cell cell{corners, {}};
    for (size_t i = 0; i < 4; ++i) {
      const auto found = measured.find(corners[i]);
      if (found == measured.end()) return;  // measured elsewhere: another profile
      cell.times[i] = found->second;
    }
    cells.push_back(cell);
  }
  cells_ = std::move(cells);
  exceptions_ = std::move(published.exceptions);
}

std::optional<StepTime> StepSurface::InCell(const Cell& cell, const Place& at) const {
  const auto& c = cell.corners;
  const int64_t whole = Volume(c[0], c[1], c[2], c[3]);
  if (whole == 0) return std::nullopt;
  const std::array<int64_t, 4> parts{Volume(at, c[1], c[2], c[3]), Volume(c[0], at, c[2], c[3]),
                                     Volume(c[0], c[1], at, c[3]), Volume(c[0], c[1], c[2], at)};
  StepTime time;
  for (size_t i = 0; i < 4; ++i) {
    if (whole > 0 ? parts[i] < 0 : parts[i] > 0) return std::nullopt;  // outside
    const double weight = static_cast<double>(parts[i]) / static_cast<double>(whole);
    time.step_s += weight * cell.times[i].step_s;
    time.sync_s += weight * cell.times[i].sync_s;
  }
  return time;
}

std::optional<StepTime> StepSurface::InCells(const Place& at) const {
  const auto exception = exceptions_.find(at);
  if (exception != exceptions_.end()) return InCell(cells_.at(exception->second), at);
  for (const Cell& cell : cells_) {
    if (const auto time = InCell(cell, at)) return time;
  }
  return std::nullopt;
}

StepTime StepSurface::InRow(const std::map<int, Curve>& row, double gpus, int64_t batch) const {
  auto high = row.lower_bound(static_cast<int>(gpus));
  while (high != row.end() && high->first < gpus) ++high;
  if (high == row.end()) return OnCurve(row.rbegin()->second, batch);
  if (high == row.begin() || high->first == gpus) return OnCurve(high->second, batch);
  const auto low = std::prev(high);
  return Between(OnCurve(low->second, batch), OnCurve(high->second, batch),
                 (gpus - low->first) / (high->first - low->first));
}

StepTime StepSurface::At(int nodes, int gpus, int64_t batch) const {
  if (const auto time = InCells({nodes, gpus, batch})) return *time;
  const auto high = rows_.lower_bound(nodes);
  const double density = static_cast<double>(gpus) / nodes;
  auto in = [&](const auto& row) { return InRow(row->second, density * row->first, batch); };
  if (high == rows_.end()) return in(std::prev(rows_.end()));
  if (high == rows_.begin() || high->first == nodes) return in(high);
  const auto low = std::prev(high);
  return Between(in(low), in(high),
                 static_cast<double>(nodes - low->first) / (high->first - low->first));
}

}  // namespace swell::lab
