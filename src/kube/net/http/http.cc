#include "kube/net/http/http.h"

#include <algorithm>
#include <array>

#include "base/host_port.h"
#include "base/strings.h"

namespace swell::net {
namespace {

char LowerChar(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

constexpr std::array<bool, 256> MakeTokenTable() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = true;
  for (char c : {'!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~'}) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
constexpr auto kToken = MakeTokenTable();

// A JSON string literal. Bytes that are not UTF-8 become '?', so the answer is always valid JSON.
void AppendJsonString(std::string* out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  bool utf8 = IsValidUtf8(text);
  out->push_back('"');
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20) {
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    } else {
      out->push_back(byte >= 0x80 && !utf8 ? '?' : c);
    }
  }
  out->push_back('"');
}

}  // namespace

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return LowerChar(x) == LowerChar(y);
         });
}

const std::string* FindHeader(const Headers& headers, std::string_view name) {
  for (const Header& header : headers) {
    if (EqualsIgnoreCase(header.name, name)) return &header.value;
  }
  return nullptr;
}

bool HeaderHasToken(const Headers& headers, std::string_view name, std::string_view token) {
  for (const Header& header : headers) {
    if (!EqualsIgnoreCase(header.name, name)) continue;
    for (std::string_view part : Split(header.value, ',')) {
      if (EqualsIgnoreCase(Trim(part), token)) return true;
    }
  }
  return false;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return kToken[static_cast<unsigned char>(c)]; });
}

std::string Url::Authority() const {
  if (scheme == "unix") return "localhost";
  std::string out = Bracketed(host);
  bool usual = (scheme == "http" && port == 80) || (scheme == "https" && port == 443);
  if (!usual) out += StrCat(":", static_cast<int>(port));
  return out;
}

Result<Url> ParseUrl(std::string_view text) {
  auto bad = [text](std::string_view why) {
    return Status(Code::kBadRequest, StrCat("URL ", Quote(text), ": ", why));
  };
  Url url;
  size_t colon = text.find("://");
  if (colon == text.npos) return bad("has no scheme such as https://");
  url.scheme = ToLower(text.substr(0, colon));
  std::string_view rest = text.substr(colon + 3);
  for (char c : rest) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return bad("has a blank or a control");
  }
  if (url.scheme == "unix") {
    if (rest.empty() || rest[0] != '/') return bad("needs an absolute path: unix:///run/x.sock");
    url.host = std::string(rest);
    return url;
  }
  if (url.scheme != "http" && url.scheme != "https")
    return bad("scheme is not http, https or unix");
  if (rest.find_first_of("?#@") != rest.npos) return bad("must have no user, query or fragment");

  size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != rest.npos) url.path = std::string(rest.substr(slash));
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  std::string_view port_text;
  if (!authority.empty() && authority[0] == '[') {
    size_t end = authority.find(']');
    if (end == authority.npos) return bad("has '[' without ']'");
    url.host = std::string(authority.substr(1, end - 1));
    authority = authority.substr(end + 1);
    if (!authority.empty() && authority[0] != ':') return bad("has text after ']'");
    if (!authority.empty()) port_text = authority.substr(1);
  } else {
    size_t at = authority.find(':');
    url.host = std::string(authority.substr(0, at));
    if (at != authority.npos) port_text = authority.substr(at + 1);
  }
  if (url.host.empty()) return bad("has no host");
  url.port = url.scheme == "https" ? 443 : 80;
  if (!port_text.empty()) {
    auto port = ParseUint(port_text);
    if (!port || *port == 0 || *port > 65535) return bad("port is not a number from 1 to 65535");
    url.port = static_cast<uint16_t>(*port);
  }
  return url;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Status";
  }
}

HttpResponse StatusResponse(const Status& status, int http_status) {
  HttpResponse response;
  response.status = http_status != 0 ? http_status : HttpStatus(status.code());
  std::string json =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)";
  AppendJsonString(&json, status.message());
  json += ",\"reason\":";
  AppendJsonString(&json, Reason(status.code()));
  json += StrCat(",\"code\":", response.status, "}\n");
  response.headers.push_back({"Content-Type", "application/json"});
  response.body.push_back(MakeChunk(std::move(json)));
  return response;
}

}  // namespace swell::net
