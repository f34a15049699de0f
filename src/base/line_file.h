// LineFile: lines appended to a file of a bounded size, for its owner alone (0600). A full one
// becomes PATH.1, that one PATH.2 and so on; the oldest goes.
// - Threads: none; one thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace swell {

class LineFile {
 public:
  struct Limits {
    uint64_t bytes_max = 100 << 20;
    int backups = 10;
  };
  // Goes on with the file that is there; a line that a crash left open is ended first.
  static Result<std::unique_ptr<LineFile>> Open(const std::string& path, Limits limits);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // `lines` ends with a newline. After an error nothing of them is in the file, and the next call
  // tries again.
  Status Append(std::string_view lines);

 private:
  LineFile(std::string path, Limits limits) : path_(std::move(path)), limits_(limits) {}
  Status Reopen();
  Status Rotate();
  void Close();

  const std::string path_;
  const Limits limits_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace swell
