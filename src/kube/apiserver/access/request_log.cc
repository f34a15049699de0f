#include "kube/apiserver/access/request_log.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/audit_event.h"

namespace swell::apiserver {
namespace {

const std::vector<double>& SizeBounds() {
  static const std::vector<double> bounds{1e3, 1e4, 1e5, 1e6};
  return bounds;
}

bool IsWrite(std::string_view verb) {
  return verb != "get" && verb != "list" && verb != "watch" && verb != "head" && verb != "options";
}

// The verb's name in Kubernetes' metrics. An unknown method adds no series.
std::string_view MetricVerb(const Call& call) {
  constexpr std::pair<std::string_view, std::string_view> kVerbs[] = {
      {"get", "GET"},       {"list", "LIST"},      {"watch", "WATCH"},
      {"create", "POST"},   {"update", "PUT"},     {"patch", "PATCH"},
      {"delete", "DELETE"}, {"head", "HEAD"},      {"deletecollection", "DELETECOLLECTION"},
      {"post", "POST"},     {"options", "OPTIONS"}};
  const std::string_view sub = call.info.subresource;
  if (sub == "exec" || sub == "attach" || sub == "portforward" || sub == "proxy") return "CONNECT";
  const std::string_view called = call.verb;
  if (called == "patch" && call.request.content_type.starts_with("application/apply-patch")) {
    return "APPLY";
  }
  for (const auto& [verb, name] : kVerbs) {
    if (verb == called) return name;
  }
  return "other";
}

std::string_view ScopeOf(const Call& call) {
  if (!call.kind) return "";
  if (!call.info.name.empty()) return "resource";
  return call.info.ns.empty() ? "cluster" : "namespace";
}

// The label of a path that is not a resource; a fixed set, so that series are bounded.
std::string PathLabel(const Call& call) {
  if (call.info.is_resource || call.info.segments.empty()) return "";
  for (const char* known :
       {"api", "apis", "healthz", "livez", "metrics", "openapi", "readyz", "version"}) {
    if (call.info.segments[0] == known) return StrCat("/", known);
  }
  return "";
}

bool IsStreaming(std::string_view verb) { return verb == "CONNECT" || verb == "WATCH"; }

}  // namespace

RequestLog::RequestLog(const Clock& clock, Random& random, const Options& options)
    : clock_(clock),
      random_(random),
      audit_(options.audit),
      level_(options.audit ? options.audit_level : AuditLevel::kNone),
      problem_(options.audit_required ? options.audit_problem : nullptr),
      requests_({"apiserver_request_total",
                 MetricType::kCounter,
                 "Requests by verb, resource and response code.",
                 {"verb", "group", "version", "resource", "subresource", "scope", "code"}},
                0),
      durations_({"apiserver_request_duration_seconds",
                  MetricType::kHistogram,
                  "Duration of requests in seconds, without streams.",
                  {"verb", "group", "version", "resource", "subresource", "scope"}},
                 LatencyBounds()),
      sizes_({"apiserver_request_body_size_bytes",
              MetricType::kHistogram,
              "Size of request bodies in bytes.",
              {"verb", "resource"}},
             SizeBounds()),
      registered_(RegisterMetrics(options.metrics, [this](MetricPage& page) { Collect(page); })) {}

void RequestLog::Collect(MetricPage& page) const {
  page.Add(requests_);
  page.Add(durations_);
  page.Add(sizes_);
  const MetricFamily inflight{"apiserver_current_inflight_requests",
                              MetricType::kGauge,
                              "Requests being served now, without streams.",
                              {"request_kind"}};
  page.Add(inflight, {"readOnly"}, static_cast<double>(reading_));
  page.Add(inflight, {"mutating"}, static_cast<double>(writing_));
  page.Add({"apiserver_current_streams", MetricType::kGauge,
            "Open streams: watches, logs, exec sessions and forwarded ports."},
           static_cast<double>(streaming_));
}

void RequestLog::Received(Call& call) {
  call.received = clock_.Now();
  call.began = clock_.Steady();
}

void RequestLog::Routed(Call& call, std::string verb) {
  call.verb = std::move(verb);
  const bool streaming = IsStreaming(MetricVerb(call));
  call.counted = streaming ? &streaming_ : IsWrite(call.verb) ? &writing_ : &reading_;
  ++*call.counted;
}

// Nodes are served all the same: without their reports all pods would count as lost. A refusal
// (503) is recorded, too, so each refused request tries the log again.
Status RequestLog::Admit(const Call& call) const {
  constexpr int kAnyGoodStatus = 200;
  if (!problem_ || IsNode(call.user) || !Audited(call, kAnyGoodStatus)) return Status::Ok();
  const std::string problem = problem_();
  if (problem.empty()) return Status::Ok();
  StatusDetails details;
  details.retry_after_s = 1;
  return Status(Code::kUnavailable,
                StrCat("the audit log cannot be written, and this cluster serves nothing that it "
                       "cannot record (--audit-required): ",
                       problem),
                std::move(details));
}

void RequestLog::Count(const Call& call, int status) {
  const std::string code = std::to_string(status);
  const std::string path = PathLabel(call);
  const bool known = call.kind != nullptr;
  const std::string_view none;
  const std::string_view verb = MetricVerb(call);
  const std::string_view group = known ? std::string_view(call.info.group) : none;
  const std::string_view version = known ? std::string_view(call.info.version) : none;
  const std::string_view resource = known ? std::string_view(call.info.resource) : none;
  const std::string_view sub = known ? std::string_view(call.info.subresource) : path;
  const std::string_view scope = ScopeOf(call);
  ++requests_.At({verb, group, version, resource, sub, scope, code});
  if (IsStreaming(verb)) return;
  const Duration took = clock_.Steady() - call.began;
  durations_.At({verb, group, version, resource, sub, scope})
      .Observe(std::chrono::duration<double>(took).count());
  if (!call.request.body.empty()) {
    sizes_.At({verb, resource}).Observe(static_cast<double>(call.request.body.size()));
  }
}

bool RequestLog::Audited(const Call& call, int status) const {
  // A caller in this process is Swell itself.
  if (level_ == AuditLevel::kNone || !call.request.user.name.empty()) return false;
  if (level_ == AuditLevel::kAll) return true;
  if (status == 401 || status == 403) return true;
  // An access review changes nothing.
  if (call.kind && call.kind->read_only) return false;
  // Users' credentials and backups are not resources.
  if (!call.info.is_resource) return call.verb == "post";
  if (IsWrite(call.verb) || MetricVerb(call) == "CONNECT") return true;
  return call.info.group.empty() && call.info.resource == "secrets";
}

void RequestLog::Audit(Call& call, std::string_view stage, int status, std::string_view reason) {
  if (!Audited(call, status)) return;
  if (call.audit_id.empty()) call.audit_id = random_.Uuid();
  audit_(AuditLine(call, {stage, status, reason, clock_.Now()}));
}

void RequestLog::Leave(Call& call) {
  if (call.counted == nullptr) return;
  --*call.counted;
  call.counted = nullptr;
}

void RequestLog::Answered(Call& call, int status, std::string_view reason) {
  Leave(call);
  Count(call, status);
  Audit(call, "ResponseComplete", status, reason);
}

void RequestLog::StreamStarted(Call& call, int status) {
  call.stream_status = status;
  Count(call, status);
  Audit(call, "ResponseStarted", status, {});
}

void RequestLog::Ended(Call& call) {
  Leave(call);
  Audit(call, "ResponseComplete", call.stream_status, {});
}

}  // namespace swell::apiserver
