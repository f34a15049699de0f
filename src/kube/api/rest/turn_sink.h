// TurnSink: an optional interface of a RestSink whose callers take turns. A long answer is made in
// pieces, one a turn, so that a small request does not wait for the whole of another caller's
// answer.
// - Threads: as RestSink.
#pragma once

#include <functional>

namespace swell::api {

class TurnSink {
 public:
  virtual ~TurnSink() = default;
  // Runs `rest` once, later, in front of whatever else this caller waits for; never where the
  // server ends first.
  virtual void InTurn(std::function<void()> rest) = 0;
};

}  // namespace swell::api
