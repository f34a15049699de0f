#include "ui/history/ring.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace swell::ui {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// Rounds down, also below zero.
int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// What the slots [begin, end) of a ring come to.
Cell Gather(const Ring& ring, int64_t begin, int64_t end) {
  double sum = 0;
  int64_t count = 0;
  Cell all{kNone, kNone, kNone};
  for (int64_t slot = begin; slot < end; ++slot) {
    const Cell cell = ring.At(slot);
    if (std::isnan(cell.mean)) continue;
    sum += static_cast<double>(cell.mean);
    ++count;
    all.least = std::fmin(all.least, cell.least);  // the other number where one is NaN
    all.most = std::fmax(all.most, cell.most);
  }
  if (count > 0) all.mean = static_cast<float>(sum / static_cast<double>(count));
  return all;
}

}  // namespace

bool Ring::Set(int64_t slot, const Cell& cell) {
  const auto capacity = static_cast<int64_t>(form_->capacity);
  if (means_.empty() || slot > last() + capacity) {
    means_.clear();
    leasts_.clear();
    mosts_.clear();
    first_ = slot;
  }
  if (slot < first_) return false;
  auto put = [this, slot, capacity](std::deque<float>& values, float value, int64_t first) {
    while (first + static_cast<int64_t>(values.size()) <= slot) values.push_back(kNone);
    values[static_cast<size_t>(slot - first)] = value;
    while (static_cast<int64_t>(values.size()) > capacity) values.pop_front();
  };
  if (form_->has_extremes) {
    put(leasts_, cell.least, first_);
    put(mosts_, cell.most, first_);
  }
  const int64_t first = first_;
  put(means_, cell.mean, first);
  first_ = slot > first + capacity - 1 ? slot - capacity + 1 : first;
  return true;
}

Cell Ring::At(int64_t slot) const {
  if (means_.empty() || slot < first_ || slot > last()) return {kNone, kNone, kNone};
  const auto i = static_cast<size_t>(slot - first_);
  if (!form_->has_extremes) return {means_[i], means_[i], means_[i]};
  return {means_[i], leasts_[i], mosts_[i]};
}

void Ladder::Add(int64_t time_s, double value) {
  const auto number = static_cast<float>(value);
  int64_t slot = FloorDiv(time_s, kRings[0].step_s);
  if (!rings_[0].Set(slot, {number, number, number})) return;
  for (size_t i = 1; i < rings_.size(); ++i) {
    const int64_t finer = kRings[i].step_s / kRings[i - 1].step_s;
    slot = FloorDiv(slot, finer);
    rings_[i].Set(slot, Gather(rings_[i - 1], slot * finer, (slot + 1) * finer));
  }
}

Ladder::Points Ladder::Read(int64_t from_s, int64_t to_s, size_t most) const {
  Points points;
  if (most == 0 || to_s < from_s) return points;
  auto start = [](const Ring& one) { return one.first() * one.form().step_s; };
  const Ring* ring = &rings_[0];
  for (const Ring& coarser : rings_) {
    if (coarser.empty() || start(*ring) <= from_s) continue;
    // Its first slot may begin before anything was measured.
    const bool reaches = start(coarser) + coarser.form().step_s <= start(*ring);
    if (reaches || ring->empty()) ring = &coarser;
  }
  if (ring->empty()) return points;
  const int64_t step = ring->form().step_s;
  const int64_t begin = std::max(FloorDiv(from_s, step), ring->first());
  const int64_t end = std::min(FloorDiv(to_s, step), ring->last()) + 1;
  if (end <= begin) return points;
  const int64_t slots = end - begin;
  const int64_t each =
      std::max<int64_t>(1, (slots + static_cast<int64_t>(most) - 1) / static_cast<int64_t>(most));
  for (int64_t slot = begin; slot < end; slot += each) {
    points.times.push_back(slot * step);
    const Cell cell = Gather(*ring, slot, std::min(end, slot + each));
    points.values.push_back(static_cast<double>(cell.mean));
  }
  return points;
}

}  // namespace swell::ui
