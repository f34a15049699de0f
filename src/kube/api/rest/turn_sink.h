// TurnSink: what a RestSink may be beside, where callers wait for each other: a long answer is made
// in pieces, each when it is its caller's turn again, so that who asks for little never waits for
// the whole of what somebody else asked for.
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
