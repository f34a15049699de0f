// swell audit: who did what in the cluster, and what was refused.
#include <algorithm>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

// "pods/exec train-0", or the path of a request that is about no object.
std::string ObjectOf(const json::Value& event) {
  const std::string_view resource = json::GetString(event, {"objectRef", "resource"});
  if (resource.empty()) return std::string(json::GetString(event, {"requestURI"}));
  std::string object(resource);
  const std::string_view subresource = json::GetString(event, {"objectRef", "subresource"});
  if (!subresource.empty()) object += StrCat("/", subresource);
  const std::string_view name = json::GetString(event, {"objectRef", "name"});
  return name.empty() ? object : StrCat(object, " ", name);
}

// "alice", or "root as alice".
std::string UserOf(const json::Value& event) {
  const std::string user(json::GetString(event, {"user", "username"}));
  const std::string_view as = json::GetString(event, {"impersonatedUser", "username"});
  return as.empty() ? OrDash(user) : StrCat(user, " as ", as);
}

std::string AnswerOf(const json::Value& event) {
  const int64_t code = json::GetInt(event, {"responseStatus", "code"});
  if (code == 0) return "-";
  const std::string_view reason = json::GetString(event, {"responseStatus", "reason"});
  return reason.empty() ? std::to_string(code) : StrCat(code, " ", reason);
}

class AuditAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--user", &user_, "NAME", "requests of this user");
    flags.Text("--verb", &verb_, "VERB", "create, update, patch, delete, get and so on");
    flags.Text("--resource", &resource_, "RESOURCE", "kind of object, for example pods");
    flags.Text("--name", &name_, "NAME", "requests about the object of this name");
    flags.Switch("--refused", &refused_, "only requests that failed or were refused");
    flags.Text("--last", &last_, "DURATION", "requests of the last DURATION, for example 24h");
    flags.Int("--limit", &limit_, "N", "how many at most, 1 to 2000 (default 200)");
    flags.Choice("-o,--output", &output_, "FORMAT", {"json"}, "output format: json");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (limit_ < 1 || limit_ > 2000) {
      return Misuse(StrCat("--limit ", limit_, ": expected 1 to 2000"));
    }
    SWELL_ASSIGN_OR_RETURN(const std::string query, Query(session));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    auto found = api->CallObject({.method = "GET", .path = "/swell/v1/audit", .query = query});
    if (!found.ok()) return Explain(found.status(), api->connection().url);
    if (output_ == "json") {
      session.OutLine(json::PrintPretty(**found));
      return 0;
    }
    Print(session, **found);
    return 0;
  }

 private:
  Result<std::string> Query(Session& session) const {
    std::string resource = resource_;
    if (!resource.empty()) {  // po, pod and pods are one
      SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
      SWELL_ASSIGN_OR_RETURN(const Kind kind, kinds->Find(resource));
      resource = kind.resource.plural;
    }
    std::string since;
    if (!last_.empty()) {
      SWELL_ASSIGN_OR_RETURN(const Duration last, ParseDuration(last_, "--last"));
      since = api::FormatTime(session.Now() - last);
    }
    std::string query = StrCat("limit=", limit_, refused_ ? "&refused=true" : "");
    const std::pair<const char*, const std::string&> texts[] = {
        {"user", user_},        {"verb", verb_},
        {"resource", resource}, {"namespace", session.global().ns},
        {"name", name_},        {"since", since}};
    for (const auto& [key, value] : texts) {
      if (!value.empty()) query += StrCat("&", key, "=", api::EscapeQuery(value));
    }
    return query;
  }

  // Oldest first, as other commands print what happened.
  void Print(Session& session, const json::Value& found) const {
    const json::Array& events = json::GetArray(found, {"items"});
    if (events.empty()) {
      session.ErrLine("No requests in the audit log match.");
      return;
    }
    TextTable table({"AGE", "USER", "VERB", "OBJECT", "NAMESPACE", "ANSWER", "FROM"});
    for (size_t i = events.size(); i-- > 0;) {
      const json::Value& event = events[i];
      const json::Array& addresses = json::GetArray(event, {"sourceIPs"});
      const std::string answer = AnswerOf(event);
      const bool failed = json::GetInt(event, {"responseStatus", "code"}) >= 400;
      table.Add({AgeOf(json::GetString(event, {"stageTimestamp"}), session.Now()), UserOf(event),
                 std::string(json::GetString(event, {"verb"})), ObjectOf(event),
                 OrDash(std::string(json::GetString(event, {"objectRef", "namespace"}))),
                 failed ? session.Paint(Colour::kYellow, answer) : answer,
                 addresses.empty() || !addresses[0].is_string()
                     ? "-"
                     : OrDash(std::string(addresses[0].get_string()))});
    }
    session.Out(table.ToString());
    if (json::GetBool(found, {"more"})) {
      session.ErrLine(
          "There may be older requests that match: use --last, other flags or a higher --limit.");
    }
  }

  static Status Explain(const Status& status, const std::string& url) {
    if (status.code() == Code::kForbidden) {
      return status.WithContext("the audit log is for administrators to read");
    }
    if (status.code() != Code::kNotFound && status.code() != Code::kMethodNotAllowed) return status;
    return Status(Code::kNotFound,
                  StrCat("the cluster at ", url,
                         " has no audit log that can be asked: it was started with swell up "
                         "--audit none, or it is Kubernetes, where kube-apiserver writes it"));
  }

  std::string user_, verb_, resource_, name_, last_, output_;
  bool refused_ = false;
  int64_t limit_ = 200;
};

}  // namespace

Command AuditCommandSpec() {
  return {
      .name = "audit",
      .group = "Cluster",
      .summary = "Show who changed what in the embedded cluster, and what was refused.",
      .examples = {{"The deletion of a job", "swell audit --verb delete --name mnist"},
                   {"What a user was refused today",
                    "swell audit --user alice --refused --last 24h"}},
      .notes =
          "Administrators only. All namespaces, unless --namespace names one. swell up --audit "
          "sets what is logged.",
      .make = Makes<AuditAction>(),
  };
}

}  // namespace swell::cli
