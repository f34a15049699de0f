#include "kube/apiserver/audit_query.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/rest/rest.h"

namespace swell::apiserver {
namespace {

Status Wrong(std::string_view name, std::string_view value, std::string_view expected) {
  return Status(Code::kBadRequest, StrCat("audit: ", name, "=", value, ": expected ", expected));
}

Status Read(std::string_view name, const std::string& value, AuditQuery& query) {
  const std::pair<std::string_view, std::string AuditQuery::*> texts[] = {
      {"user", &AuditQuery::user},
      {"verb", &AuditQuery::verb},
      {"resource", &AuditQuery::resource},
      {"namespace", &AuditQuery::ns},
      {"name", &AuditQuery::name}};
  for (const auto& [known, text] : texts) {
    if (name != known) continue;
    query.*text = value;
    return Status::Ok();
  }
  if (name == "refused") {
    if (value != "true" && value != "false") return Wrong(name, value, "true or false");
    query.refused = value == "true";
    return Status::Ok();
  }
  if (name == "limit") {
    const auto limit = ParseUint(value);
    if (!limit || *limit < 1 || *limit > AuditQuery::kLimitMost) {
      return Wrong(name, value, StrCat("1 to ", AuditQuery::kLimitMost));
    }
    query.limit = static_cast<size_t>(*limit);
    return Status::Ok();
  }
  if (name == "since" || name == "until") {
    const auto time = api::ParseTime(value);
    if (!time) return Wrong(name, value, "a time such as 2026-01-31T08:00:00Z");
    (name == "since" ? query.since : query.until) = time;
    return Status::Ok();
  }
  return Status(
      Code::kBadRequest,
      StrCat("audit: unknown parameter ", Quote(name),
             "; the parameters are user, verb, resource, namespace, name, refused, since, until "
             "and limit"));
}

bool Fits(std::string_view wanted, std::string_view found) {
  return wanted.empty() || wanted == found;
}

}  // namespace

Result<AuditQuery> AuditQuery::Parse(std::string_view text) {
  SWELL_ASSIGN_OR_RETURN(const auto pairs, api::ParseQuery(text));
  AuditQuery query;
  for (const auto& [name, value] : pairs) {
    if (!value.empty()) SWELL_RETURN_IF_ERROR(Read(name, value, query));
  }
  return query;
}

bool AuditQuery::Matches(const json::Value& event) const {
  const std::string_view acting = json::GetString(event, {"user", "username"});
  const std::string_view impersonated = json::GetString(event, {"impersonatedUser", "username"});
  if (!Fits(user, acting) && !Fits(user, impersonated)) return false;
  if (!Fits(verb, json::GetString(event, {"verb"})) ||
      !Fits(resource, json::GetString(event, {"objectRef", "resource"})) ||
      !Fits(ns, json::GetString(event, {"objectRef", "namespace"})) ||
      !Fits(name, json::GetString(event, {"objectRef", "name"}))) {
    return false;
  }
  if (refused && json::GetInt(event, {"responseStatus", "code"}) < 400) return false;
  const auto at = AuditTime(event);
  return at && (!since || *at >= *since) && (!until || *at < *until);
}

bool AuditQuery::MayMatch(std::string_view line) const {
  // Names that JSON would escape are left to Matches.
  auto absent = [line](const std::string& word) {
    return !word.empty() && word.find_first_of("\"\\/<>&") == std::string::npos &&
           line.find(word) == std::string_view::npos;
  };
  return !absent(user) && !absent(verb) && !absent(resource) && !absent(ns) && !absent(name);
}

std::optional<WallTime> AuditTime(const json::Value& event) {
  return api::ParseTime(json::GetString(event, {"stageTimestamp"}));
}

}  // namespace swell::apiserver
