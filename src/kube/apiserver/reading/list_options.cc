#include "kube/apiserver/reading/list_options.h"

#include <algorithm>

#include "base/strings.h"
#include "json/value.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

Status InvalidListOptions(const api::FieldError& error) {
  return OptionsError("ListOptions", error);
}

Status BadToken(std::string_view why) {
  return BadRequestError(StrCat("invalid continue token: continue key is not valid: ", why));
}

// Where a token is not base64 (URL alphabet, without padding), as Go tells it; nullopt: it is.
std::optional<size_t> FirstBadByte(std::string_view token) {
  for (size_t i = 0; i < token.size(); ++i) {
    const char c = token[i];
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_';
    if (!fine) return i;
  }
  if (token.size() % 4 == 1) return token.size() - 1;
  return std::nullopt;
}

std::optional<std::string> DecodeToken(std::string_view token) {
  std::string text(token);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return Base64Decode(text);
}

std::string EncodeToken(std::string_view bytes) {
  std::string text = Base64Encode(bytes);
  text.erase(text.find_last_not_of('=') + 1);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// {"v":"meta.k8s.io/v1","rv":42,"start":"ns/name"}; rv -1 continues at the newest state.
Status ReadToken(std::string_view token, ListOptions& options) {
  if (token.size() > kMaxTokenBytes) return BadToken("it is too long");
  const auto bad = FirstBadByte(token);
  if (bad) return BadToken(StrCat("illegal base64 data at input byte ", *bad));
  const auto decoded = DecodeToken(token);
  if (!decoded) return BadToken("it is not base64");
  const auto value = json::Parse(*decoded);
  if (!value.ok()) return BadToken(value.status().message());
  if (json::GetString(*value, {"v"}) != "meta.k8s.io/v1") {
    return BadToken(
        StrCat("server does not recognize this encoded version ", json::GetString(*value, {"v"})));
  }
  const std::string_view start = json::GetString(*value, {"start"});
  const size_t slash = start.find('/');
  const int64_t version = json::GetInt(*value, {"rv"});
  if (slash == std::string_view::npos || version == 0 || version < -1) {
    return BadToken("incorrect encoded start resourceVersion");
  }
  options.from_continue = true;
  options.at_version = version < 0 ? 0 : static_cast<uint64_t>(version);
  options.after_ns = start.substr(0, slash);
  options.after_name = std::string(start.substr(slash + 1));
  return Status::Ok();
}

std::string Token(int64_t version, std::string_view ns, std::string_view name) {
  json::Object object;
  object["v"] = "meta.k8s.io/v1";
  object["rv"] = version;
  object["start"] = StrCat(ns, "/", name);
  return EncodeToken(json::Print(json::Value(std::move(object))));
}

}  // namespace

Result<uint64_t> ParseVersion(std::string_view text) {
  if (text.empty()) return uint64_t{0};
  const auto version = ParseUint(text);
  if (version) return *version;
  return Status(Code::kBadRequest,
                StrCat("resourceVersion: Invalid value: ", Quote(text),
                       ": strconv.ParseUint: parsing ", Quote(text), ": invalid syntax"));
}

Result<ListOptions> ListOptions::Parse(const Query& query, uint64_t current) {
  ListOptions options;
  SWELL_ASSIGN_OR_RETURN(const std::optional<int64_t> limit, query.Count("limit"));
  SWELL_RETURN_IF_ERROR(query.Count("timeoutSeconds").status());
  options.limit = static_cast<size_t>(std::max<int64_t>(limit.value_or(0), 0));
  const std::string_view text = query.Get("resourceVersion");
  SWELL_ASSIGN_OR_RETURN(const uint64_t version, ParseVersion(text));
  const std::string_view match = query.Get("resourceVersionMatch");
  const std::string_view token = query.Get("continue");
  if (!match.empty()) {
    if (text.empty()) {
      return InvalidListOptions(
          ForbiddenValue("resourceVersionMatch",
                         "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    if (!token.empty()) {
      return InvalidListOptions(ForbiddenValue(
          "resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"));
    }
    if (match != "Exact" && match != "NotOlderThan") {
      return InvalidListOptions(
          UnsupportedValue("resourceVersionMatch", match, {"Exact", "NotOlderThan", ""}));
    }
    if (match == "Exact" && version == 0) {
      return InvalidListOptions(
          ForbiddenValue("resourceVersionMatch",
                         "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
    }
  }
  if (!token.empty()) {
    if (version != 0) {
      return BadRequestError("specifying resource version is not allowed when using continue");
    }
    SWELL_RETURN_IF_ERROR(ReadToken(token, options));
    return options;
  }
  if (version > current) return TooNewVersionError(version, current);
  if (match == "Exact" || (match.empty() && options.limit > 0 && version != 0)) {
    options.at_version = version;
  }
  return options;
}

std::string MakeContinueToken(uint64_t version, std::string_view ns, std::string_view name) {
  return Token(static_cast<int64_t>(version), ns, name);
}

Status TooNewVersionError(uint64_t requested, uint64_t current) {
  StatusDetails details;
  details.causes.push_back({"ResourceVersionTooLarge", "", "Too large resource version"});
  details.retry_after_s = 1;
  return Status(Code::kTimeout,
                StrCat("Timeout: Too large resource version: ", requested, ", current: ", current),
                std::move(details));
}

Status ExpiredListError(uint64_t version, const Status& why) {
  if (why.code() != Code::kExpired && why.code() != Code::kGone) return why;
  return Status(Code::kExpired,
                StrCat("The resourceVersion for the provided list is too old: ", version));
}

std::string InconsistentToken(const ListOptions& options) {
  return Token(-1, options.after_ns, options.after_name.value_or(""));
}

Status ExpiredContinueError() {
  return Status(
      Code::kExpired,
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter, or use the continue token in this response "
      "to retrieve the remainder of the results. Continuing with the provided token results in an "
      "inconsistent list - objects that were created, modified, or deleted between the time the "
      "first chunk was returned and now may show up in the list.");
}

}  // namespace swell::apiserver
