#include "kube/node/probes.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"

namespace swell::node {
namespace {

// A number, or the name of one of the container's ports.
std::optional<uint16_t> PortOf(const json::Value& container, const json::Value* port) {
  int64_t number = 0;
  if (port != nullptr && port->is_int64()) {
    number = port->get_int64();
  } else if (port != nullptr && port->is_string()) {
    std::string_view text = json::View(port->get_string());
    number = ParseInt(text).value_or(0);
    for (const json::Value& declared : json::GetArray(container, {"ports"})) {
      if (json::GetString(declared, {"name"}) == text) {
        number = json::GetInt(declared, {"containerPort"});
      }
    }
  }
  if (number < 1 || number > 65535) return std::nullopt;
  return static_cast<uint16_t>(number);
}

int Threshold(const json::Value& probe, std::string_view field, int fallback) {
  return static_cast<int>(
      std::clamp<int64_t>(json::GetInt(probe, {field}, fallback), 1, 1'000'000));
}

Duration Seconds(const json::Value& probe,
                 std::string_view field,
                 int64_t fallback,
                 int64_t least) {
  int64_t seconds = json::GetInt(probe, {field}, fallback);
  return std::chrono::seconds(std::clamp<int64_t>(seconds, least, 86'400));
}

}  // namespace

std::string_view ProbeName(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kStartup:
      return "Startup";
    case ProbeKind::kReadiness:
      return "Readiness";
    case ProbeKind::kLiveness:
      return "Liveness";
  }
  return "";
}

ProbeSpec ReadNetAction(const json::Value& container, const json::Value& action, Duration timeout) {
  ProbeSpec spec;
  spec.timeout = timeout;
  spec.http = json::Find(action, {"httpGet"}) != nullptr;
  std::string_view source = spec.http ? "httpGet" : "tcpSocket";
  spec.host = json::GetString(action, {source, "host"});
  spec.port = PortOf(container, json::Find(action, {source, "port"})).value_or(0);
  spec.path = json::GetString(action, {"httpGet", "path"}, "/");
  if (!spec.path.starts_with('/')) spec.path.insert(0, "/");
  for (const json::Value& header : json::GetArray(action, {"httpGet", "httpHeaders"})) {
    spec.headers.emplace_back(json::GetString(header, {"name"}),
                              json::GetString(header, {"value"}));
  }
  return spec;
}

Status ProbeRunner::Check(const json::Value& container, const json::Value& probe) {
  if (json::Find(probe, {"exec"}) != nullptr) return Status::Ok();
  if (json::Find(probe, {"grpc"}) != nullptr) {
    return Status(Code::kInvalid,
                  "grpc probes are not supported by this node; use httpGet, "
                  "tcpSocket or exec");
  }
  std::string_view kind = json::Find(probe, {"httpGet"}) != nullptr ? "httpGet" : "tcpSocket";
  if (json::Find(probe, {kind}) == nullptr) {
    return Status(Code::kInvalid, "probe: must name one of exec, httpGet, tcpSocket");
  }
  if (json::GetString(probe, {kind, "scheme"}) == "HTTPS") {
    return Status(Code::kInvalid, "httpGet.scheme: HTTPS probes are not supported by this node");
  }
  if (!PortOf(container, json::Find(probe, {kind, "port"}))) {
    return Status(Code::kInvalid, StrCat(kind, ".port: not a port of the container"));
  }
  return Status::Ok();
}

ProbeRunner::ProbeRunner(Executor& executor,
                         Runtime& runtime,
                         ProbeKind kind,
                         const json::Value& container,
                         const json::Value& probe,
                         ContainerRef ref,
                         Callbacks callbacks)
    : executor_(executor),
      runtime_(runtime),
      kind_(kind),
      ref_(std::move(ref)),
      callbacks_(std::move(callbacks)),
      initial_delay_(Seconds(probe, "initialDelaySeconds", 0, 0)),
      period_(Seconds(probe, "periodSeconds", 10, 1)),
      success_threshold_(Threshold(probe, "successThreshold", 1)),
      failure_threshold_(Threshold(probe, "failureThreshold", 3)) {
  Duration timeout = Seconds(probe, "timeoutSeconds", 1, 1);
  if (const json::Value* exec = json::Find(probe, {"exec"})) {
    exec_ = true;
    exec_spec_.timeout = timeout;
    for (const json::Value& word : json::GetArray(*exec, {"command"})) {
      if (word.is_string()) exec_spec_.argv.emplace_back(json::View(word.get_string()));
    }
    return;
  }
  net_spec_ = ReadNetAction(container, probe, timeout);
}

void ProbeRunner::Start() {
  timer_.Start(initial_delay_, [this] { Run(); });
}

void ProbeRunner::Run() {
  // The period counts from start to start, as long as the probe itself is shorter than it.
  if (exec_) {
    runtime_.Exec(ref_, exec_spec_, scope_.Wrap([this](Result<ExecResult> result) {
      if (!result.ok()) return OnResult(false, result.status().message());
      if (result->timed_out) return OnResult(false, "command timed out");
      OnResult(result->code == 0, std::string(Trim(result->output)));
    }));
  } else {
    runtime_.Probe(ref_.pod_uid, net_spec_, scope_.Wrap([this](const ProbeResult& result) {
      OnResult(result.ok, result.message);
    }));
  }
}

void ProbeRunner::OnResult(bool ok, const std::string& message) {
  successes_ = ok ? successes_ + 1 : 0;
  failures_ = ok ? 0 : failures_ + 1;
  timer_.Start(period_, [this] { Run(); });
  int verdict = verdict_;
  if (successes_ >= success_threshold_) verdict = 1;
  if (failures_ >= failure_threshold_) verdict = 0;
  bool changed = verdict != verdict_;
  verdict_ = verdict;
  // Either callback may end this probe: they run as copies.
  Callbacks callbacks = callbacks_;
  const CallbackScope::Guard guard = scope_.guard();
  if (!ok) callbacks.on_failure(StrCat(ProbeName(kind_), " probe failed: ", message));
  if (!guard.closed() && changed) callbacks.on_verdict(verdict == 1);
}

}  // namespace swell::node
