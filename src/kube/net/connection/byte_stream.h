// ByteStream: a connection after an HTTP upgrade, bytes both ways (WebSocket, SPDY, port-forward).
// - Threads: any thread. Callbacks run on the executor given with them, in order.
// - Ownership: destroying the last reference closes the connection after what was written is sent.
//   Executors must outlive the stream.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/status.h"
#include "kube/net/connection/chunk.h"

namespace swell::net {

class ByteStreamState;

class ByteStream {
 public:
  explicit ByteStream(std::shared_ptr<ByteStreamState> state);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Begins reading; call once. `on_data` gets bytes as they come; a slow reader stops the peer
  // after 1 MiB. `on_close` runs once, after the last byte: OK when the peer ended the stream, else
  // why the connection broke. Neither runs after Close.
  void Start(Executor& executor,
             std::function<void(std::string)> on_data,
             std::function<void(Status)> on_close);

  // Off: nothing is read, nor the peer's end seen, until it is on again.
  void SetReading(bool on);
  // False when the stream is over, or when the peer reads so slowly that its buffer would
  // overflow; overflowing closes the stream.
  bool Write(Chunk bytes);
  // Bytes accepted and not yet given to the kernel.
  size_t queued_bytes() const;
  // Runs once, when less than `below` bytes are queued: now, or when the peer has read enough. One
  // at a time: a second call replaces the first.
  void OnDrained(Executor& executor, size_t below, std::function<void()> callback);
  // Sends what was written, then closes.
  void Close();

 private:
  std::shared_ptr<ByteStreamState> state_;
};

}  // namespace swell::net
