#include "kube/apiserver/access/authn.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/apiserver/access/registered_users.h"

namespace swell::apiserver {
namespace {

// Every byte is looked at, whatever the first difference: no timing tells how much was right.
bool SameBytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

api::UserInfo WithAuthenticatedGroup(api::UserInfo user) {
  constexpr std::string_view kGroup = "system:authenticated";
  if (std::find(user.groups.begin(), user.groups.end(), kGroup) == user.groups.end()) {
    user.groups.emplace_back(kGroup);
  }
  return user;
}

}  // namespace

Result<std::vector<StaticToken>> ParseTokenFile(std::string_view csv) {
  std::vector<StaticToken> tokens;
  size_t number = 0;
  for (std::string_view line : Split(csv, '\n')) {
    ++number;
    line = Trim(line);
    if (line.empty() || line.front() == '#') continue;
    // Fields may be quoted: the groups are one field with commas of its own.
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    if (quoted || fields.size() < 3 || Trim(fields[0]).empty() || Trim(fields[1]).empty()) {
      return Status(Code::kBadRequest, StrCat("token file, line ", number,
                                              ": want token,user,uid[,\"group1,group2\"]"));
    }
    StaticToken token;
    token.token = Trim(fields[0]);
    token.user.name = Trim(fields[1]);
    token.user.uid = Trim(fields[2]);
    for (size_t i = 3; i < fields.size(); ++i) {
      for (std::string_view group : Split(fields[i], ',')) {
        if (!Trim(group).empty()) token.user.groups.emplace_back(Trim(group));
      }
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Result<TokenUser> UserOfToken(Core& core, std::string_view token) {
  for (const StaticToken& known : core.options.tokens) {
    if (!SameBytes(known.token, token)) continue;
    return TokenUser{WithAuthenticatedGroup(known.user), {std::string(kTokenIssuer)}};
  }
  SWELL_ASSIGN_OR_RETURN(TokenUser found, UserOfAccountToken(core, token));
  found.user = WithAuthenticatedGroup(std::move(found.user));
  return found;
}

Result<api::UserInfo> Authenticate(Core& core, const api::RestRequest& request) {
  const auto unauthorized = [] { return Status(Code::kUnauthorized, "Unauthorized"); };
  if (!request.user.name.empty()) return WithAuthenticatedGroup(request.user);
  const api::Credentials& credentials = request.credentials;
  if (!credentials.bearer_token.empty()) {
    auto found = UserOfToken(core, credentials.bearer_token);
    // A token made for somebody else's ears proves nothing here.
    if (!found.ok() || std::find(found->audiences.begin(), found->audiences.end(), kTokenIssuer) ==
                           found->audiences.end()) {
      return unauthorized();
    }
    return std::move(found->user);
  }
  if (!credentials.certificate_common_name.empty()) {
    for (const std::string& organization : credentials.certificate_organizations) {
      const auto reference = UserReference::FromOrganization(organization);
      if (!reference) continue;
      auto found = FindRegisteredUser(core, *reference);
      if (!found.ok()) return unauthorized();
      return WithAuthenticatedGroup(std::move(*found));
    }
    api::UserInfo user;
    user.name = credentials.certificate_common_name;
    user.groups = credentials.certificate_organizations;
    return WithAuthenticatedGroup(std::move(user));
  }
  if (!core.options.anonymous) return unauthorized();
  api::UserInfo user;
  user.name = "system:anonymous";
  user.groups = {"system:unauthenticated"};
  return user;
}

}  // namespace swell::apiserver
