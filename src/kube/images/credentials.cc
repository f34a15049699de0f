#include "kube/images/credentials.h"

#include <algorithm>

#include "base/strings.h"
#include "json/value.h"
#include "kube/net/tls/sha256.h"

namespace swell::images {
namespace {

constexpr size_t kEntriesMax = 1000;

Status ReadAuth(std::string_view encoded, Credential& to) {
  auto decoded = Base64Decode(encoded);
  const size_t colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos) {
    return Status(Code::kInvalid,
                  StrCat("auths: ", Quote(to.registry), ": auth: must be USER:PASSWORD in base64"));
  }
  to.user = decoded->substr(0, colon);
  to.password = decoded->substr(colon + 1);
  // Docker on Windows pads it.
  while (to.password.ends_with('\0')) to.password.pop_back();
  return Status::Ok();
}

// A registry as secrets write it, in two parts.
struct Target {
  std::string host;
  std::string path;
};

Target TargetOf(std::string_view registry) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (registry.starts_with(scheme)) registry.remove_prefix(scheme.size());
  }
  const size_t slash = registry.find('/');
  Target out{ToLower(registry.substr(0, slash)), ""};
  if (slash != std::string_view::npos) out.path = registry.substr(slash + 1);
  while (out.path.ends_with('/')) out.path.pop_back();
  // The path of Docker's own API is not part of a repository.
  if (out.path == "v1" || out.path == "v2") out.path.clear();
  if (out.host == "index.docker.io" || out.host == "registry-1.docker.io") out.host = "docker.io";
  return out;
}

// `*` stands for any part of one label; ports must be equal.
bool LabelMatches(std::string_view pattern, std::string_view label) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == label;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  return label.size() >= head.size() + tail.size() && label.starts_with(head) &&
         label.ends_with(tail);
}

bool HostMatches(const std::string& pattern, const std::string& host) {
  const std::vector<std::string_view> wanted = Split(pattern, '.'), given = Split(host, '.');
  if (wanted.size() != given.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!LabelMatches(wanted[i], given[i])) return false;
  }
  return true;
}

bool PathMatches(const std::string& prefix, const std::string& path) {
  return prefix.empty() || path == prefix || path.starts_with(prefix + "/");
}

}  // namespace

std::string Credential::Fingerprint() const {
  net::Sha256 hash;
  for (const std::string* part : {&user, &password, &identity_token}) {
    hash.Add(StrCat(part->size(), ":"));
    hash.Add(*part);
  }
  return hash.Hex();
}

Result<std::vector<Credential>> ParseDockerConfig(std::string_view text) {
  auto parsed = json::Parse(text);
  if (!parsed.ok() || !parsed->is_object()) {
    return Status(Code::kInvalid, "it is not a JSON object with \"auths\"");
  }
  std::vector<Credential> out;
  const json::Object& auths = json::GetObject(*parsed, {"auths"});
  if (auths.size() > kEntriesMax) return Status(Code::kInvalid, "auths: more than 1000 entries");
  for (const auto& item : auths) {
    Credential one;
    one.registry = item.key();
    one.user = json::GetString(item.value(), {"username"});
    one.password = json::GetString(item.value(), {"password"});
    one.identity_token = json::GetString(item.value(), {"identitytoken"});
    const std::string_view encoded = json::GetString(item.value(), {"auth"});
    if (one.user.empty() && !encoded.empty()) SWELL_RETURN_IF_ERROR(ReadAuth(encoded, one));
    if (one.user.empty() && one.identity_token.empty()) continue;
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Credential> MatchCredentials(const std::vector<Credential>& all,
                                         const Reference& image) {
  std::vector<std::pair<size_t, Credential>> found;
  for (const Credential& one : all) {
    const Target target = TargetOf(one.registry);
    if (!HostMatches(target.host, ToLower(image.host)) || !PathMatches(target.path, image.path)) {
      continue;
    }
    found.emplace_back(target.path.size(), one);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Credential> out;
  for (auto& [length, one] : found) out.push_back(std::move(one));
  return out;
}

}  // namespace swell::images
