// Api: a server asked from a command, one blocking call at a time. The event loop runs until the
// answer is there; waiting for long says so on the terminal; Ctrl-C ends the wait.
// - Threads: the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "kube/client/client.h"

namespace swell::cli {

using Resource = client::Resource;

// Options of a write; empty fields are not sent.
struct WriteOptions {
  bool dry_run = false;  // on the server
  std::string field_manager = "swell";
  std::string field_validation;  // Strict, Warn, Ignore

  std::string Query() const;
};

class Api {
 public:
  Api(CliEnv& env, Connection connection);
  ~Api();

  const Connection& connection() const { return connection_; }

  Result<json::SharedValue> Get(const Resource& resource,
                                std::string_view ns,
                                std::string_view name);
  // Every page. `ns` empty: all namespaces.
  Result<std::vector<json::SharedValue>> List(const Resource& resource,
                                              std::string_view ns,
                                              const client::ListOptions& options = {});
  Result<json::SharedValue> Create(const Resource& resource,
                                   std::string_view ns,
                                   const json::Value& object,
                                   const WriteOptions& options = {});
  Result<json::SharedValue> Patch(const Resource& resource,
                                  std::string_view ns,
                                  std::string_view name,
                                  client::PatchType type,
                                  const json::Value& patch,
                                  const WriteOptions& options = {});
  Result<json::SharedValue> Delete(const Resource& resource,
                                   std::string_view ns,
                                   std::string_view name,
                                   int64_t grace_seconds = -1,
                                   std::string_view propagation = "Background",
                                   bool dry_run = false);

  Result<api::RestResponse> Call(api::RestRequest request);
  Result<json::SharedValue> CallObject(api::RestRequest request);
  // All at once; answers in the order of the requests.
  std::vector<Result<api::RestResponse>> CallAll(std::vector<api::RestRequest> requests);

  // One stream among several that are read together.
  struct StreamRequest {
    api::RestRequest request;
    // False: enough, ends all streams.
    std::function<bool(std::string_view bytes)> on_data;
    std::function<void(const Status&)> on_end;
  };
  // Runs until every stream has ended, a consumer has had enough, `limit` has passed or Ctrl-C.
  // The error of the first stream that failed.
  Status Follow(std::vector<StreamRequest> streams, Duration limit = std::chrono::hours(24 * 365));

  // Lets time pass on the loop; false on Ctrl-C.
  bool Pause(Duration span);
  bool interrupted() const { return env_.loop->interrupted(); }

 private:
  bool Wait(const std::function<bool()>& done);

  CliEnv& env_;
  Connection connection_;
  std::unique_ptr<client::Client> client_;
};

// One line at a time out of chunks of bytes.
class LineSplitter {
 public:
  // Lines longer than this are passed on in pieces.
  static constexpr size_t kLineBytesMax = 16 << 20;
  // False as soon as `line` returns false.
  bool Feed(std::string_view bytes, const std::function<bool(std::string_view)>& line);
  // What stands after the last newline.
  std::string Rest() { return std::move(partial_); }

 private:
  std::string partial_;
};

}  // namespace swell::cli
