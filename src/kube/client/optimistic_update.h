// UpdateWithRetry: reads an object, writes what follows from it, and reads again if another client
// wrote in between. For commands, which may wait for both.
// - Threads: those of the functions that it calls.
#pragma once

#include "base/result.h"
#include "json/value.h"

namespace swell::client {

// Some objects are written all the time: a training job reports its progress.
inline constexpr int kLooksMax = 10;

// The server refuses the write if the object has another version by then.
inline void SayVersionSeen(json::Value& write, const json::Value& seen) {
  json::Set(write, {"metadata", "resourceVersion"},
            json::GetString(seen, {"metadata", "resourceVersion"}));
}

// The answer of `write` to what `look` returned; kConflict if other clients wrote each time.
template <typename Look, typename Write>
auto UpdateWithRetry(Look look, Write write) -> decltype(write(*look())) {
  for (int looks = 1;; ++looks) {
    SWELL_ASSIGN_OR_RETURN(const auto seen, look());
    auto written = write(seen);
    if (written.status().code() != Code::kConflict || looks == kLooksMax) return written;
  }
}

}  // namespace swell::client
