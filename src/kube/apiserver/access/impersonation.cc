// Impersonation: who a request acts as.
//
// A right to act as somebody is given in one of several ways, which are tried in turn. All but the
// last limit what may be done so: `impersonate-on:WAY:VERB` must be allowed of what the request
// asks for, and `impersonate:WAY` of the user. The last one, `impersonate`, allows everything that
// the user may do. A request that none allows gets the answer of the first that fits the user.
// Kubernetes has a further one, for accounts that act as the node of their pod: tokens of this
// server name no node.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kMasters = "system:masters";
constexpr std::string_view kAuthenticated = "system:authenticated";
constexpr std::string_view kUnauthenticated = "system:unauthenticated";
constexpr std::string_view kAnonymous = "system:anonymous";
constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kNodes = "system:nodes";
constexpr std::string_view kAuthentication = "authentication.k8s.io";
// For kMany or more groups or extra values, a right to all of them is tried first.
constexpr size_t kMany = 4;

std::optional<std::string> NodeOf(std::string_view user_name) {
  if (!user_name.starts_with(kNodePrefix)) return std::nullopt;
  std::string name(user_name.substr(kNodePrefix.size()));
  if (!api::CheckDnsSubdomain(name).empty()) return std::nullopt;
  return name;
}

bool HasNameOnly(const api::UserInfo& user) {
  return user.uid.empty() && user.groups.empty() && user.extra.empty();
}

struct Way {
  std::string_view name;  // empty: the one without limits
  bool (*fits)(const api::UserInfo& wanted);
};

constexpr std::array<Way, 4> kWays = {{
    {"arbitrary-node",
     [](const api::UserInfo& wanted) {
       return HasNameOnly(wanted) && NodeOf(wanted.name).has_value();
     }},
    {"serviceaccount",
     [](const api::UserInfo& wanted) {
       return HasNameOnly(wanted) && ParseAccountUser(wanted.name).has_value();
     }},
    {"user-info",
     [](const api::UserInfo& wanted) {
       return !NodeOf(wanted.name) && !ParseAccountUser(wanted.name);
     }},
    {"", [](const api::UserInfo&) { return true; }},
}};

bool IsPathByte(char c) {
  constexpr std::string_view kOthers = "/-._~%!$&'()*+,;=:";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         kOthers.find(c) != std::string_view::npos;
}

// "example.com/path", in small letters.
bool IsExtraKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos || slash + 1 == key.size()) return false;
  return api::CheckDnsSubdomain(key.substr(0, slash)).empty() &&
         std::ranges::all_of(key.substr(slash + 1), IsPathByte);
}

// One request to act as somebody, in one way.
class Attempt {
 public:
  Attempt(const Core& core, const api::UserInfo& by, const api::UserInfo& wanted, const Way& way)
      : core_(core), by_(by), wanted_(wanted), limited_(!way.name.empty()) {
    verb_ = limited_ ? StrCat("impersonate:", way.name) : "impersonate";
  }

  // The user whom the request then has.
  Result<api::UserInfo> Run() const {
    api::UserInfo user = wanted_;
    SWELL_RETURN_IF_ERROR(CheckName(user));
    if (!wanted_.uid.empty()) {
      SWELL_RETURN_IF_ERROR(May(kAuthentication, "uids", wanted_.uid));
    }
    SWELL_RETURN_IF_ERROR(CheckGroups());
    SWELL_RETURN_IF_ERROR(CheckExtra());
    const std::string_view implied = user.name == kAnonymous ? kUnauthenticated : kAuthenticated;
    if (!Contains(user.groups, implied) && !Contains(user.groups, kUnauthenticated)) {
      user.groups.emplace_back(implied);
    }
    return user;
  }

 private:
  Status May(std::string_view group, std::string_view resource, std::string_view name) const {
    return May(group, resource, name, "", "");
  }

  Status May(std::string_view group,
             std::string_view resource,
             std::string_view name,
             std::string_view subresource,
             std::string_view ns) const {
    AccessAttributes one;
    one.verb = verb_;
    one.version = "v1";
    one.group = group;
    one.resource = resource;
    one.subresource = subresource;
    one.ns = ns;
    one.name = name;
    return CheckAccess(core_, by_, one);
  }

  // Users and groups are of this group where the right is limited, else of the core one.
  std::string_view GroupOfUsers() const { return limited_ ? kAuthentication : ""; }

  // Sets the groups that follow from the name.
  Status CheckName(api::UserInfo& user) const {
    if (const auto node = NodeOf(wanted_.name); limited_ && node) {
      user.groups = {std::string(kNodes)};
      return May(kAuthentication, "nodes", *node);
    }
    if (const auto account = ParseAccountUser(wanted_.name)) {
      if (wanted_.groups.empty()) user.groups = AccountGroups(account->ns);
      return May(GroupOfUsers(), "serviceaccounts", account->name, "", account->ns);
    }
    return May(GroupOfUsers(), "users", wanted_.name);
  }

  Status CheckGroups() const {
    const std::vector<std::string>& groups = wanted_.groups;
    for (const std::string& group : groups) {
      if (limited_ && (group.empty() || group == kMasters)) {
        return Status(Code::kForbidden,
                      StrCat("impersonating the group ", Quote(group), " is not allowed"));
      }
    }
    if (limited_ && groups.size() >= kMany && May(GroupOfUsers(), "groups", "*").ok()) {
      return Status::Ok();
    }
    for (const std::string& group : groups) {
      SWELL_RETURN_IF_ERROR(May(GroupOfUsers(), "groups", group));
    }
    return Status::Ok();
  }

  Status CheckExtra() const {
    size_t count = 0;
    for (const auto& [key, values] : wanted_.extra) {
      count += values.size();
      if (limited_ && (!IsExtraKey(key) || Contains(values, ""))) {
        return Status(Code::kForbidden,
                      StrCat("impersonating the extra key ", Quote(key), " is not allowed"));
      }
    }
    if (limited_ && count >= kMany && May(kAuthentication, "userextras", "*", "*", "").ok()) {
      return Status::Ok();
    }
    for (const auto& [key, values] : wanted_.extra) {
      for (const std::string& value : values) {
        SWELL_RETURN_IF_ERROR(May(kAuthentication, "userextras", value, key, ""));
      }
    }
    return Status::Ok();
  }

  const Core& core_;
  const api::UserInfo& by_;
  const api::UserInfo& wanted_;
  bool limited_;
  std::string verb_;
};

Result<api::UserInfo> ActAs(const Core& core,
                            const Call& call,
                            const api::UserInfo& wanted,
                            std::string_view verb,
                            const Way& way) {
  if (!way.name.empty()) {
    AccessAttributes request = AttributesOf(call, verb);
    request.verb = StrCat("impersonate-on:", way.name, ":", verb);
    SWELL_RETURN_IF_ERROR(CheckAccess(core, call.user, request));
  }
  return Attempt(core, call.user, wanted, way).Run();
}

}  // namespace

Status Impersonate(const Core& core, std::string_view verb, Call& call) {
  const api::UserInfo& wanted = call.request.credentials.impersonate;
  if (wanted.name.empty()) {
    if (HasNameOnly(wanted)) return Status::Ok();
    return BadRequestError("requested groups, a uid or extra fields without impersonating a user");
  }
  Status first;
  for (const Way& way : kWays) {
    if (!way.fits(wanted)) continue;
    Result<api::UserInfo> user = ActAs(core, call, wanted, verb, way);
    if (user.ok()) {
      if (!way.name.empty()) call.impersonation = StrCat("impersonate:", way.name);
      call.impersonator = std::exchange(call.user, std::move(*user));
      return Status::Ok();
    }
    if (first.ok()) first = user.status();
  }
  return first;
}

}  // namespace swell::apiserver
