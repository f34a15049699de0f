#include "apiserver/authn.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kIssuer = "https://kubernetes.default.svc";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";
constexpr size_t kMaxTokenBytes = 16 << 10;

// Every byte is looked at, whatever the first difference: no timing tells how much was right.
bool SameBytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

// Base64 of RFC 4648 section 5, without padding.
std::string Base64Url(std::string_view bytes) {
  std::string text = Base64Encode(bytes);
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

std::optional<std::string> FromBase64Url(std::string_view text) {
  std::string padded(text);
  for (char& c : padded) {
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (padded.size() % 4 != 0) padded += '=';
  return Base64Decode(padded);
}

api::UserInfo AccountUser(std::string_view ns, std::string_view name, std::string_view uid) {
  api::UserInfo user;
  user.name = StrCat(kAccountPrefix, ns, ":", name);
  user.uid = uid;
  user.groups = {"system:serviceaccounts", StrCat("system:serviceaccounts:", ns)};
  return user;
}

// The service account must still be the one the token was made for.
bool AccountExists(Core& core, std::string_view ns, std::string_view name, std::string_view uid) {
  const auto entry = core.store.Get({"serviceaccounts", std::string(ns), std::string(name)});
  return entry && entry->attributes.uid == uid;
}

std::optional<api::UserInfo> UserOfAccountToken(Core& core, std::string_view token) {
  if (!core.options.token_signer || token.size() > kMaxTokenBytes) return std::nullopt;
  const size_t dot = token.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view signed_part = token.substr(0, dot);
  if (!SameBytes(Base64Url(core.options.token_signer(signed_part)), token.substr(dot + 1))) {
    return std::nullopt;
  }
  const size_t first = signed_part.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const auto payload = FromBase64Url(signed_part.substr(first + 1));
  const auto claims = payload ? json::Parse(*payload) : Result<json::Value>(json::Value());
  if (!claims.ok()) return std::nullopt;
  const int64_t now_s = core.clock.Now().unix_ns / 1'000'000'000;
  if (json::GetInt(*claims, {"exp"}) <= now_s) return std::nullopt;
  const std::string_view ns = json::GetString(*claims, {"kubernetes.io", "namespace"});
  const std::string_view name =
      json::GetString(*claims, {"kubernetes.io", "serviceaccount", "name"});
  const std::string_view uid = json::GetString(*claims, {"kubernetes.io", "serviceaccount", "uid"});
  if (!AccountExists(core, ns, name, uid)) return std::nullopt;
  return AccountUser(ns, name, uid);
}

api::UserInfo WithAuthenticatedGroup(api::UserInfo user) {
  const std::string group = "system:authenticated";
  if (std::find(user.groups.begin(), user.groups.end(), group) == user.groups.end()) {
    user.groups.push_back(group);
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

std::optional<api::UserInfo> UserOfToken(Core& core, std::string_view token) {
  for (const StaticToken& known : core.options.tokens) {
    if (SameBytes(known.token, token)) return WithAuthenticatedGroup(known.user);
  }
  auto user = UserOfAccountToken(core, token);
  if (user) user = WithAuthenticatedGroup(std::move(*user));
  return user;
}

Result<api::UserInfo> Authenticate(Core& core, const api::RestRequest& request) {
  const Status unauthorized(Code::kUnauthorized, "Unauthorized");
  if (!request.user.name.empty()) return WithAuthenticatedGroup(request.user);
  const api::Credentials& credentials = request.credentials;
  if (!credentials.bearer_token.empty()) {
    auto user = UserOfToken(core, credentials.bearer_token);
    if (user) return std::move(*user);
    return unauthorized;
  }
  if (!credentials.certificate_common_name.empty()) {
    api::UserInfo user;
    user.name = credentials.certificate_common_name;
    user.groups = credentials.certificate_organizations;
    return WithAuthenticatedGroup(std::move(user));
  }
  if (!core.options.anonymous) return unauthorized;
  api::UserInfo user;
  user.name = "system:anonymous";
  user.groups = {"system:unauthenticated"};
  return user;
}

std::string MakeServiceAccountToken(const Core& core,
                                    std::string_view ns,
                                    std::string_view name,
                                    std::string_view uid,
                                    const std::vector<std::string>& audiences,
                                    WallTime now,
                                    WallTime expires) {
  json::Object account;
  account["name"] = name;
  account["uid"] = uid;
  json::Object where;
  where["namespace"] = ns;
  where["serviceaccount"] = std::move(account);
  json::Array audience;
  for (const std::string& one : audiences) audience.emplace_back(one);
  if (audience.empty()) audience.emplace_back(kIssuer);
  json::Object claims;
  claims["aud"] = std::move(audience);
  claims["exp"] = expires.unix_ns / 1'000'000'000;
  claims["iat"] = now.unix_ns / 1'000'000'000;
  claims["iss"] = kIssuer;
  claims["kubernetes.io"] = std::move(where);
  claims["nbf"] = now.unix_ns / 1'000'000'000;
  claims["sub"] = StrCat(kAccountPrefix, ns, ":", name);
  const std::string body = StrCat(Base64Url(R"({"alg":"HS256","typ":"JWT"})"), ".",
                                  Base64Url(json::Print(json::Value(std::move(claims)))));
  return StrCat(body, ".", Base64Url(core.options.token_signer(body)));
}

}  // namespace swell::apiserver
