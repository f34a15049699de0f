// REST calls as values: what clients send and API servers answer, with no sockets in sight.
//
// RestHandler is the one seam between clients and servers. The embedded API server implements it;
// so does the HTTP client (kube/edge/http), so every component speaks to either server through the
// same type. A node agent's kubelet endpoints are a RestHandler too.
//
// - Threads: a handler and its sinks live on one Executor. A sink is never called from inside
//   Handle() for watches' later events, but may be for immediate answers: callers must allow it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/api/rest/duplex.h"

namespace swell::api {

inline Chunk MakeChunk(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

// The user of a request, as Kubernetes' user.Info. In-process components set `user` themselves;
// requests from the network carry credentials, and the API server authenticates them.
struct UserInfo {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra = {};  // sorted by key
};

struct Credentials {
  std::string bearer_token;
  std::string certificate_common_name;  // of a verified client certificate
  std::vector<std::string> certificate_organizations;
  UserInfo impersonate = {};  // whom the caller asks to act as (Impersonate-*); mostly nobody
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct RestRequest {
  std::string method;        // GET, POST, PUT, PATCH, DELETE
  std::string path;          // /api/v1/namespaces/default/pods
  std::string query;         // raw: watch=1&labelSelector=a%3Db
  std::string accept;        // "" means application/json
  std::string content_type;  // "" means application/json
  std::string body;
  std::string user_agent;
  std::string remote;       // peer address, for the audit log; empty in-process
  Credentials credentials;  // from the network
  UserInfo user;            // trusted when name is set: only in-process callers may set it
  // The headers of a request to upgrade the connection (Upgrade, Sec-WebSocket-*, X-Stream-*), as
  // sent; empty: an ordinary request.
  HeaderList upgrade = {};
  // Goes before others where requests wait for a connection: others wait for what it does.
  bool urgent = false;
};

struct RestResponse {
  int status = 200;
  std::string content_type = "application/json";
  HeaderList headers;
  std::vector<Chunk> body;

  std::string BodyString() const;
};

struct SinkCapabilities;  // sink_capabilities.h
class Binder;             // binder.h

// Receives one call's answer: OnResponse once, or OnStreamStart, OnChunk*, OnStreamEnd, or, when
// the request asked for it, OnUpgrade once.
class RestSink {
 public:
  virtual ~RestSink() = default;
  virtual void OnResponse(RestResponse response) = 0;
  virtual void OnStreamStart(int status, std::string content_type) = 0;
  // False: the receiver is gone or too slow; the server ends the stream.
  virtual bool OnChunk(const Chunk& chunk) = 0;
  // Status says why it ended early; OK is the ordinary end.
  virtual void OnStreamEnd(const Status& why) = 0;
  // The answer is 101 with these headers. The handler gets its end of the connection, which lives
  // on its own from here, whatever becomes of the call. Null: this receiver carries no such
  // streams, and is still to be answered.
  virtual DuplexPtr OnUpgrade(HeaderList headers);
  // None by default.
  virtual SinkCapabilities capabilities();
};

// One call under way. Destroying it cancels the call: the sink is not called any more.
class RestCall {
 public:
  virtual ~RestCall() = default;
};

// What a RestHandler can do beyond answering requests one by one.
struct HandlerCapabilities {
  // Requests take effect in the order in which they are handed over, and each sees those before it:
  // a write that builds on another need not wait for its answer.
  bool in_order = false;
  Binder* binder = nullptr;  // null: each binding is a request of its own
};

class RestHandler {
 public:
  virtual ~RestHandler() = default;
  // May return nullptr when the call is already answered.
  [[nodiscard]] virtual std::unique_ptr<RestCall> Handle(RestRequest request,
                                                         std::shared_ptr<RestSink> sink) = 0;
  virtual HandlerCapabilities capabilities() { return {}; }
};

// Query string helpers. Decoding is strict: a bad escape is kBadRequest.
Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query);
std::string EscapeQuery(std::string_view text);
std::string EscapePathSegment(std::string_view text);

}  // namespace swell::api
