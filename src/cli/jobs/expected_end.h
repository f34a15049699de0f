// ExpectedEnd: when work will have ended, by its time limit or by the estimate of its script.
// CouldStart: when a waiting job could start if other work ends so.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::cli {

struct ExpectedEnd {
  WallTime at;
  bool estimated = false;  // by its script; else its time limit ends it
};
// `pods` end together. nullopt: they have no limit and no estimate, or run on beyond it.
std::optional<ExpectedEnd> ExpectedEndOf(const std::vector<const json::Value*>& pods, WallTime now);

struct CouldStart {
  WallTime at;
  std::vector<std::pair<std::string, ExpectedEnd>> ends;  // that have to be over, by name

  // `grows`: a part of it runs.
  std::string Text(WallTime now, bool grows) const;
  json::Value Json() const;
};

}  // namespace swell::cli
