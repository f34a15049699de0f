#include "kube/api/rest/rest.h"

#include "base/percent.h"
#include "base/strings.h"
#include "kube/api/rest/sink_capabilities.h"

namespace swell::api {
namespace {

Result<std::string> Decode(std::string_view text) {
  const std::optional<std::string> out = QueryDecode(text);
  if (!out) {
    return Status(Code::kBadRequest, StrCat("query: invalid URL escape in ", Quote(text)));
  }
  if (!IsValidUtf8(*out)) {
    return Status(Code::kBadRequest, StrCat("query: not UTF-8: ", Quote(*out)));
  }
  return *out;
}

}  // namespace

std::string RestResponse::BodyString() const {
  size_t size = 0;
  for (const Chunk& chunk : body) size += chunk->size();
  std::string out;
  out.reserve(size);
  for (const Chunk& chunk : body) out += *chunk;
  return out;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): sinks that upgrade keep the headers
DuplexPtr RestSink::OnUpgrade(HeaderList) { return nullptr; }

SinkCapabilities RestSink::capabilities() { return {}; }

Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string_view part : Split(query, '&')) {
    if (part.empty()) continue;
    size_t equals = part.find('=');
    SWELL_ASSIGN_OR_RETURN(std::string key, Decode(part.substr(0, equals)));
    std::string_view raw = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    SWELL_ASSIGN_OR_RETURN(std::string value, Decode(raw));
    pairs.emplace_back(std::move(key), std::move(value));
  }
  return pairs;
}

std::string EscapeQuery(std::string_view text) { return PercentEncode(text); }
std::string EscapePathSegment(std::string_view text) { return PercentEncode(text, "!$&'()*,;=:@"); }

}  // namespace swell::api
