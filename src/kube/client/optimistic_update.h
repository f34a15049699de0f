// Writing what follows from what was read, by whoever may wait for both: a command. The write says
// which version was looked at, so that it is refused where somebody else wrote in between; then it
// is looked at anew.
// - Threads: that of what it calls.
#pragma once

#include "base/result.h"
#include "json/value.h"

namespace swell::client {

// Of objects that somebody writes all the time: a job that trains tells how far it is.
inline constexpr int kLooksMax = 10;

// The write is of the version that was seen, and refused where there is another by then.
inline void SayVersionSeen(json::Value& write, const json::Value& seen) {
  json::Set(write, {"metadata", "resourceVersion"},
            json::GetString(seen, {"metadata", "resourceVersion"}));
}

// What `write` answers to what `look` has seen; the last one's kConflict when others go on writing.
template <typename Look, typename Write>
auto UpdateWithRetry(Look look, Write write) -> decltype(write(*look())) {
  for (int looks = 1;; ++looks) {
    SWELL_ASSIGN_OR_RETURN(const auto seen, look());
    auto written = write(seen);
    if (written.status().code() != Code::kConflict || looks == kLooksMax) return written;
  }
}

}  // namespace swell::client
