#include "cli/no_role.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/cluster.h"
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

// Whether the user may do that with pods of the namespace. Empty: the server does not answer that.
std::optional<bool> MayWithPods(Api& api, std::string_view verb, std::string_view ns) {
  const json::Value review = json::Object{
      {"apiVersion", "authorization.k8s.io/v1"},
      {"kind", "SelfSubjectAccessReview"},
      {"spec",
       json::Object{{"resourceAttributes",
                     json::Object{{"verb", verb}, {"resource", "pods"}, {"namespace", ns}}}}}};
  const auto answer =
      api.Create({"authorization.k8s.io", "v1", "selfsubjectaccessreviews", false}, "", review);
  if (!answer.ok()) return std::nullopt;
  return json::GetBool(**answer, {"status", "allowed"});
}

// The project of the namespace; "" if there is none, or projects may not be read.
std::string ProjectOf(Api& api, std::string_view ns) {
  const auto projects = api.List(client::resources::kProjects, "");
  if (!projects.ok()) return "";
  for (const json::SharedValue& project : *projects) {
    if (api::ProjectSpec(*project).ns == ns) return std::string(api::Name(*project));
  }
  return "";
}

// What viewers are told. Roles are left out: researchers may not write those either.
Status WithOtherRole(Api& api,
                     const Status& status,
                     const std::string& ns,
                     const std::string& user) {
  const std::string& said = status.message();
  if (said.find("rbac.authorization.k8s.io") != std::string::npos) return status;
  if (MayWithPods(api, "create", ns).value_or(true)) return status;
  const std::string project = ProjectOf(api, ns);
  if (project.empty() || user.empty()) return status;
  return Status(
      Code::kForbidden,
      StrCat("your role in namespace ", Quote(ns),
             " is for reading\n  An administrator of the cluster gives you another: swell "
             "project edit ",
             project, " --member ", user, "=researcher\n  The server said: ", said));
}

// These kinds have no namespace, so no role of a namespace lets people read them.
Status WithClusterRole(Session& session,
                       const Status& status,
                       const std::string& verb,
                       const std::string& resource) {
  constexpr std::string_view kRead[] = {"nodes", "projects", "nodepools", "topologies"};
  const bool known = std::find(std::begin(kRead), std::end(kRead), resource) != std::end(kRead);
  const bool reads = verb == "get" || verb == "list" || verb == "watch";
  const bool everywhere = status.message().find(" at the cluster scope") != std::string::npos;
  auto api = session.Server();
  if (!known || !reads || !everywhere || !api.ok()) return status;
  const auto version = (*api)->CallObject({.method = "GET", .path = "/version"});
  if (!version.ok()) return status;
  const bool own = IsEmbedded(json::GetString(**version, {"gitVersion"}));
  return Status(Code::kForbidden,
                StrCat("you may not read the cluster's ", resource,
                       "\n  An administrator can let all users read them: kubectl create "
                       "clusterrolebinding swell-users --clusterrole=",
                       own ? "cluster-viewer" : "swell-cluster-viewer",
                       " --group=system:authenticated\n  The server said: ", status.message()));
}

}  // namespace

std::optional<bool> HasRole(Api& api, std::string_view ns) { return MayWithPods(api, "list", ns); }

Status WithRoleHint(Session& session, const Status& status) {
  const std::string& said = status.message();
  const std::string ns = QuotedAfter(said, " in the namespace ");
  const std::string verb = Between(said, "\" cannot ", " resource \"");
  const std::string resource = QuotedAfter(said, " resource ");
  const std::string user = QuotedAfter(said, "User ");
  if (status.code() != Code::kForbidden || verb.empty() || resource.empty()) return status;
  if (ns.empty()) return WithClusterRole(session, status, verb, resource);
  auto api = session.Server();
  if (!api.ok()) return status;
  const std::optional<bool> has_role = HasRole(**api, ns);
  if (has_role == true) return WithOtherRole(**api, status, ns, user);
  if (!has_role) return status;
  std::string text = StrCat("you have no role in namespace ", Quote(ns), ", so you cannot ", verb,
                            " ", resource, " there");
  const bool by_project = session.root().name == "runai";
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
    if (!HasRole(**api, of_project).value_or(false)) continue;
    own.push_back(by_project ? std::string(api::Name(*project)) : of_project);
  }
  // The user did not choose this namespace, such as kube-system, and can choose no other.
  const bool chosen = ns == session.Namespace();
  if (!chosen && owner.empty()) return status;
  if (!own.empty()) {
    const std::string flag = by_project ? ": add -p " : chosen ? ": add -n " : "";
    text += StrCat("\n  You have one in ", Join(own, ", "), flag, flag.empty() ? "" : own.front());
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
