// Tar archives as streams: what `swell cp` sends to and gets from a pod's tar. POSIX ustar, with
// GNU's and pax's ways to write long names.
// - Threads: none. Reads and writes local files, blocking.
// - Invariants: nothing is written outside of the reader's destination, whatever the archive says;
//   memory is bounded by a piece.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::cli {

class TarWriter {
 public:
  // The file or tree at `path`, under `name` in the archive.
  TarWriter(std::string path, std::string name);
  ~TarWriter();
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  // The next piece; empty at the end.
  Result<std::string> Next();

 private:
  struct Entry {
    std::string path;
    std::string name;
  };
  Status Begin(const Entry& entry, std::string* out);

  std::vector<Entry> left_;  // the next one last
  int fd_ = -1;              // of the file under way
  uint64_t file_left_ = 0;
  std::string file_path_;
  uint64_t padding_ = 0;
  bool ended_ = false;
};

class TarReader {
 public:
  // Entries at or below `prefix` go to `destination` in its place; others are left out, with a word
  // to `warn`. So are links that lead out of the destination, and special files.
  TarReader(const std::string& prefix,
            std::string destination,
            std::function<void(std::string_view)> warn);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  Status Feed(std::string_view bytes);
  // After the last byte: an error when the archive is cut off.
  Status Finish();
  size_t entries() const { return entries_; }

 private:
  Status TakeHeader();
  Status TakeBody(std::string_view bytes);
  Status EndBody();
  Status Open(char type, const std::string& name, const std::string& link, int mode);
  Result<std::string> Target(const std::string& name);

  const std::string prefix_, destination_;
  const std::function<void(std::string_view)> warn_;
  std::string block_;  // of a header not complete yet
  uint64_t body_left_ = 0;
  uint64_t padding_ = 0;
  enum class Body { kSkip, kFile, kLongName, kLongLink, kPax } body_ = Body::kSkip;
  std::string text_;  // of a long name or a pax header
  std::string next_name_, next_link_;
  int fd_ = -1;
  std::string file_path_;
  bool at_end_ = false;
  size_t entries_ = 0;
};

}  // namespace swell::cli
