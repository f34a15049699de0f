// TimeZone: how far a place's clocks are from UTC at a time, by the machine's zone files: RFC 8536.
// - Threads: values; Load reads a file.
// - Invariants: the offset stays after the last change that a file has, in 2037 for Debian's files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell {

class TimeZone {
 public:
  // "Europe/Berlin". kNotFound: no such zone is known here.
  static Result<TimeZone> Load(std::string_view name);
  // From the bytes of a zone file; kInvalid for anything else.
  static Result<TimeZone> FromFile(std::string_view bytes);

  int64_t OffsetAt(int64_t unix_seconds) const;  // seconds, east of Greenwich positive

 private:
  struct Change {
    int64_t at = 0, offset = 0;
  };
  std::vector<Change> changes_;  // by time
  int64_t first_ = 0;            // before the first change
};

}  // namespace swell
