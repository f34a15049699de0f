// Mux: several byte streams carried by one upgraded connection. The subclasses SpdyConnection and
// WebSocketChannels define the wire format.
//
// Backpressure: nothing is read from the wire while more than kDuplexHighWater bytes wait for the
// readers of streams; writers see what the wire has queued. So a stream that is not read holds up
// the others, as it does with Kubernetes' own servers and clients. Answers of the protocol itself
// (pongs, resets) have no writer that could wait: while a peer does not take them, nothing is read
// from it.
//
// - Threads: one executor.
// - Ownership: shared by its streams and, while it runs, by the wire's callbacks. It ends when the
//   wire does, or at Close.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kube/api/rest/duplex.h"

namespace swell::edge {

class Mux : public std::enable_shared_from_this<Mux> {
 public:
  Mux(Executor& executor, api::DuplexPtr wire);
  virtual ~Mux();
  Mux(const Mux&) = delete;
  Mux& operator=(const Mux&) = delete;

  // Begins to read the wire. `gone` runs once when it ends other than by our Close.
  void Begin(std::function<void(const Status&)> gone);
  // Sends what was written, then ends everything.
  void Close();

 protected:
  class Stream;
  friend class Stream;

  api::DuplexPtr AddStream(uint32_t id);
  // To the reader of a stream; of streams that nobody holds any more it is thrown away.
  void Deliver(uint32_t id, std::string_view bytes);
  void DeliverEnd(uint32_t id, const Status& why);
  bool WriteWire(api::Chunk bytes) { return wire_->Write(std::move(bytes)); }

  virtual Status TakeBytes(std::string_view bytes) = 0;
  // What a stream's owner did.
  virtual void SendData(uint32_t id, const api::Chunk& bytes) = 0;
  virtual void SendEnd(uint32_t id) = 0;
  virtual void SendAbandon(uint32_t id) = 0;  // nothing in either direction any more
  virtual void SendGoodbye(const Status& why) = 0;

 private:
  void End(const Status& why);
  void AddBuffered(size_t bytes);
  void RemoveBuffered(size_t bytes);
  void HoldWhileFull();
  void Forget(uint32_t id, const Stream* stream);

  Executor& executor_;
  api::DuplexPtr wire_;
  std::function<void(const Status&)> gone_;
  std::map<uint32_t, std::weak_ptr<Stream>> streams_;
  size_t buffered_ = 0;
  bool held_ = false;  // readers have too much to read
  bool full_ = false;  // the peer has too much to read
  bool over_ = false;
};

}  // namespace swell::edge
