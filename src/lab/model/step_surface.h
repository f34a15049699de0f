// StepSurface: step times between the measured ones.
//
// Measured points are (nodes, GPUs, batch of a GPU) → (step time, time of it that the exchange of
// gradients adds). Between them the simulator of Pollux interpolates linearly in the tetrahedra of
// a Delaunay triangulation. The points lie on a grid, so many triangulations are equally good; the
// published results depend on the ones that Qhull happened to choose. Those are kept in
// pollux_cells.h, and used where a profile has exactly their points. Elsewhere the surface
// interpolates in three nested linear steps: batch, GPUs of a node, nodes; outside the measured
// range it takes the nearest measured value.
//
// - Threads: a plain value.
// - Invariants: times are finite and positive.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "goodput/step_model.h"

namespace swell::lab {

using goodput::StepTime;

struct StepPoint {
  std::array<int64_t, 3> at{};  // nodes, GPUs, batch of a GPU
  StepTime time;
};

class StepSurface {
 public:
  // No two points at one place. `application`: whose published cells may fit.
  StepSurface(std::string_view application, const std::vector<StepPoint>& points);

  StepTime At(int nodes, int gpus, int64_t batch) const;
  bool HasPublishedCellsForTest() const { return !cells_.empty(); }

 private:
  using Curve = std::vector<std::pair<int64_t, StepTime>>;  // by batch
  struct Cell {
    std::array<std::array<int64_t, 3>, 4> corners;
    std::array<StepTime, 4> times;
  };

  void UseCells(std::string_view application, const std::vector<StepPoint>& points);
  std::optional<StepTime> InCells(const std::array<int64_t, 3>& at) const;
  std::optional<StepTime> InCell(const Cell& cell, const std::array<int64_t, 3>& at) const;
  StepTime InRow(const std::map<int, Curve>& row, double gpus, int64_t batch) const;

  std::map<int, std::map<int, Curve>> rows_;  // nodes → GPUs → curve
  std::vector<Cell> cells_;
  std::map<std::array<int64_t, 3>, int64_t> exceptions_;  // places of which a later cell decides
};

// Linear between neighbours, constant beyond the ends. `curve` is not empty.
StepTime OnCurve(const std::vector<std::pair<int64_t, StepTime>>& curve, int64_t batch);

}  // namespace swell::lab
