// PacedSink: what a RestSink may be beside, where its receiver reads at a pace of its own: of what
// is there at once and may be much (the state that a watch begins with, what has happened since it
// broke off, a long list), each piece is sent when there is room for it.
// - Threads: as RestSink.
#pragma once

#include <functional>

#include "kube/api/rest/rest.h"

namespace swell::api {

class PacedSink {
 public:
  virtual ~PacedSink() = default;
  // The head of an answer that is long: OnChunk and OnStreamEnd bring its body.
  virtual void OnLongResponse(RestResponse head) = 0;
  // Whether any one chunk will be taken now.
  virtual bool HasRoom() const = 0;
  // Runs `go_on` once, later, when there is room; never where the receiver goes away first.
  virtual void WhenRoom(std::function<void()> go_on) = 0;
};

}  // namespace swell::api
