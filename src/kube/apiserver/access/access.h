// Access: whether a user may make a request, and who the user is when a client acts as somebody
// else.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/access/rbac.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// The authorizer, and the tokens that were verified.
struct AccessControl final : CorePart {
  std::shared_ptr<Rbac> rbac;  // null: it is off
  std::shared_ptr<const Authorizer> authorizer;
  // The claims of tokens whose signature was verified: a bounded cache.
  std::map<std::string, json::SharedValue, std::less<>> known_tokens;
};
// Adds it, with the hooks of roles, bindings and projects.
void RegisterAccess(Core& core);

// Members of system:masters may do anything; nobody else is asked about.
bool IsMaster(const api::UserInfo& user);
// Masters, and what acts under a name of the system's own: the scheduler, a controller manager,
// the accounts of kube-system. No nodes, no other accounts.
bool IsSystem(const api::UserInfo& user);
bool IsNode(const api::UserInfo& user);
AccessDecision Decide(const Core& core,
                      const api::UserInfo& user,
                      const AccessAttributes& attributes);
// The same. If a binding allows it to a master, too, the reason names that binding.
AccessDecision DecideWithReason(const Core& core,
                                const api::UserInfo& user,
                                const AccessAttributes& attributes);
// Whether the user may exceed the Pod Security level of the namespace: `use` of
// podsecuritylevels.swell.dev/privileged, which is nothing but a right.
bool MayExceedPodSecurity(const Core& core, const api::UserInfo& user, const std::string& ns);
// kForbidden, as kube-apiserver words it: `pods is forbidden: User "jane" cannot list resource …`.
Status CheckAccess(const Core& core, const api::UserInfo& user, const AccessAttributes& attributes);
// What the request asks for.
AccessAttributes AttributesOf(const Call& call, std::string_view verb);

// Replaces call.user by whom the Impersonate-* headers name, if its user may act as them, or may
// do so for what the request asks for.
Status Impersonate(const Core& core, std::string_view verb, Call& call);

// "system:serviceaccount:NS:NAME" taken apart; nullopt when it is something else.
struct AccountName {
  std::string ns;
  std::string name;
};
std::optional<AccountName> ParseAccountUser(std::string_view user_name);
std::string AccountUserName(std::string_view ns, std::string_view name);
std::vector<std::string> AccountGroups(std::string_view ns);

}  // namespace swell::apiserver
