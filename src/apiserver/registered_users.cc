#include "apiserver/registered_users.h"

#include "base/strings.h"

namespace swell::apiserver {
namespace {

// An organization has 64 characters at most.
constexpr std::string_view kOrganization = "user:";

std::string Decoded(const json::Value& secret, std::string_view field) {
  return Base64Decode(json::GetString(secret, {"data", field})).value_or("");
}

}  // namespace

std::string UserReference::Organization() const { return StrCat(kOrganization, secret, ":", uid); }

std::optional<UserReference> UserReference::FromOrganization(std::string_view organization) {
  if (!organization.starts_with(kOrganization)) return std::nullopt;
  const auto parts = Split(organization.substr(kOrganization.size()), ':');
  if (parts.size() != 2) return std::nullopt;
  return UserReference{std::string(parts[0]), std::string(parts[1])};
}

Result<api::UserInfo> FindRegisteredUser(const Core& core, const UserReference& reference) {
  const Status unknown(Code::kUnauthorized, "the user has been deleted");
  const auto entry = core.store.Get({"secrets", std::string(kUserNamespace), reference.secret});
  if (!entry || entry->attributes.uid != reference.uid) return unknown;
  const json::SharedValue secret = entry->Parsed();
  if (json::GetString(*secret, {"type"}) != kUserSecretType) return unknown;
  api::UserInfo user;
  user.name = Decoded(*secret, "username");
  if (user.name.empty()) return unknown;
  user.uid = reference.uid;
  const std::string groups = Decoded(*secret, "groups");
  for (std::string_view group : Split(groups, ',')) user.groups.emplace_back(group);
  user.groups.emplace_back(kUsersGroup);
  return user;
}

}  // namespace swell::apiserver
