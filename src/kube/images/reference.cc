#include "kube/images/reference.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::images {
namespace {

constexpr size_t kNameMax = 255;
constexpr size_t kTagMax = 128;
constexpr std::string_view kSha256 = "sha256:";

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

Status Bad(std::string_view text, std::string_view why) {
  return Status(Code::kInvalid, StrCat("image name ", Quote(text), ": ", why));
}

// Words of a-z and 0-9, joined by ".", "_", "__" or any number of "-".
bool IsPathStep(std::string_view step) {
  if (step.empty() || !IsLower(step.front()) || !IsLower(step.back())) return false;
  for (size_t i = 0; i < step.size();) {
    if (IsLower(step[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < step.size() && !IsLower(step[end])) ++end;
    const std::string_view joint = step.substr(i, end - i);
    const bool dashes = joint.find_first_not_of('-') == std::string_view::npos;
    if (joint != "." && joint != "_" && joint != "__" && !dashes) return false;
    i = end;
  }
  return true;
}

bool IsHost(std::string_view host) {
  std::string_view name = host;
  const size_t colon = host.rfind(':');
  const bool v6 = host.starts_with('[');
  if (colon != std::string_view::npos && (!v6 || colon > host.rfind(']'))) {
    auto port = ParseUint(host.substr(colon + 1));
    if (!port || *port == 0 || *port > 65535) return false;
    name = host.substr(0, colon);
  }
  if (v6) {
    return name.size() > 2 && name.ends_with(']') &&
           name.find_first_not_of("[]0123456789abcdefABCDEF:") == std::string_view::npos;
  }
  if (name.empty() || name.front() == '-' || name.front() == '.' || name.ends_with('.')) {
    return false;
  }
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLower(c) || IsUpper(c) || c == '.' || c == '-'; });
}

bool IsTag(std::string_view tag) {
  if (tag.empty() || tag.size() > kTagMax || tag.front() == '.' || tag.front() == '-') return false;
  return std::all_of(tag.begin(), tag.end(), [](char c) {
    return IsLower(c) || IsUpper(c) || c == '_' || c == '.' || c == '-';
  });
}

// Whether the first step of a name is a registry and no part of a path.
bool LooksLikeHost(std::string_view step) {
  return step == "localhost" || step.find_first_of(".:[") != std::string_view::npos ||
         std::any_of(step.begin(), step.end(), IsUpper);
}

Status CheckPath(std::string_view text, std::string_view path) {
  if (path.empty()) return Bad(text, "the name of the repository is missing");
  for (std::string_view step : Split(path, '/')) {
    if (IsPathStep(step)) continue;
    if (step.empty()) return Bad(text, "there is nothing between two slashes");
    if (IsPathStep(ToLower(step))) {
      return Bad(text, StrCat(Quote(step),
                              " has a capital letter; repositories are written with "
                              "small ones"));
    }
    return Bad(text, StrCat(Quote(step),
                            " is not a part of a repository's name: a-z and 0-9, joined by one of "
                            "\".\", \"_\", \"__\", \"-\""));
  }
  return Status::Ok();
}

}  // namespace

std::string_view HostOf(std::string_view url) {
  if (const size_t slashes = url.find("://"); slashes != std::string_view::npos) {
    url.remove_prefix(slashes + 3);
  }
  return url.substr(0, url.find('/'));
}

bool IsDigest(std::string_view text) {
  if (!text.starts_with(kSha256) || text.size() != kSha256.size() + 64) return false;
  text.remove_prefix(kSha256.size());
  return std::all_of(text.begin(), text.end(), IsHex);
}

std::string_view DigestHex(std::string_view digest) { return digest.substr(digest.find(':') + 1); }

std::string Reference::Repository() const { return StrCat(host, "/", path); }

std::string Reference::Name() const {
  return digest.empty() ? StrCat(Repository(), ":", tag) : StrCat(Repository(), "@", digest);
}

Result<Reference> ParseReference(std::string_view text) {
  if (text.empty()) return Bad(text, "it is empty");
  Reference out;
  std::string_view name = text;
  if (const size_t at = name.find('@'); at != std::string_view::npos) {
    out.digest = name.substr(at + 1);
    name = name.substr(0, at);
    if (!IsDigest(out.digest)) {
      return Bad(text,
                 StrCat(Quote(out.digest), " is not a digest: \"sha256:\" and 64 digits 0-9, a-f"));
    }
  }
  const size_t slash = name.rfind('/');
  const size_t colon = name.rfind(':');
  const bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  if (tagged) {
    out.tag = name.substr(colon + 1);
    name = name.substr(0, colon);
    if (!IsTag(out.tag)) {
      return Bad(text, StrCat(Quote(out.tag),
                              " is not a tag: up to 128 letters, digits, \"_\", "
                              "\".\", \"-\", not beginning with \".\" or \"-\""));
    }
  }
  const size_t first = name.find('/');
  if (first != std::string_view::npos && LooksLikeHost(name.substr(0, first))) {
    out.host = name.substr(0, first);
    out.path = name.substr(first + 1);
    if (!IsHost(out.host))
      return Bad(text, StrCat(Quote(out.host), " is not a registry's address"));
  } else {
    out.host = "docker.io";
    out.path = name;
  }
  if (out.host == "index.docker.io") out.host = "docker.io";
  if (out.host == "docker.io" && out.path.find('/') == std::string::npos) {
    if (out.path.size() == 64 && std::all_of(out.path.begin(), out.path.end(), IsHex)) {
      return Bad(text, "64 hexadecimal digits alone name no image; write REPOSITORY@sha256:DIGITS");
    }
    SWELL_RETURN_IF_ERROR(CheckPath(text, out.path));
    out.path.insert(0, "library/");
  }
  SWELL_RETURN_IF_ERROR(CheckPath(text, out.path));
  if (out.Repository().size() > kNameMax) return Bad(text, "it has more than 255 characters");
  if (out.tag.empty() && out.digest.empty()) out.tag = "latest";
  return out;
}

}  // namespace swell::images
