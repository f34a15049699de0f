// History: numbers over time, from seconds to more than a year, in bounded space.
//
// Two forms: a *ladder* per number of the cluster, a project or a node (ring.h), and *points* per
// number of a job, of which there are at most kJobPoints over its whole life: when they are full,
// pairs become one.
//
//   kLaddersMax ladders of 240 KB at most, kJobSeriesMax lists of points of 32 KB
//
// Beyond these the series that was not written for the longest time gives way. What changed since
// the last time is handed out as pieces, which a file keeps (history_file.h).
//
// - Threads: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ui/history/ring.h"

namespace swell::ui {

// "gpu_held" with its labels in order.
struct SeriesName {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels = {};
  auto operator<=>(const SeriesName&) const = default;

  std::string_view Label(std::string_view key) const;
};

struct Sample {
  SeriesName series;
  double value = 0;
  bool of_job = false;
};

// A part of a series as it is stored: a chunk of a ring, or some points of a job.
struct HistoryPiece {
  SeriesName series;
  int64_t ring = 0;   // or kPointsOfJob, or kWholeSeries
  int64_t chunk = 0;  // of a ring its number since 1970, of points from the first on
  std::string bytes;  // empty: it is gone
};
inline constexpr int64_t kPointsOfJob = -1;
inline constexpr int64_t kWholeSeries = -2;

class History {
 public:
  static constexpr size_t kLaddersMax = 900;
  static constexpr size_t kJobSeriesMax = 1000;
  static constexpr size_t kJobPoints = 2000;
  static constexpr size_t kPointsChunk = 100;

  void Add(int64_t time_s, const std::vector<Sample>& samples);

  struct Found {
    const SeriesName* series;
    Ladder::Points points;
  };
  // `name` may end in '*'. `may` says which series the caller may see.
  template <class May>
  std::vector<Found> Read(
      std::string_view name, int64_t from_s, int64_t to_s, size_t most, const May& may) const {
    std::vector<Found> found;
    for (const auto& [series, it] : ladders_) {
      if (!Matches(series.name, name) || !may(series)) continue;
      found.push_back({&series, it.ladder.Read(from_s, to_s, most)});
    }
    for (const auto& [series, it] : jobs_) {
      if (!Matches(series.name, name) || !may(series)) continue;
      found.push_back({&series, ReadPoints(it, from_s, to_s, most)});
    }
    return found;
  }

  // The newest value of each series of the cluster that is called so.
  std::vector<std::pair<SeriesName, double>> Newest(std::string_view name) const;

  // What changed since the last call.
  std::vector<HistoryPiece> TakeChanges();
  // What a file has kept, the pieces of a series in order. Nonsense is left out.
  void Restore(const HistoryPiece& piece);

  size_t ladders() const { return ladders_.size(); }

 private:
  struct LadderEntry {
    Ladder ladder;
    int64_t written_s = 0;
    int64_t stored_s = 0;  // slots before this are in the file
  };
  struct Points {
    std::vector<std::pair<int64_t, float>> points;
    int64_t spacing_s = 0;  // that the next point must have at least
    int64_t written_s = 0;
    size_t stored = 0;         // points that are in the file unchanged
    size_t stored_chunks = 0;  // of the file
  };

  static bool Matches(std::string_view series, std::string_view wanted);
  static Ladder::Points ReadPoints(const Points& points, int64_t from_s, int64_t to_s, size_t most);
  static void AddPoint(Points& points, int64_t time_s, double value);
  template <class Map>
  void MakeRoom(Map& series, size_t most);

  std::map<SeriesName, LadderEntry> ladders_;
  std::map<SeriesName, Points> jobs_;
  std::set<SeriesName> gone_;
};

}  // namespace swell::ui
