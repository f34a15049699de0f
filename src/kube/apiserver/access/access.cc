#include "kube/apiserver/access/access.h"

#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kMasters = "system:masters";
constexpr std::string_view kAnonymous = "system:anonymous";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";
constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kSystemNamespace = "kube-system";

Status Forbidden(const api::UserInfo& user,
                 const AccessAttributes& attributes,
                 const std::string& why) {
  const std::string reason = why.empty() ? "" : StrCat(": ", why);
  if (attributes.resource.empty()) {
    return Status(Code::kForbidden,
                  StrCat("forbidden: User ", Quote(user.name), " cannot ", attributes.verb,
                         " path ", Quote(attributes.path), reason));
  }
  std::string resource = attributes.resource;
  if (!attributes.subresource.empty()) resource += StrCat("/", attributes.subresource);
  StatusDetails details;
  details.name = attributes.name;
  details.group = attributes.group;
  details.kind = attributes.resource;
  const std::string full = attributes.group.empty()
                               ? attributes.resource
                               : StrCat(attributes.resource, ".", attributes.group);
  return Status(Code::kForbidden,
                StrCat(full, attributes.name.empty() ? "" : StrCat(" ", Quote(attributes.name)),
                       " is forbidden: User ", Quote(user.name), " cannot ", attributes.verb,
                       " resource ", Quote(resource), " in API group ", Quote(attributes.group),
                       attributes.ns.empty() ? " at the cluster scope"
                                             : StrCat(" in the namespace ", Quote(attributes.ns)),
                       reason),
                std::move(details));
}

}  // namespace

bool IsMaster(const api::UserInfo& user) { return Contains(user.groups, kMasters); }

bool IsNode(const api::UserInfo& user) { return user.name.starts_with(kNodePrefix); }

bool IsSystem(const api::UserInfo& user) {
  if (IsMaster(user)) return true;
  if (const auto account = ParseAccountUser(user.name)) return account->ns == kSystemNamespace;
  return user.name.starts_with("system:") && !IsNode(user) && user.name != kAnonymous &&
         !user.name.starts_with(kAccountPrefix);
}

AccessDecision Decide(const Core& core,
                      const api::UserInfo& user,
                      const AccessAttributes& attributes) {
  if (IsMaster(user)) return {true, ""};
  return core.Get<AccessControl>().authorizer->Authorize(user, attributes);
}

AccessDecision DecideWithReason(const Core& core,
                                const api::UserInfo& user,
                                const AccessAttributes& attributes) {
  AccessDecision decision = core.Get<AccessControl>().authorizer->Authorize(user, attributes);
  return decision.allowed ? decision : Decide(core, user, attributes);
}

bool MayExceedPodSecurity(const Core& core, const api::UserInfo& user, const std::string& ns) {
  AccessAttributes attributes;
  attributes.verb = "use";
  attributes.group = "swell.dev";
  attributes.version = "*";
  attributes.resource = "podsecuritylevels";
  attributes.ns = ns;
  attributes.name = "privileged";
  return Decide(core, user, attributes).allowed;
}

Status CheckAccess(const Core& core,
                   const api::UserInfo& user,
                   const AccessAttributes& attributes) {
  const AccessDecision decision = Decide(core, user, attributes);
  return decision.allowed ? Status::Ok() : Forbidden(user, attributes, decision.reason);
}

AccessAttributes AttributesOf(const Call& call, std::string_view verb) {
  AccessAttributes attributes;
  attributes.verb = verb;
  const RequestInfo& info = call.info;
  if (!info.is_resource) {
    attributes.path = call.request.path;
    return attributes;
  }
  attributes.group = info.group;
  attributes.version = info.version;
  attributes.resource = info.resource;
  attributes.subresource = info.subresource;
  attributes.ns = info.ns;
  attributes.name = info.name;
  // A list or watch of one name by field selector is a question about that name.
  constexpr std::string_view kByName = "metadata.name=";
  for (std::string_view term : Split(call.query.Get("fieldSelector"), ',')) {
    if (!attributes.name.empty() || (verb != "list" && verb != "watch")) break;
    if (!term.starts_with(kByName)) continue;
    term.remove_prefix(kByName.size());
    attributes.name = term.substr(term.starts_with("=") ? 1 : 0);
  }
  // A namespace is asked about as one within itself: an admin of it may read it.
  if (attributes.group.empty() && attributes.resource == "namespaces") attributes.ns = info.name;
  return attributes;
}

std::optional<AccountName> ParseAccountUser(std::string_view user_name) {
  if (!user_name.starts_with(kAccountPrefix)) return std::nullopt;
  const auto parts = Split(user_name.substr(kAccountPrefix.size()), ':');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return std::nullopt;
  return AccountName{std::string(parts[0]), std::string(parts[1])};
}

std::string AccountUserName(std::string_view ns, std::string_view name) {
  return StrCat(kAccountPrefix, ns, ":", name);
}

std::vector<std::string> AccountGroups(std::string_view ns) {
  return {"system:serviceaccounts", StrCat("system:serviceaccounts:", ns)};
}

}  // namespace swell::apiserver
