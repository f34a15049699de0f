#include "kube/apiserver/access/audit_event.h"

#include "base/host_port.h"
#include "base/strings.h"
#include "json/text_writer.h"
#include "kube/api/meta/meta.h"

namespace swell::apiserver {
namespace {

// The log has a bound, and its oldest events go. A user who is refused everything pushes few of
// them out, as texts are short. Commands of `kubectl exec` are part of the URI, and are kept.
constexpr size_t kFailedTextMax = 512;
constexpr size_t kTextMax = 8192;

std::string Cut(std::string text, const AuditMoment& moment) {
  size_t end = moment.status >= 400 ? kFailedTextMax : kTextMax;
  if (text.size() <= end) return text;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "...TRUNCATED";
}

std::string UriOf(const api::RestRequest& request) {
  if (request.query.empty()) return request.path;
  std::string uri = request.path;
  char separator = '?';
  for (std::string_view part : Split(request.query, '&')) {
    const std::string name = ToLower(part.substr(0, part.find('=')));
    const bool secret = name.find("token") != std::string::npos ||
                        name.find("password") != std::string::npos ||
                        name.find("secret") != std::string::npos;
    uri += separator;
    uri += secret && name != "continue" ? StrCat(name, "=REDACTED") : std::string(part);
    separator = '&';
  }
  return uri;
}

void AppendList(json::TextWriter& out, std::string_view key, const std::vector<std::string>& list) {
  out.Key(key).Open('[');
  for (const std::string& item : list) out.Item(item);
  out.Close(']');
}

void AppendUser(json::TextWriter& out, std::string_view key, const api::UserInfo& user) {
  out.Key(key).Open('{');
  out.Member("username", user.name);
  out.MemberUnlessEmpty("uid", user.uid);
  if (!user.groups.empty()) AppendList(out, "groups", user.groups);
  if (!user.extra.empty()) {
    out.Key("extra").Open('{');
    for (const auto& [name, values] : user.extra) AppendList(out, name, values);
    out.Close('}');
  }
  out.Close('}');
}

void AppendObjectRef(json::TextWriter& out, const Call& call, const AuditMoment& moment) {
  const auto& info = call.info;
  out.Key("objectRef").Open('{');
  out.Member("resource", Cut(info.resource, moment));
  out.MemberUnlessEmpty("namespace", Cut(info.ns, moment));
  out.MemberUnlessEmpty("name", Cut(info.name.empty() ? call.object_name : info.name, moment));
  out.MemberUnlessEmpty("apiGroup", Cut(info.group, moment));
  out.MemberUnlessEmpty("apiVersion", Cut(info.version, moment));
  out.MemberUnlessEmpty("subresource", Cut(info.subresource, moment));
  out.Close('}');
}

void AppendAnswer(json::TextWriter& out, const AuditMoment& moment) {
  out.Key("responseStatus").Open('{');
  out.Key("metadata").Open('{').Close('}');
  out.Number("code", moment.status);
  if (moment.status >= 400) out.Member("status", "Failure");
  out.MemberUnlessEmpty("reason", moment.reason);
  out.Close('}');
}

}  // namespace

std::string AuditLine(const Call& call, const AuditMoment& moment) {
  const bool acting = !call.impersonator.name.empty();
  json::TextWriter out(1024);
  out.Open('{');
  out.Member("kind", "Event");
  out.Member("apiVersion", "audit.k8s.io/v1");
  out.Member("level", "Metadata");
  out.Member("auditID", call.audit_id);
  out.Member("stage", moment.stage);
  out.Member("requestURI", Cut(UriOf(call.request), moment));
  out.Member("verb", call.verb.empty() ? ToLower(call.request.method) : call.verb);
  AppendUser(out, "user", acting ? call.impersonator : call.user);
  if (acting) AppendUser(out, "impersonatedUser", call.user);
  if (!call.impersonation.empty()) {
    out.Key("authenticationMetadata").Open('{');
    out.Member("impersonationConstraint", call.impersonation);
    out.Close('}');
  }
  out.Key("sourceIPs").Open('[');
  out.Item(Unbracketed(WithoutPort(call.request.remote)));
  out.Close(']');
  out.MemberUnlessEmpty("userAgent", Cut(call.request.user_agent, moment));
  if (call.info.is_resource) AppendObjectRef(out, call, moment);
  if (moment.status != 0) AppendAnswer(out, moment);
  out.Member("requestReceivedTimestamp", api::FormatMicroTime(call.received));
  out.Member("stageTimestamp", api::FormatMicroTime(moment.at));
  if (moment.status != 401) {
    out.Key("annotations").Open('{');
    // What admission refuses was allowed by the user's rights.
    const bool forbidden = moment.status == 403 && call.audit_annotations.empty();
    out.Member("authorization.k8s.io/decision", forbidden ? "forbid" : "allow");
    for (const auto& [key, text] : call.audit_annotations) out.Member(key, text);
    out.Close('}');
  }
  out.Close('}');
  return out.Take() + "\n";
}

}  // namespace swell::apiserver
