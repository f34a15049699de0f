// The tetrahedra in which the published simulator of Pollux interpolates step times.
//
// tools/lab_cells.py wrote them: the measured points of the profiles lie on a grid, whose Delaunay
// triangulation is not unique, and these are the tetrahedra that Qhull chooses. They hold places
// only (nodes, GPUs, batch of a GPU), no measurements. Some overlap: the first that holds a place
// counts, except at the places listed.
//
// - Threads: pure function.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace swell::lab {

struct PublishedCells {
  using Place = std::array<int64_t, 3>;
  std::vector<std::array<Place, 4>> cells;  // their corners
  std::map<Place, int64_t> exceptions;      // place → cell
};

// The cells of an application; empty for others than those of Pollux.
PublishedCells PolluxCells(std::string_view application);

}  // namespace swell::lab
