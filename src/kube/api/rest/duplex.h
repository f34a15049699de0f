// DuplexStream: bytes both ways between two parties, as an upgraded connection, a command's
// standard streams or a socket in a pod carries them. What a RestSink's OnUpgrade gives to a
// handler.
//
//   stream->Start({.on_data = …, .on_end = …});
//   stream->Write(MakeChunk("hello"));
//
// Backpressure: a writer looks at queued_bytes() and stops its own source above kDuplexHighWater
// until OnDrained; a reader that cannot take more says SetReading(false). HoldBack does both.
//
// - Threads: one executor; callbacks run on it, never from inside a call.
// - Ownership: shared. Dropping the last reference is Close(). Callbacks may hold the stream
//   itself: they are released when it has ended or is closed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/executor.h"
#include "base/status.h"

namespace swell::api {

using Chunk = std::shared_ptr<const std::string>;

inline constexpr size_t kDuplexHighWater = 512 << 10;

class DuplexStream {
 public:
  struct Callbacks {
    std::function<void(Chunk)> on_data;
    // Once, after the last byte. OK: the peer ended its side; else why the stream broke.
    std::function<void(const Status&)> on_end;
  };

  virtual ~DuplexStream() = default;

  // Begins reading; once.
  virtual void Start(Callbacks callbacks) = 0;
  // Off: what is under way may still come. A stream that is not read does not see its peer's end
  // either.
  virtual void SetReading(bool on) = 0;

  // False when nothing reaches the peer any more.
  virtual bool Write(Chunk bytes) = 0;
  // Written and not yet taken.
  virtual size_t queued_bytes() const = 0;
  // Runs when less than half of kDuplexHighWater is queued; not at all when the stream ends first.
  virtual void OnDrained(std::function<void()> callback) = 0;

  // The peer sees the end after what was written. Reading continues if the transport allows it.
  virtual void CloseWrite() = 0;
  // Sends what was written, then closes both sides. No callback runs any more.
  virtual void Close() = 0;
};
using DuplexPtr = std::shared_ptr<DuplexStream>;

// After a write of `from`'s bytes to `to`: stops reading `from` while `to` has too much to send.
void HoldBack(const DuplexPtr& from, const DuplexPtr& to);

// Carries bytes between two streams until both have ended, or one breaks. Keeps both alive.
void Splice(const DuplexPtr& a, const DuplexPtr& b);

// Two ends of one stream in memory.
std::pair<DuplexPtr, DuplexPtr> MakePipe(Executor& executor);

}  // namespace swell::api
