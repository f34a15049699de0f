#include "cli/no_role.h"

#include <string>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"

namespace swell::cli {
namespace {

constexpr size_t kProjectsAsked = 16;

// The quoted text after the words; empty if the words are not there.
std::string QuotedAfter(std::string_view text, std::string_view words) {
  size_t at = text.find(words);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + words.size());
  if (!text.starts_with('"')) return "";
  return std::string(text.substr(1, text.find('"', 1) - 1));
}

std::string Between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + before.size());
  return std::string(text.substr(0, text.find(after)));
}

}  // namespace

std::optional<bool> HasRole(Api& api, std::string_view ns) {
  const json::Value review = json::Object{
      {"apiVersion", "authorization.k8s.io/v1"},
      {"kind", "SelfSubjectAccessReview"},
      {"spec",
       json::Object{{"resourceAttributes",
                     json::Object{{"verb", "list"}, {"resource", "pods"}, {"namespace", ns}}}}}};
  const auto answer =
      api.Create({"authorization.k8s.io", "v1", "selfsubjectaccessreviews", false}, "", review);
  if (!answer.ok()) return std::nullopt;
  return json::GetBool(**answer, {"status", "allowed"});
}

Status WithRoleHint(Session& session, const Status& status) {
  const std::string& said = status.message();
  const std::string ns = QuotedAfter(said, " in the namespace ");
  const std::string verb = Between(said, "\" cannot ", " resource \"");
  const std::string resource = QuotedAfter(said, " resource ");
  const std::string user = QuotedAfter(said, "User ");
  if (status.code() != Code::kForbidden || ns.empty() || verb.empty() || resource.empty()) {
    return status;
  }
  auto api = session.Server();
  if (!api.ok() || HasRole(**api, ns).value_or(true)) return status;
  std::string text = StrCat("you have no role in namespace ", Quote(ns), ", so you cannot ", verb,
                            " ", resource, " there");
  // Users who may not read projects get no hint at one.
  const auto projects = (*api)->List(client::resources::kProjects, "");
  std::vector<std::string> own;
  std::string owner;
  size_t asked = 0;
  for (const json::SharedValue& project :
       projects.ok() ? *projects : std::vector<json::SharedValue>()) {
    const std::string of_project = api::ProjectSpec(*project).ns;
    if (of_project == ns) owner = api::Name(*project);
    if (of_project.empty() || of_project == ns || ++asked > kProjectsAsked) continue;
    if (HasRole(**api, of_project).value_or(false)) own.push_back(of_project);
  }
  // The command itself reads this namespace, such as kube-system: none but its own words help.
  const bool chosen = ns == session.Namespace();
  if (!chosen && owner.empty()) return status;
  if (!own.empty()) {
    text += StrCat("\n  You have one in ", Join(own, ", "),
                   chosen ? StrCat(": add -n ", own.front()) : "");
  }
  if (!owner.empty() && !user.empty()) {
    text += StrCat("\n  An administrator of the cluster gives you one: swell project edit ", owner,
                   " --member ", user, "=researcher");
  } else if (own.empty()) {
    text += "\n  An administrator of the cluster can give you one, as a member of a project";
  }
  return Status(Code::kForbidden, StrCat(text, "\n  The server said: ", said));
}

}  // namespace swell::cli
