#include "kube/api/rest/rest.h"

#include "base/strings.h"
#include "kube/api/rest/sink_capabilities.h"

namespace swell::api {
namespace {

Result<std::string> Unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] == '%') {
      int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Status(Code::kBadRequest,
                      StrCat("query: invalid URL escape ", Quote(text.substr(i, 3))));
      }
      out += static_cast<char>(high << 4 | low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  if (!IsValidUtf8(out)) return Status(Code::kBadRequest, StrCat("query: not UTF-8: ", Quote(out)));
  return out;
}

std::string Escape(std::string_view text, std::string_view also_plain) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '.' || c == '_' || c == '~' ||
                 also_plain.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
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
    SWELL_ASSIGN_OR_RETURN(std::string key, Unescape(part.substr(0, equals)));
    std::string_view raw = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    SWELL_ASSIGN_OR_RETURN(std::string value, Unescape(raw));
    pairs.emplace_back(std::move(key), std::move(value));
  }
  return pairs;
}

std::string EscapeQuery(std::string_view text) { return Escape(text, ""); }
std::string EscapePathSegment(std::string_view text) { return Escape(text, "!$&'()*,;=:@"); }

}  // namespace swell::api
