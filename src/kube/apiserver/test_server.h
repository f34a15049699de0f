// TestServer: an API server on virtual time and a memory backend, with a small client: strings in,
// JSON out. For tests and benchmarks only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sim_executor.h"
#include "kube/apiserver/api_server.h"
#include "kube/store/backend.h"

namespace swell::apiserver {

// Signs with a hash: enough to tell right from wrong.
class TestTokenKey final : public TokenKey {
 public:
  std::string Sign(std::string_view bytes) const override {
    return "sig" + std::to_string(StableHash(bytes, 77));
  }
  bool Verify(std::string_view bytes, std::string_view signature) const override {
    return Sign(bytes) == signature;
  }
  const json::Value& jwk() const override { return jwk_; }

 private:
  json::Value jwk_ = json::Object{{"kid", "test"}, {"alg", "TEST"}};
};

// Collects what a call answers.
class TestSink final : public api::RestSink {
 public:
  void OnResponse(api::RestResponse response) override {
    ++answers;
    answer = std::move(response);
  }
  void OnStreamStart(int status, std::string content_type) override {
    stream_status = status;
    answer.content_type = std::move(content_type);
  }
  bool OnChunk(const api::Chunk& chunk) override {
    if (accept_chunks == 0) return false;
    --accept_chunks;
    stream += *chunk;
    chunks.push_back(chunk);
    return true;
  }
  void OnStreamEnd(const Status& why) override {
    ++ends;
    end = why;
  }

  int answers = 0;
  int ends = 0;
  int stream_status = 0;
  size_t accept_chunks = SIZE_MAX;  // then it is too slow
  api::RestResponse answer;
  std::string stream;
  std::vector<api::Chunk> chunks;
  Status end;
};

struct Answer {
  int status = 0;
  std::string content_type;
  std::string text;
  json::Value body;
  std::vector<std::string> warnings;

  std::string Message() const { return std::string(json::GetString(body, {"message"})); }
  std::string Reason() const { return std::string(json::GetString(body, {"reason"})); }
  std::string Str(json::Path path) const { return std::string(json::GetString(body, path)); }
};

// A watch under way.
struct TestWatch {
  std::shared_ptr<TestSink> sink;
  std::unique_ptr<api::RestCall> call;
  size_t read = 0;

  // The events since the last time.
  std::vector<json::Value> Take() {
    std::vector<json::Value> events;
    for (size_t end; (end = sink->stream.find('\n', read)) != std::string::npos; read = end + 1) {
      auto event = json::Parse(std::string_view(sink->stream).substr(read, end - read));
      if (event.ok()) events.push_back(std::move(*event));
    }
    return events;
  }
};

class TestServer {
 public:
  explicit TestServer(Options options = {}, store::Options store_options = {}, uint64_t seed = 1)
      : random(seed) {
    store =
        std::move(store::Store::Open(executor, store::MakeMemoryBackend(executor), store_options))
            .value();
    server = ApiServer::Create(executor, executor, random, *store, std::move(options));
  }

  // With the objects every cluster has.
  TestServer& Boot() {
    Status ready(Code::kInternal, "bootstrap did not end");
    server->Bootstrap([&ready](const Status& status) { ready = status; });
    executor.RunPosted();
    boot = ready;
    return *this;
  }

  api::RestRequest Request(std::string method,
                           const std::string& target,
                           std::string body = {},
                           std::string content_type = {},
                           std::string accept = {}) const {
    api::RestRequest request;
    request.method = std::move(method);
    const size_t question = target.find('?');
    request.path = target.substr(0, question);
    if (question != std::string::npos) request.query = target.substr(question + 1);
    request.body = std::move(body);
    request.content_type = std::move(content_type);
    request.accept = std::move(accept);
    request.user_agent = "test/1";
    request.user.name = user;
    request.user.groups = groups;
    return request;
  }

  Answer Send(api::RestRequest request) {
    auto sink = std::make_shared<TestSink>();
    auto call = server->Handle(std::move(request), sink);
    executor.RunPosted();
    Answer answer;
    answer.status = sink->answers == 1 ? sink->answer.status : -sink->answers;
    if (sink->answers == 0 && sink->stream_status != 0) {
      answer.status = sink->stream_status;
      answer.text = sink->stream;
    } else {
      answer.text = sink->answer.BodyString();
    }
    answer.content_type = sink->answer.content_type;
    for (const auto& [key, value] : sink->answer.headers) {
      if (key == "Warning") answer.warnings.push_back(value);
    }
    auto parsed = json::Parse(answer.text);
    if (parsed.ok()) answer.body = std::move(*parsed);
    return answer;
  }

  Answer Get(const std::string& target, std::string accept = {}) {
    return Send(Request("GET", target, {}, {}, std::move(accept)));
  }
  Answer Post(const std::string& target, std::string body, std::string content_type = {}) {
    return Send(Request("POST", target, std::move(body), std::move(content_type)));
  }
  Answer Put(const std::string& target, std::string body) {
    return Send(Request("PUT", target, std::move(body)));
  }
  Answer Merge(const std::string& target, std::string body) {
    return Send(Request("PATCH", target, std::move(body), "application/merge-patch+json"));
  }
  Answer Patch(const std::string& target, std::string body, std::string content_type) {
    return Send(Request("PATCH", target, std::move(body), std::move(content_type)));
  }
  Answer Delete(const std::string& target, std::string body = {}) {
    return Send(Request("DELETE", target, std::move(body)));
  }
  TestWatch Watch(const std::string& target,
                  std::string accept = {},
                  size_t accept_chunks = SIZE_MAX) {
    TestWatch watch;
    watch.sink = std::make_shared<TestSink>();
    watch.sink->accept_chunks = accept_chunks;
    watch.call = server->Handle(Request("GET", target, {}, {}, std::move(accept)), watch.sink);
    executor.RunPosted();
    return watch;
  }

  SimExecutor executor;
  Random random;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<ApiServer> server;
  std::string user = "admin";
  std::vector<std::string> groups;
  Status boot;
};

inline std::string PodJson(const std::string& name,
                           const std::string& more_spec = {},
                           const std::string& labels = "{}") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"(","labels":)" +
         labels + R"(},"spec":{"containers":[{"name":"c","image":"i"}])" +
         (more_spec.empty() ? "" : "," + more_spec) + "}}";
}

inline constexpr char kPods[] = "/api/v1/namespaces/default/pods";
inline constexpr char kMaps[] = "/api/v1/namespaces/default/configmaps";

}  // namespace swell::apiserver
