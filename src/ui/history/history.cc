#include "ui/history/history.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace swell::ui {
namespace {

void Put(std::string& out, const void* value, size_t size) {
  out.append(static_cast<const char*>(value), size);
}

template <class T>
T Take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

int64_t ChunkOf(int64_t slot, const RingForm& form) { return slot / form.chunk; }

// Three floats a slot, or one where least and most are the same.
std::string ChunkBytes(const Ring& ring, int64_t chunk) {
  std::string bytes;
  for (int64_t i = 0; i < ring.form().chunk; ++i) {
    const Cell cell = ring.At(chunk * ring.form().chunk + i);
    Put(bytes, &cell.mean, sizeof cell.mean);
    if (!ring.form().has_extremes) continue;
    Put(bytes, &cell.least, sizeof cell.least);
    Put(bytes, &cell.most, sizeof cell.most);
  }
  return bytes;
}

constexpr size_t kPointBytes = sizeof(int64_t) + sizeof(float);

}  // namespace

std::string_view SeriesName::Label(std::string_view key) const {
  for (const auto& [name, value] : labels) {
    if (name == key) return value;
  }
  return "";
}

bool History::Matches(std::string_view series, std::string_view wanted) {
  if (!wanted.ends_with('*')) return series == wanted;
  wanted.remove_suffix(1);
  return series.starts_with(wanted);
}

template <class Map>
void History::MakeRoom(Map& series, size_t most) {
  while (series.size() > most) {
    auto oldest = std::min_element(series.begin(), series.end(), [](const auto& a, const auto& b) {
      return a.second.written_s < b.second.written_s;
    });
    gone_.insert(oldest->first);
    series.erase(oldest);
  }
}

void History::Add(int64_t time_s, const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    if (!std::isfinite(sample.value)) continue;
    if (sample.of_job) {
      Points& points = jobs_[sample.series];
      points.written_s = time_s;
      AddPoint(points, time_s, sample.value);
    } else {
      LadderEntry& entry = ladders_[sample.series];
      if (entry.stored_s == 0) entry.stored_s = time_s;
      entry.written_s = time_s;
      entry.ladder.Add(time_s, sample.value);
    }
  }
  MakeRoom(ladders_, kLaddersMax);
  MakeRoom(jobs_, kJobSeriesMax);
}

// The last of two that stay equal moves along; a full list keeps every second point.
void History::AddPoint(Points& points, int64_t time_s, double value) {
  auto& all = points.points;
  const auto number = static_cast<float>(value);
  if (!all.empty() && time_s <= all.back().first) return;
  const size_t n = all.size();
  points.stored = std::min(points.stored, n == 0 ? 0 : n - 1);
  if (n >= 2 && all[n - 1].second == number && all[n - 2].second == number) {
    all.back().first = time_s;
    return;
  }
  if (n >= 2 && all[n - 1].first - all[n - 2].first < points.spacing_s) {
    all.back() = {time_s, number};
    return;
  }
  all.emplace_back(time_s, number);
  if (all.size() <= kJobPoints) return;
  std::vector<std::pair<int64_t, float>> half;
  for (size_t i = 0; i < all.size(); i += 2) half.push_back(all[i]);
  if (half.back().first != all.back().first) half.push_back(all.back());
  const int64_t span = all.back().first - all.front().first;
  points.spacing_s = std::max<int64_t>(1, 2 * span / static_cast<int64_t>(kJobPoints));
  all = std::move(half);
  points.stored = 0;
}

Ladder::Points History::ReadPoints(const Points& points,
                                   int64_t from_s,
                                   int64_t to_s,
                                   size_t most) {
  Ladder::Points out;
  std::vector<std::pair<int64_t, float>> inside;
  for (const auto& point : points.points) {
    if (point.first >= from_s && point.first <= to_s) inside.push_back(point);
  }
  const size_t each = most == 0 ? inside.size() + 1 : (inside.size() + most - 1) / most;
  for (size_t i = 0; i < inside.size(); i += std::max<size_t>(1, each)) {
    out.times.push_back(inside[i].first);
    out.values.push_back(static_cast<double>(inside[i].second));
  }
  return out;
}

std::vector<std::pair<SeriesName, double>> History::Newest(std::string_view name) const {
  std::vector<std::pair<SeriesName, double>> newest;
  for (const auto& [series, entry] : ladders_) {
    const Ring& finest = entry.ladder.ring(0);
    if (series.name != name || finest.empty()) continue;
    newest.emplace_back(series, static_cast<double>(finest.At(finest.last()).mean));
  }
  return newest;
}

std::vector<HistoryPiece> History::TakeChanges() {
  std::vector<HistoryPiece> pieces;
  for (const SeriesName& series : gone_) pieces.push_back({series, kWholeSeries, 0, ""});
  gone_.clear();
  for (auto& [series, entry] : ladders_) {
    for (size_t i = 0; i < kRings.size(); ++i) {
      const Ring& ring = entry.ladder.ring(i);
      if (ring.empty()) continue;
      const RingForm& form = ring.form();
      // A coarse slot that is not over yet follows from finer ones after a restart.
      const int64_t begin = std::max(ring.first(), entry.stored_s / form.step_s);
      const int64_t end = i == 0 ? ring.last() : ring.last() - 1;
      if (i > 0 && entry.stored_s / form.step_s > end) continue;
      for (int64_t chunk = ChunkOf(begin, form); chunk <= ChunkOf(end, form); ++chunk) {
        pieces.push_back({series, static_cast<int64_t>(i), chunk, ChunkBytes(ring, chunk)});
      }
    }
    entry.stored_s = entry.written_s;
  }
  for (auto& [series, points] : jobs_) {
    const auto& all = points.points;
    const size_t chunks = (all.size() + kPointsChunk - 1) / kPointsChunk;
    if (points.stored == all.size()) continue;
    for (size_t chunk = points.stored / kPointsChunk; chunk < chunks; ++chunk) {
      std::string bytes;
      const size_t end = std::min(all.size(), (chunk + 1) * kPointsChunk);
      for (size_t i = chunk * kPointsChunk; i < end; ++i) {
        Put(bytes, &all[i].first, sizeof all[i].first);
        Put(bytes, &all[i].second, sizeof all[i].second);
      }
      pieces.push_back({series, kPointsOfJob, static_cast<int64_t>(chunk), std::move(bytes)});
    }
    for (size_t chunk = chunks; chunk < points.stored_chunks; ++chunk) {
      pieces.push_back({series, kPointsOfJob, static_cast<int64_t>(chunk), ""});
    }
    points.stored = all.size();
    points.stored_chunks = chunks;
  }
  return pieces;
}

void History::Restore(const HistoryPiece& piece) {
  std::string_view bytes = piece.bytes;
  if (piece.ring == kPointsOfJob) {
    Points& points = jobs_[piece.series];
    while (bytes.size() >= kPointBytes && points.points.size() <= kJobPoints) {
      const auto time = Take<int64_t>(bytes);
      const auto value = Take<float>(bytes);
      if (time <= points.written_s || !std::isfinite(value)) continue;
      points.points.emplace_back(time, value);
      points.written_s = time;
    }
    const int64_t span = points.points.empty() ? 0 : points.written_s - points.points[0].first;
    if (points.points.size() > kJobPoints / 2) {
      points.spacing_s = span / static_cast<int64_t>(kJobPoints);
    }
    points.stored = points.points.size();
    points.stored_chunks = (points.stored + kPointsChunk - 1) / kPointsChunk;
    MakeRoom(jobs_, kJobSeriesMax);
    return;
  }
  if (piece.ring < 0 || piece.ring >= static_cast<int64_t>(kRings.size())) return;
  const RingForm& form = kRings[static_cast<size_t>(piece.ring)];
  constexpr int64_t kLatest = int64_t{1} << 40;  // seconds; no clock says so much
  if (piece.chunk < 0 || piece.chunk > kLatest / form.step_s / form.chunk) return;
  LadderEntry& entry = ladders_[piece.series];
  Ring& ring = entry.ladder.ring(static_cast<size_t>(piece.ring));
  const size_t width = (form.has_extremes ? 3 : 1) * sizeof(float);
  for (int64_t i = 0; i < form.chunk && bytes.size() >= width; ++i) {
    Cell cell{};
    cell.mean = cell.least = cell.most = Take<float>(bytes);
    if (form.has_extremes) {
      cell.least = Take<float>(bytes);
      cell.most = Take<float>(bytes);
    }
    if (std::isnan(cell.mean)) continue;
    const int64_t slot = piece.chunk * form.chunk + i;
    ring.Set(slot, cell);
    entry.written_s = std::max(entry.written_s, slot * form.step_s);
  }
  entry.stored_s = entry.written_s;
  MakeRoom(ladders_, kLaddersMax);
}

}  // namespace swell::ui
