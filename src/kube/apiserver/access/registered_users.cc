#include "kube/apiserver/access/registered_users.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/account_tokens.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/print/output.h"

namespace swell::apiserver {
namespace {

// An organization has 64 characters at most.
constexpr std::string_view kOrganization = "user:";

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
  const auto entry =
      core.store.Get({"secrets", std::string(api::kUserNamespace), reference.secret});
  if (!entry || entry->attributes.uid != reference.uid) return unknown;
  const json::SharedValue secret = entry->Parsed();
  if (!api::IsUserSecret(*secret)) return unknown;
  api::RegisteredUser registered(*secret);
  if (registered.name.empty()) return unknown;
  api::UserInfo user;
  user.name = std::move(registered.name);
  user.uid = reference.uid;
  user.groups = std::move(registered.groups);
  user.groups.emplace_back(kUsersGroup);
  return user;
}

namespace {

// Nullopt: no registered user has this name.
std::optional<api::RegisteredUser> FindByName(const Core& core, std::string_view name) {
  // Few secrets of the namespace are users', and the label says which.
  const auto users = core.store.List(
      "secrets", std::string(api::kUserNamespace),
      [](const auto& entry) { return entry.attributes.labels.Find(api::kUserLabel).has_value(); });
  if (!users.ok()) return std::nullopt;
  for (const store::EntryPtr& entry : users->entries) {
    const json::SharedValue secret = entry->Parsed();
    if (!api::IsUserSecret(*secret)) continue;
    api::RegisteredUser user(*secret);
    if (user.name == name) return user;
  }
  return std::nullopt;
}

}  // namespace

std::optional<UserReference> ReferenceOfUser(const Core& core, std::string_view name) {
  const auto user = FindByName(core, name);
  if (!user) return std::nullopt;
  return UserReference{user->secret, user->uid};
}

std::string RunAsOfUser(const Core& core, std::string_view name) {
  const auto user = FindByName(core, name);
  return user ? user->run_as : "";
}

namespace {

Result<json::Value> MakeCredentials(Core& core,
                                    const UserReference& reference,
                                    const json::Value& wanted) {
  SWELL_ASSIGN_OR_RETURN(const api::UserInfo user, FindRegisteredUser(core, reference));
  const int64_t seconds = json::GetInt(wanted, {"expirationSeconds"});
  const int64_t most =
      std::chrono::duration_cast<std::chrono::seconds>(core.options.token_life_max).count();
  if (seconds <= 0 || seconds > most) {
    return Status(Code::kBadRequest, StrCat("expirationSeconds: ", seconds, ": expected 1 to ",
                                            most, "; swell up --token-max-life sets the maximum"));
  }
  if (json::GetBool(wanted, {"certificate"})) {
    if (!core.options.issue_certificate) {
      return Status(Code::kNotFound, "this server issues no certificates");
    }
    SWELL_ASSIGN_OR_RETURN(CertificateAndKey pair,
                           core.options.issue_certificate(user.name, reference.Organization(),
                                                          std::chrono::seconds(seconds)));
    return json::Value(json::Object{{"certificate", pair.certificate}, {"key", pair.key}});
  }
  if (!core.options.token_key) return Status(Code::kNotFound, "this server signs no tokens");
  const int64_t now = core.clock.Now().unix_ns / 1'000'000'000;
  const json::Object claims{
      {"aud", json::Array{json::Value(kTokenIssuer)}},
      {"exp", now + seconds},
      {"iat", now},
      {"nbf", now},
      {"iss", kTokenIssuer},
      {"sub", user.name},
      {kUserClaim, json::Object{{"secret", reference.secret}, {"uid", reference.uid}}}};
  return json::Value(json::Object{{"token", SignToken(*core.options.token_key, claims)}});
}

}  // namespace

bool HandleUserCredentials(Core& core, const CallPtr& call) {
  const auto& path = call->info.segments;
  if (path.size() != 5 || path[0] != "swell" || path[1] != "v1" || path[2] != "users" ||
      path[4] != "credentials") {
    return false;
  }
  const auto wanted = DecodeBody(call->request, core.options.body_limit_bytes);
  if (!wanted.ok()) {
    call->Fail(wanted.status());
    return true;
  }
  const UserReference reference{path[3], std::string(json::GetString(*wanted, {"uid"}))};
  Result<json::Value> made = MakeCredentials(core, reference, *wanted);
  if (!made.ok()) {
    // The caller is authenticated; the user in the path is unknown.
    const Status& why = made.status();
    call->Fail(why.code() == Code::kUnauthorized ? Status(Code::kNotFound, why.message()) : why);
  } else {
    RespondDocument(*call, 201, *made);
  }
  return true;
}

}  // namespace swell::apiserver
