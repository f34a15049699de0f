// Events as people read them: when, what, about whom, how often.
// - Threads: values.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "cli/session.h"

namespace swell::cli {

struct EventView {
  WallTime first, last;
  std::string ns;
  std::string type, reason, object_kind, object, object_uid, message;
  int64_t count = 1;
  uint64_t version = 0;  // orders events of the same second

  bool Before(const EventView& other) const {
    return std::tie(last, version) < std::tie(other.last, other.version);
  }

  // "3m", or "10s (x4)".
  std::string LastSeen(WallTime now) const;
};

EventView ViewEvent(const json::Value& event);
// Oldest first. `object_name` empty: all of the namespace.
Result<std::vector<EventView>> ListEvents(Api& api,
                                          std::string_view ns,
                                          std::string_view object_name,
                                          std::string_view object_kind = {},
                                          std::string_view object_uid = {});

}  // namespace swell::cli
