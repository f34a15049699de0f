#include "kube/node/kubelet_handler.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/node/usage_report.h"

namespace swell::node {
namespace {

class LogCall final : public api::RestCall {
 public:
  std::unique_ptr<LogStream> stream;
};

class UsageCall final : public api::RestCall {
 public:
  explicit UsageCall(std::shared_ptr<api::RestSink> sink)
      : sink_(std::make_shared<std::shared_ptr<api::RestSink>>(std::move(sink))) {}
  ~UsageCall() override { sink_->reset(); }
  // Holds nothing once the call has ended.
  const std::shared_ptr<std::shared_ptr<api::RestSink>>& sink() const { return sink_; }

 private:
  std::shared_ptr<std::shared_ptr<api::RestSink>> sink_;
};

constexpr int64_t kRestartsMax = 1'000'000'000;

bool IsTrue(std::string_view text) { return text == "true" || text == "1"; }

struct LogQuery {
  LogOptions options;
  bool previous = false;
  std::string pod_uid;             // of the pod that is meant, which may be gone; empty: this one
  std::optional<int64_t> restart;  // of its container; empty: the newest
};

Result<LogQuery> ParseLogQuery(const std::string& query, WallTime now) {
  SWELL_ASSIGN_OR_RETURN(auto pairs, api::ParseQuery(query));
  LogQuery out;
  for (const auto& [name, value] : pairs) {
    std::optional<int64_t> number = ParseInt(value);
    bool needs_number =
        name == "tailLines" || name == "sinceSeconds" || name == "limitBytes" || name == "restart";
    if (needs_number && (!number || *number < 0)) {
      return Status(Code::kBadRequest, StrCat(name, ": Invalid value: ", Quote(value),
                                              ": must be a whole number ≥ 0"));
    }
    if (name == "follow") out.options.follow = IsTrue(value);
    if (name == "timestamps") out.options.timestamps = IsTrue(value);
    if (name == "previous") out.previous = IsTrue(value);
    if (name == "tailLines") out.options.tail_lines = *number;
    if (name == "limitBytes") out.options.limit_bytes = *number;
    if (name == "restart") out.restart = std::min<int64_t>(*number, kRestartsMax);
    if (name == "podUID") out.pod_uid = value;
    if (name == "sinceSeconds") {
      out.options.since = now - std::chrono::seconds(std::min<int64_t>(*number, 4'000'000'000));
    }
    if (name == "sinceTime") {
      out.options.since = api::ParseTime(value);
      if (!out.options.since) {
        return Status(Code::kBadRequest,
                      StrCat("sinceTime: Invalid value: ", Quote(value), ": not an RFC 3339 time"));
      }
    }
  }
  return out;
}

std::unique_ptr<api::RestCall> Refuse(api::RestSink& sink, int http_status, const Status& status) {
  sink.OnResponse(StatusResponse(http_status, status));
  return nullptr;
}

}  // namespace

api::RestResponse StatusResponse(int http_status, const Status& status) {
  json::Value body = json::Object{
      {"kind", "Status"},    {"apiVersion", "v1"},          {"metadata", json::Object()},
      {"status", "Failure"}, {"message", status.message()}, {"reason", Reason(status.code())},
      {"code", http_status}};
  api::RestResponse response;
  response.status = http_status;
  response.body.push_back(api::MakeChunk(json::Print(body)));
  return response;
}

std::unique_ptr<api::RestCall> KubeletHandler::Handle(api::RestRequest request,
                                                      std::shared_ptr<api::RestSink> sink) {
  std::vector<std::string_view> path = Split(request.path, '/');
  if (!path.empty() && path.front().empty()) path.erase(path.begin());
  std::string_view first = path.empty() ? std::string_view() : path.front();
  if (request.method != "GET") {
    return Refuse(*sink, 405,
                  Status(Code::kMethodNotAllowed, StrCat(request.method, " ", request.path,
                                                         ": the node's endpoints are read-only")));
  }
  if (first == "healthz") {
    api::RestResponse response;
    response.content_type = "text/plain";
    response.body.push_back(api::MakeChunk("ok"));
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  if (first == "pods") {
    json::Array items;
    for (json::Value& pod : agent_.Pods()) items.push_back(std::move(pod));
    json::Value list = json::Object{{"kind", "PodList"},
                                    {"apiVersion", "v1"},
                                    {"metadata", json::Object()},
                                    {"items", std::move(items)}};
    api::RestResponse response;
    response.body.push_back(api::MakeChunk(json::Print(list)));
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  if (request.path == "/stats/summary") return Usage(true, std::move(sink));
  if (request.path == "/metrics/resource") return Usage(false, std::move(sink));
  if (first == "containerLogs" && path.size() == 4) return Logs(path, request.query, sink);
  return Refuse(*sink, 404,
                Status(Code::kNotFound, StrCat("the node has no endpoint ", Quote(request.path))));
}

std::unique_ptr<api::RestCall> KubeletHandler::Usage(bool summary,
                                                     std::shared_ptr<api::RestSink> sink) {
  auto call = std::make_unique<UsageCall>(std::move(sink));
  // The handler may be gone by then, the agent not.
  auto answer = [agent = &agent_, summary,
                 held = call->sink()](const std::vector<ContainerUsage>& usage) {
    auto to = std::exchange(*held, nullptr);
    if (!to) return;
    api::RestResponse response;
    response.content_type = summary ? "application/json" : "text/plain; version=0.0.4";
    const WallTime now = agent->clock().Now();
    response.body.push_back(api::MakeChunk(summary ? json::Print(StatsSummary(*agent, usage, now))
                                                   : ResourceMetrics(*agent, usage, now)));
    to->OnResponse(std::move(response));
  };
  agent_.runtime().Usage(agent_.name(), std::move(answer));
  return call;
}

Result<ContainerRef> KubeletHandler::FindLog(const std::string& key,
                                             const std::string& container,
                                             bool previous) const {
  json::SharedValue pod = agent_.FindPod(key);
  if (pod == nullptr) {
    return Status(Code::kNotFound, StrCat("pod ", Quote(key), " is not on node ", agent_.name()));
  }
  if (FindContainer(*pod, container) == nullptr) {
    return Status(Code::kBadRequest,
                  StrCat("container ", container, " is not valid for pod ", api::Name(*pod)));
  }
  std::string uid(api::Uid(*pod));
  int attempt = -1;
  if (const PodWorker* worker = agent_.FindWorker(uid)) {
    attempt = worker->AttemptOf(container);
  } else {
    for (std::string_view list :
         {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
      for (const json::Value& status : json::GetArray(*pod, {"status", list})) {
        if (json::GetString(status, {"name"}) != container) continue;
        attempt = static_cast<int>(json::GetInt(status, {"restartCount"}));
      }
    }
  }
  if (attempt < 0) {
    return Status(Code::kBadRequest,
                  StrCat("container ", Quote(container), " in pod ", Quote(api::Name(*pod)),
                         " is waiting to start: ContainerCreating"));
  }
  if (previous && attempt == 0) {
    return Status(Code::kBadRequest, StrCat("previous terminated container ", Quote(container),
                                            " in pod ", Quote(api::Name(*pod)), " not found"));
  }
  return ContainerRef{uid, container, previous ? attempt - 1 : attempt};
}

std::optional<ContainerRef> KubeletHandler::FindRunning(const std::string& key,
                                                        const std::string& container) const {
  const json::SharedValue pod = agent_.FindPod(key);
  if (pod == nullptr) return std::nullopt;
  std::string uid(api::Uid(*pod));
  const PodWorker* worker = agent_.FindWorker(uid);
  if (worker == nullptr || !worker->IsRunning(container)) return std::nullopt;
  return ContainerRef{std::move(uid), container, worker->AttemptOf(container)};
}

std::unique_ptr<api::RestCall> KubeletHandler::Logs(const std::vector<std::string_view>& path,
                                                    const std::string& query,
                                                    const std::shared_ptr<api::RestSink>& sink) {
  auto parsed = ParseLogQuery(query, agent_.clock().Now());
  if (!parsed.ok()) return Refuse(*sink, 400, parsed.status());
  const std::string key = StrCat(path[1], "/", path[2]);
  const json::SharedValue live = agent_.FindPod(key);
  const bool gone = !parsed->pod_uid.empty() && (!live || api::Uid(*live) != parsed->pod_uid);
  if (gone) parsed->options.kept_of = key;
  auto ref =
      gone ? Result<ContainerRef>(ContainerRef{parsed->pod_uid, std::string(path[3]),
                                               static_cast<int>(parsed->restart.value_or(-1))})
           : FindLog(key, std::string(path[3]), parsed->previous);
  if (!ref.ok()) return Refuse(*sink, HttpStatus(ref.status().code()), ref.status());
  if (!gone && parsed->restart) ref->attempt = static_cast<int>(*parsed->restart);
  auto call = std::make_unique<LogCall>();
  auto started = std::make_shared<bool>(false);
  LogCallbacks callbacks;
  callbacks.on_chunk = [sink, started](const api::Chunk& chunk) {
    if (!std::exchange(*started, true)) sink->OnStreamStart(200, "text/plain");
    return chunk->empty() || sink->OnChunk(chunk);
  };
  callbacks.on_end = [sink, started](const Status& status) {
    if (!*started && !status.ok()) {
      sink->OnResponse(StatusResponse(HttpStatus(status.code()), status));
      return;
    }
    if (!std::exchange(*started, true)) sink->OnStreamStart(200, "text/plain");
    sink->OnStreamEnd(status);
  };
  call->stream = agent_.runtime().ReadLog(*ref, parsed->options, std::move(callbacks));
  return call;
}

}  // namespace swell::node
