// GrpcHealth: one question to grpc.health.v1.Health, as bytes of HTTP/2 without encryption.
//
// It knows as much of HTTP/2 as one short call needs. The server's headers are passed over (they
// need its compression): the verdict is in the message, SERVING or not.
//
// - Threads: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/node/runtime/runtime.h"

namespace swell::process {

// All that the client has to say at first. `service` may be empty: the server as a whole.
std::string GrpcHealthRequest(std::string_view authority, std::string_view service);

class GrpcHealthAnswer {
 public:
  // Takes what the server says. The verdict, as soon as it is known.
  std::optional<node::ProbeResult> Add(std::string_view bytes);
  // The server says no more.
  node::ProbeResult End() const;
  // Acknowledgements to send, collected since the last call.
  std::string TakeReply();

 private:
  std::optional<node::ProbeResult> OnFrame(uint8_t type,
                                           uint8_t flags,
                                           uint32_t stream,
                                           std::string_view payload);
  std::optional<node::ProbeResult> OnData(std::string_view data);

  std::string bytes_;
  std::string message_;
  std::string reply_;
  bool spoke_http2_ = false;
};

}  // namespace swell::process
