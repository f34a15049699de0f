// RecordRing: the last records of an endless series, in files of a bounded size.
//
//   DIR/000000000017   one segment: records that are understood from its beginning on
//   record             u32 length, u64 hash of the bytes, the bytes; little-endian
//
// A segment is written by one process and never added to by another. What a crash tears off is the
// end of a segment, found by length and hash when it is read. Nothing is forced to the disk: a
// power cut may cost the last seconds.
//
// - Threads: none; one thread owns a ring. Reading what another process writes is safe: its last
//   record may be missing.
// - Invariants: all segments but the newest fit into bytes_max together with it, or are removed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell {

class RecordRing {
 public:
  // Makes the directory; writes nothing before the first Begin.
  static Result<std::unique_ptr<RecordRing>> Open(const std::string& dir, uint64_t bytes_max);
  ~RecordRing();
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;

  // Ends the segment and begins another; the oldest ones make room for it.
  Status Begin();
  // After an error the segment takes no more records until Begin.
  Status Append(std::string_view record);

  struct Segment {
    std::vector<std::string> records;
    bool torn = false;  // something follows the last whole record
  };
  // Paths of the segments, the oldest first.
  static Result<std::vector<std::string>> Segments(const std::string& dir);
  static Result<Segment> Read(const std::string& path);

 private:
  RecordRing(std::string dir, uint64_t bytes_max);
  void Close();
  Status MakeRoom();

  const std::string dir_;
  const uint64_t bytes_max_;
  uint64_t next_ = 1;
  int fd_ = -1;
};

}  // namespace swell
