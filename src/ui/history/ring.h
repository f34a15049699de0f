// Ring: the values of one series at one resolution: a slot per step, the oldest give way.
//
// Ladder: the same series from seconds to more than a year: rings of growing steps. Each coarser
// one has the mean, the least and the most of the finer.
//
// - Threads: plain values.
// - Invariants: a ring has at most its capacity of slots; a slot without a value is NaN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace swell::ui {

struct RingForm {
  int64_t step_s;
  size_t capacity;  // slots
  int64_t chunk;    // slots that are stored together
  bool has_extremes;
};

// A day of 15 s, 30 days of 5 min, 400 days of 1 h.
inline constexpr std::array<RingForm, 3> kRings = {
    {{15, 5760, 60, false}, {300, 8640, 96, true}, {3600, 9600, 96, true}}};

struct Cell {
  float mean, least, most;
};

class Ring {
 public:
  explicit Ring(const RingForm& form) : form_(&form) {}

  // False: the slot is older than what is kept.
  bool Set(int64_t slot, const Cell& cell);
  Cell At(int64_t slot) const;  // of NaN where there is no value
  bool empty() const { return means_.empty(); }
  int64_t first() const { return first_; }
  int64_t last() const { return first_ + static_cast<int64_t>(means_.size()) - 1; }
  const RingForm& form() const { return *form_; }

 private:
  const RingForm* form_;
  int64_t first_ = 0;
  std::deque<float> means_, leasts_, mosts_;
};

class Ladder {
 public:
  Ladder() : rings_{Ring(kRings[0]), Ring(kRings[1]), Ring(kRings[2])} {}

  void Add(int64_t time_s, double value);
  const Ring& ring(size_t i) const { return rings_[i]; }
  Ring& ring(size_t i) { return rings_[i]; }

  struct Points {
    std::vector<int64_t> times;  // seconds since 1970
    std::vector<double> values;  // NaN: unknown
  };
  // At most `most` points of [from, to], from the finest ring that reaches back so far.
  Points Read(int64_t from_s, int64_t to_s, size_t most) const;

 private:
  std::array<Ring, 3> rings_;
};

}  // namespace swell::ui
