// ScriptedServer: answers some requests as a test says, and leaves the others to a real server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "json/value.h"
#include "kube/api/rest/rest.h"

namespace swell::api {

inline RestResponse Answer(int status, std::string body) {
  RestResponse response;
  response.status = status;
  response.body.push_back(MakeChunk(std::move(body)));
  return response;
}

inline RestResponse Refusal(Code code, std::string_view message = {}) {
  json::Object status{{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"status", "Failure"},
                      {"reason", Reason(code)},
                      {"code", HttpStatus(code)}};
  if (!message.empty()) status["message"] = message;
  return Answer(HttpStatus(code), json::Print(status));
}

class ScriptedServer final : public RestHandler {
 public:
  // nullopt: the server behind answers.
  using Script = std::function<std::optional<RestResponse>(const RestRequest& request)>;

  ScriptedServer(std::shared_ptr<RestHandler> behind, Script script)
      : behind_(std::move(behind)), script_(std::move(script)) {}
  // The server outlives this one.
  ScriptedServer(RestHandler& behind, Script script)
      : ScriptedServer(std::shared_ptr<RestHandler>(std::shared_ptr<void>(), &behind),
                       std::move(script)) {}

  std::unique_ptr<RestCall> Handle(RestRequest request, std::shared_ptr<RestSink> sink) override {
    std::optional<RestResponse> answer = script_(request);
    if (!answer) return behind_->Handle(std::move(request), std::move(sink));
    sink->OnResponse(std::move(*answer));
    return nullptr;
  }
  HandlerCapabilities capabilities() override { return behind_->capabilities(); }

 private:
  std::shared_ptr<RestHandler> behind_;
  Script script_;
};

}  // namespace swell::api
