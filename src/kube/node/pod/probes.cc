#include "kube/node/pod/probes.h"

#include <algorithm>
#include <optional>

#include "base/percent.h"
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

// The one of these that a probe or hook has; empty: none.
std::string_view NetActionOf(const json::Value& action) {
  for (std::string_view kind : {"httpGet", "tcpSocket", "grpc"}) {
    if (json::Find(action, {kind}) != nullptr) return kind;
  }
  return "";
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

// As a request may have it: what would end the line is written as clients write it.
std::string UrlPath(std::string_view path) {
  std::string out = path.starts_with('/') ? "" : "/";
  for (const char c : path.substr(0, path.find('#'))) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f) {
      out += c;
    } else {
      AppendPercent(out, c);
    }
  }
  return out;
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
  using Protocol = ProbeSpec::Protocol;
  ProbeSpec spec;
  spec.timeout = timeout;
  const std::string_view source = NetActionOf(action);
  spec.host = json::GetString(action, {source, "host"});
  spec.port = PortOf(container, json::Find(action, {source, "port"})).value_or(0);
  if (source == "grpc") {
    spec.protocol = Protocol::kGrpc;
    spec.service = json::GetString(action, {"grpc", "service"});
  }
  if (source != "httpGet") return spec;
  const bool tls = json::GetString(action, {"httpGet", "scheme"}) == "HTTPS";
  spec.protocol = tls ? Protocol::kHttps : Protocol::kHttp;
  spec.path = UrlPath(json::GetString(action, {"httpGet", "path"}, "/"));
  for (const json::Value& header : json::GetArray(action, {"httpGet", "httpHeaders"})) {
    spec.headers.emplace_back(json::GetString(header, {"name"}),
                              json::GetString(header, {"value"}));
  }
  return spec;
}

Status ProbeRunner::Check(const json::Value& container, const json::Value& probe) {
  if (json::Find(probe, {"exec"}) != nullptr) return Status::Ok();
  const std::string_view kind = NetActionOf(probe);
  if (kind.empty()) {
    return Status(Code::kInvalid, "probe: must name one of exec, httpGet, tcpSocket, grpc");
  }
  if (!PortOf(container, json::Find(probe, {kind, "port"}))) {
    return Status(Code::kInvalid, StrCat(kind, ".port: not a port of the container"));
  }
  for (const json::Value& header : json::GetArray(probe, {"httpGet", "httpHeaders"})) {
    const std::string_view name = json::GetString(header, {"name"});
    if (name.empty() || HasControl(name) || HasControl(json::GetString(header, {"value"}))) {
      return Status(Code::kInvalid, StrCat("httpGet.httpHeaders: ", Quote(name),
                                           ": neither name nor value may have line breaks"));
    }
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
