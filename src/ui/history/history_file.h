// HistoryFile: the history on disk: a small SQLite database of its own, so that the cluster's store
// is not written every minute for it.
//
//   series(id, name)                     the name with its labels, as JSON
//   pieces(ring, chunk, series, bytes)   what HistoryPiece says
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

class HistoryFile {
 public:
  ~HistoryFile();
  static Result<std::unique_ptr<HistoryFile>> Open(const std::string& path);

  // Pieces of each ring in the order of their time.
  Status Load(const std::function<void(const HistoryPiece&)>& each);
  // `now_s` tells what is older than each ring keeps.
  Status Write(const std::vector<HistoryPiece>& pieces, int64_t now_s);

 private:
  struct Impl;
  explicit HistoryFile(std::unique_ptr<Impl> impl);
  Status WriteAll(const std::vector<HistoryPiece>& pieces, int64_t now_s);
  Result<int64_t> IdOf(const SeriesName& series);

  std::unique_ptr<Impl> impl_;
};

}  // namespace swell::ui
