// LogReader: reads a container's log files back, piece by piece: the rotated ones first, the lines
// as the container wrote them (or with their time), from a tail or a time on, and on while the
// container writes. A line that one stream has begun ends where the other one writes.
// - Threads: none; the owner's thread. Blocking reads of local files.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kube/node/runtime/runtime.h"

namespace swell::process {

class LogReader {
 public:
  // kNotFound when there is no such log.
  static Result<LogReader> Open(const std::string& path, const node::LogOptions& options);
  // The next piece of at most about 64 KiB; empty at what is the end for now, and after a stretch
  // in which the reader wants no line.
  std::string Read();
  // The last Read() ended with such a stretch, and there may be more behind it.
  bool skipped() const { return skipped_; }
  // The byte limit is reached: there will be nothing more.
  bool finished() const { return limit_left_ == 0; }

 private:
  LogReader(std::string path, const node::LogOptions& options)
      : path_(std::move(path)), options_(options), limit_left_(options.limit_bytes) {}
  Status FindStart();
  std::string NameOf(int age) const;
  UniqueFd OpenBeside(const UniqueFd& file, int older) const;
  bool NextFile();
  void Format(std::string_view line, std::string& out);

  std::string path_;
  node::LogOptions options_;
  int64_t limit_left_;
  UniqueFd file_;
  UniqueFd next_;  // the file that was begun after file_, once file_ has its last line
  bool skipped_ = false;
  std::string partial_;
  std::string begun_;  // the stream whose line has no end yet; empty at the beginning of a line
};

// The last lines' text, for termination messages.
std::string LogTail(const std::string& path, int64_t lines, size_t bytes_max);

}  // namespace swell::process
