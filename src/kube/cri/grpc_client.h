// GrpcClient: single requests (unary calls) of gRPC to a server behind a Unix socket, any number of
// them under way at a time.
//
// libcurl speaks HTTP/2 (with libnghttp2). A message is a head of five bytes and its content; the
// trailers say how the call ended. The library is opened when the first client is made, as in
// kube/images.
//
// - Threads: Call from any thread; `done` runs on the client's own thread, once, and must be short.
// - Ownership: destroying the client ends the calls under way with kUnavailable.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"

namespace swell::cri {

struct GrpcCall {
  std::string method;   // "runtime.v1.RuntimeService/Version"
  std::string message;  // protobuf
  Duration deadline = std::chrono::minutes(2);
};

// The value of the header grpc-timeout, which has eight digits at most.
std::string GrpcTimeout(Duration deadline);

class GrpcClient {
 public:
  using Done = std::function<void(Result<std::string>)>;

  static Result<std::unique_ptr<GrpcClient>> Create(const std::string& socket);
  ~GrpcClient();

  // An error has the server's own message. Its codes are kNotFound, kAlreadyExists, kTimeout,
  // kUnavailable, kInvalid, kMethodNotAllowed (the server has no such method), or kInternal.
  void Call(GrpcCall call, Done done);
  // `done` runs and ends on the executor, whose Post any thread may call.
  void CallOn(Executor& executor, GrpcCall call, Done done);
  // Waits for the answer.
  Result<std::string> CallAndWait(GrpcCall call);

 private:
  class Worker;
  explicit GrpcClient(std::unique_ptr<Worker> worker);

  std::unique_ptr<Worker> worker_;
};

}  // namespace swell::cri
