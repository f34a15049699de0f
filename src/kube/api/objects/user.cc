#include "kube/api/objects/user.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

constexpr size_t kNameBytesMax = 253;
constexpr int64_t kIdMax = 2'147'483'647;
constexpr std::string_view kRunAsForm =
    "expected UID[:GID[,GID...]], for example 1500 or 1500:100,44";

std::vector<std::string> ListOf(std::string_view text) {
  std::vector<std::string> list;
  for (std::string_view word : Split(text, ',')) {
    if (!Trim(word).empty()) list.emplace_back(Trim(word));
  }
  return list;
}

Status Wrong(std::string_view field, std::string_view value, std::string_view why) {
  const std::string message = value.empty() ? std::string(why) : StrCat(Quote(value), ": ", why);
  return Status(Code::kInvalid, StrCat(field, ": ", message),
                {.causes = {{"FieldValueInvalid", std::string(field), message}}});
}

Status CheckName(const std::string& name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@+";
  if (name.empty() || name.size() > kNameBytesMax) {
    return Wrong("name", name, "expected 1 to 253 characters");
  }
  if (name.starts_with("system:")) {
    return Wrong("name", name, "names that begin with system: are reserved");
  }
  if (name.find_first_not_of(kAllowed) != std::string::npos || name.front() == '.' ||
      name.front() == '-') {
    return Wrong("name", name,
                 "expected letters, digits and . - _ @ +, for example alice or alice@example.com");
  }
  return Status::Ok();
}

Status CheckRole(const RegisteredUser& user) {
  constexpr std::string_view kRoles[] = {"admin", "project-admin", "researcher", "viewer"};
  if (std::find(std::begin(kRoles), std::end(kRoles), user.role) == std::end(kRoles)) {
    return Wrong("role", user.role, "expected admin, project-admin, researcher or viewer");
  }
  if (user.role == "admin" && !user.projects.empty()) {
    return Wrong("projects", Join(user.projects, ","),
                 "the role admin is not limited to a project");
  }
  if (user.role != "admin" && user.projects.empty()) {
    return Wrong("projects", "", StrCat("a project is required for the role ", user.role));
  }
  return Status::Ok();
}

}  // namespace

bool IsUserSecret(const json::Value& secret) {
  return json::GetString(secret, {"type"}) == kUserSecretType;
}

RegisteredUser::RegisteredUser(const json::Value& document)
    : secret(Name(document)), uid(Uid(document)), created(CreationTimestamp(document)) {
  auto data = [&document](std::string_view field) {
    return Base64Decode(json::GetString(document, {"data", field})).value_or("");
  };
  name = data("username");
  role = data("role");
  projects = ListOf(data("projects"));
  groups = ListOf(data("groups"));
  run_as = data("runAs");
}

json::Value RegisteredUser::ToSecret() const {
  auto encoded = [](const std::string& text) { return json::Value(Base64Encode(text)); };
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"type", kUserSecretType},
                      {"metadata", json::Object{{"generateName", "swell-user-"},
                                                {"labels", json::Object{{kUserLabel, "user"}}}}},
                      {"data", json::Object{{"username", encoded(name)},
                                            {"role", encoded(role)},
                                            {"projects", encoded(Join(projects, ","))},
                                            {"groups", encoded(Join(groups, ","))},
                                            {"runAs", encoded(run_as)}}}};
}

Status CheckNewUser(const RegisteredUser& user) {
  SWELL_RETURN_IF_ERROR(CheckName(user.name));
  SWELL_RETURN_IF_ERROR(CheckRole(user));
  if (!user.run_as.empty() && !ParseRunAs(user.run_as).ok()) {
    return Wrong("runAs", user.run_as, kRunAsForm);
  }
  for (const std::string& group : user.groups) {
    if (group.starts_with("system:") || group.starts_with("swell:") ||
        group.find(',') != std::string::npos || group.empty()) {
      return Wrong("groups", group,
                   "expected a name without commas that does not begin with system: or swell:");
    }
  }
  return Status::Ok();
}

Result<RunAs> ParseRunAs(std::string_view text) {
  auto number = [](std::string_view word) -> std::optional<int64_t> {
    auto value = ParseInt(Trim(word));
    return value && *value >= 0 && *value <= kIdMax ? value : std::nullopt;
  };
  const size_t colon = text.find(':');
  const auto uid = number(text.substr(0, colon));
  RunAs out{uid.value_or(0), {}};
  bool good = uid.has_value();
  if (colon != std::string_view::npos) {
    for (std::string_view word : Split(text.substr(colon + 1), ',')) {
      const auto gid = number(word);
      good = good && gid;
      out.gids.push_back(gid.value_or(0));
    }
    good = good && !out.gids.empty();
  }
  if (!good) {
    return Status(Code::kInvalid, StrCat(Quote(text), ": ", kRunAsForm));
  }
  if (out.gids.empty()) out.gids.push_back(out.uid);
  return out;
}

}  // namespace swell::api
