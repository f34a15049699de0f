// HistoryFile: the history on disk: a small SQLite database of its own, so that the cluster's store
// is not written every minute for it.
//
//   series(id, name)                     the name with its labels, as JSON
//   pieces(ring, chunk, series, bytes)   what HistoryPiece says
//   timelines(job, time, text)           what MemberLog knows of a job, by its uid; of the job ""
//                                        the time alone, at which all was last written
//
// Pieces of one time lie together, so that a minute's write touches few pages.
//
// - Threads: one thread; every call blocks on the disk, so never the core thread.
// - Invariants: a write is there whole or not at all. A file that cannot be read is put aside, and
//   a new one begins.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ui/history/history.h"

namespace swell::ui {

struct KeptTimeline {
  std::string job;   // its uid
  std::string text;  // empty: it is gone
};

class HistoryFile {
 public:
  static constexpr size_t kTimelinesMax = 2000;

  ~HistoryFile();
  static Result<std::unique_ptr<HistoryFile>> Open(const std::string& path);

  // Pieces of each ring in the order of their time.
  Status Load(const std::function<void(const HistoryPiece&)>& each);
  // `now_s` tells what is older than each ring keeps.
  Status Write(const std::vector<HistoryPiece>& pieces, int64_t now_s);

  // The newest; `written_s` becomes the time of the last write, 0 before the first.
  Status LoadTimelines(const std::function<void(const KeptTimeline&)>& each, int64_t& written_s);
  Status WriteTimelines(const std::vector<KeptTimeline>& timelines, int64_t now_s);

 private:
  struct Impl;
  explicit HistoryFile(std::unique_ptr<Impl> impl);
  Status WriteAll(const std::vector<HistoryPiece>& pieces, int64_t now_s);
  Status WriteAllTimelines(const std::vector<KeptTimeline>& timelines, int64_t now_s);
  Status InOneWrite(const std::function<Status()>& write);
  Result<int64_t> IdOf(const SeriesName& series);

  std::unique_ptr<Impl> impl_;
};

}  // namespace swell::ui
