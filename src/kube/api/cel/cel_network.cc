// CEL's addresses, their ranges, and URLs.
#include <arpa/inet.h>

#include <algorithm>
#include <map>

#include "base/percent.h"
#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"

namespace swell::api {
namespace {

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }

// --- Addresses -----------------------------------------------------------------------------------

// ::ffff:10.0.0.1 is 10.0.0.1 once more: Kubernetes takes one way to write an address.
bool IsMapped(const Cidr& address) {
  return address.v6 && address.bytes[10] == 0xFF && address.bytes[11] == 0xFF &&
         std::all_of(address.bytes.begin(), address.bytes.begin() + 10,
                     [](unsigned char byte) { return byte == 0; });
}

std::optional<Cidr> ParseRange(std::string_view text) {
  // ParseCidr takes "/08", and Kubernetes does not.
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos && text.size() > slash + 2 && text[slash + 1] == '0') {
    return std::nullopt;
  }
  std::optional<Cidr> range = ParseCidr(text);
  return range && !IsMapped(*range) ? range : std::nullopt;
}

std::optional<Cidr> ParseAddress(std::string_view text) {
  if (text.find('/') != std::string_view::npos) return std::nullopt;
  return ParseRange(StrCat(text, text.find(':') == std::string_view::npos ? "/32" : "/128"));
}

std::string AddressText(const Cidr& address) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(address.v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof(text));
  return text;
}

bool StartsWith(const Cidr& address, std::string_view range) {
  return ParseCidr(range)->Contains(address);
}

bool IsOf(std::string_view kind, const Cidr& address) {
  if (kind == "isUnspecified") {
    return StartsWith(address, address.v6 ? "::/128" : "0.0.0.0/32");
  }
  if (kind == "isLoopback") return StartsWith(address, address.v6 ? "::1/128" : "127.0.0.0/8");
  if (kind == "isLinkLocalMulticast") {
    return address.v6 ? address.bytes[0] == 0xFF && (address.bytes[1] & 0x0F) == 2
                      : StartsWith(address, "224.0.0.0/24");
  }
  if (kind == "isLinkLocalUnicast") {
    return StartsWith(address, address.v6 ? "fe80::/10" : "169.254.0.0/16");
  }
  // isGlobalUnicast: what is nothing else, private addresses included.
  return !IsOf("isUnspecified", address) && !IsOf("isLoopback", address) &&
         !IsOf("isLinkLocalUnicast", address) &&
         !StartsWith(address, address.v6 ? "ff00::/8" : "224.0.0.0/4") &&
         !(!address.v6 && StartsWith(address, "255.255.255.255/32"));
}

Status NoAddress(std::string_view text) {
  return Status(Code::kInvalid,
                StrCat("IP Address ", Quote(text), " parse error during conversion from string"));
}

Status NoRange(std::string_view text) {
  return Status(Code::kInvalid,
                StrCat("network address parse error during conversion from string: ", Quote(text)));
}

// ip(), isIP(), cidr(), …: of a text.
Result<CelValue> OfText(std::string_view name, const std::string& text) {
  const std::optional<Cidr> address = ParseAddress(text);
  const std::optional<Cidr> range = ParseRange(text);
  if (name == "isIP") return CelValue{address.has_value()};
  if (name == "isCIDR") return CelValue{range.has_value()};
  if (name == "cidr") return range ? Result<CelValue>(CelOf(CelRange{*range})) : NoRange(text);
  if (!address) return NoAddress(text);
  if (name == "ip.isCanonical") return CelValue{AddressText(*address) == text};
  return CelOf(CelAddress{*address});
}

Result<CelValue> OfRange(std::string_view name, const Cidr& range, const CelValue* other) {
  const int most = range.v6 ? 128 : 32;
  if (name == "prefixLength") return CelValue{int64_t{range.bits}};
  if (name == "ip") {
    Cidr host = range;
    host.bits = most;
    return CelOf(CelAddress{host});
  }
  if (name == "masked") {
    Cidr masked = range;
    for (int i = range.bits; i < most; ++i) {
      masked.bytes[i / 8] &= static_cast<unsigned char>(~(0x80 >> (i % 8)));
    }
    return CelOf(CelRange{masked});
  }
  if (other == nullptr) return NoOverload();
  const auto* text = std::get_if<std::string>(&other->data);
  std::optional<Cidr> inner;
  if (name == "containsIP") {
    if (const auto* address = CelAs<CelAddress>(*other)) inner = address->host;
    if (text != nullptr && !(inner = ParseAddress(*text))) return NoAddress(*text);
  } else {
    if (const auto* given = CelAs<CelRange>(*other)) inner = given->range;
    if (text != nullptr && !(inner = ParseRange(*text))) return NoRange(*text);
  }
  if (!inner) return NoOverload();
  return CelValue{range.bits <= inner->bits && range.Contains(*inner)};
}

// --- URLs ----------------------------------------------------------------------------------------

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string EscapedPath(const std::string& path) {
  constexpr std::string_view kFree = "-_.~!$&'()*+,;=:@/[]%";
  constexpr std::string_view kKept = "-_.~$&+,/:;=@";
  const auto is = [](std::string_view set) {
    return [set](char c) { return IsAlnum(c) || set.find(c) != std::string_view::npos; };
  };
  if (std::all_of(path.begin(), path.end(), is(kFree))) return path;
  std::string out;
  for (const char c : PercentDecode(path).value_or(path)) {
    if (is(kKept)(c)) {
      out += c;
    } else {
      AppendPercent(out, c);
    }
  }
  return out;
}

// Where the port of a host begins, at its colon; npos: it has none.
size_t PortAt(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  const bool inside =
      bracket != std::string_view::npos && colon != std::string_view::npos && colon < bracket;
  return inside ? std::string_view::npos : colon;
}

bool IsHost(std::string_view host) {
  constexpr std::string_view kWrong = " \\^`{|}#/?@";
  if (host.find_first_of(kWrong) != std::string_view::npos) return false;
  if (host.starts_with('[') != (host.find(']') != std::string_view::npos)) return false;
  const size_t port = PortAt(host);
  const std::string_view behind = port == std::string_view::npos ? "" : host.substr(port + 1);
  const size_t bracket = host.find(']');
  if (bracket != std::string_view::npos && bracket + 1 != std::min(port, host.size())) return false;
  return behind.find_first_not_of("0123456789") == std::string_view::npos &&
         PercentDecode(host.substr(0, port)).has_value();
}

// An absolute URI or an absolute path. `fragment`: whether "#…" may end it.
std::optional<CelUrl> ParseUri(std::string_view text, bool fragment) {
  const bool bare = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  });
  if (!bare || text.empty()) return std::nullopt;
  if (fragment) text = text.substr(0, text.find('#'));
  CelUrl url;
  const size_t end =
      std::find_if(text.begin(), text.end(),
                   [](char c) { return !IsAlnum(c) && c != '+' && c != '-' && c != '.'; }) -
      text.begin();
  if (end < text.size() && text[end] == ':' && !(text[0] >= '0' && text[0] <= '9')) {
    if (end == 0 || !IsAlnum(text[0])) return std::nullopt;
    for (const char c : text.substr(0, end)) {
      url.scheme += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    text.remove_prefix(end + 1);
  }
  if (const size_t mark = text.find('?'); mark != std::string_view::npos) {
    url.query = text.substr(mark + 1);
    text = text.substr(0, mark);
  }
  // mailto:a@example.com has neither host nor path.
  if (!text.starts_with('/')) return url.scheme.empty() ? std::nullopt : std::optional(url);
  if (!url.scheme.empty() && text.starts_with("//")) {
    text.remove_prefix(2);
    const std::string_view authority = text.substr(0, text.find('/'));
    const size_t at = authority.rfind('@');
    url.host = authority.substr(at == std::string_view::npos ? 0 : at + 1);
    if (!IsHost(url.host)) return std::nullopt;
    text.remove_prefix(authority.size());
  }
  url.path = text;
  return PercentDecode(url.path) ? std::optional(url) : std::nullopt;
}

CelValue QueryOf(const std::string& query) {
  std::map<std::string, std::vector<CelValue>> values;
  for (const std::string_view pair : Split(query, '&')) {
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    const size_t sign = pair.find('=');
    const auto key = QueryDecode(pair.substr(0, sign));
    const auto value = QueryDecode(sign == std::string_view::npos ? "" : pair.substr(sign + 1));
    if (key && value) values[*key].push_back({*value});
  }
  auto out = std::make_shared<std::vector<std::pair<CelValue, CelValue>>>();
  for (auto& [key, list] : values) {
    out->emplace_back(CelValue{key},
                      CelValue{CelList(std::make_shared<std::vector<CelValue>>(std::move(list)))});
  }
  return {CelMap(std::move(out))};
}

Result<CelValue> OfUrl(std::string_view name, const CelUrl& url) {
  const size_t port = PortAt(url.host);
  if (name == "getScheme") return CelValue{url.scheme};
  if (name == "getHost") return CelValue{url.host};
  if (name == "getPort") {
    return CelValue{port == std::string::npos ? "" : url.host.substr(port + 1)};
  }
  if (name == "getHostname") {
    std::string host = url.host.substr(0, port);
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    return CelValue{host};
  }
  if (name == "getEscapedPath") return CelValue{EscapedPath(url.path)};
  return name == "getQuery" ? Result<CelValue>(QueryOf(url.query)) : NoOverload();
}

Result<CelValue> UrlOfText(std::string_view name, const std::string& text) {
  // A request takes no fragment, yet the parts of such a URL can be told.
  const bool valid = ParseUri(text, false).has_value();
  if (name == "isURL") return CelValue{valid};
  const std::optional<CelUrl> url = ParseUri(text, true);
  if (valid && url) return CelOf(*url);
  return Status(Code::kInvalid, StrCat("URL parse error during conversion from string: parse ",
                                       Quote(text), ": invalid URI for request"));
}

}  // namespace

Result<CelValue> CallCelNetwork(std::string_view name, const std::vector<CelValue>& args) {
  if (const auto* range = CelAs<CelRange>(args[0])) {
    return OfRange(name, range->range, args.size() > 1 ? &args[1] : nullptr);
  }
  if (const auto* address = CelAs<CelAddress>(args[0])) {
    if (name == "family") return CelValue{int64_t{address->host.v6 ? 6 : 4}};
    return name.starts_with("is") ? Result<CelValue>(CelValue{IsOf(name, address->host)})
                                  : NoOverload();
  }
  if (const auto* url = CelAs<CelUrl>(args[0])) return OfUrl(name, *url);
  const auto* text = std::get_if<std::string>(&args[0].data);
  if (text == nullptr) return NoOverload();
  if (name == "url" || name == "isURL") return UrlOfText(name, *text);
  const bool known = name == "ip" || name == "isIP" || name == "cidr" || name == "isCIDR" ||
                     name == "ip.isCanonical";
  return known ? OfText(name, *text) : NoOverload();
}

std::string CelObjectText(const CelObject& object) {
  if (const auto* address = std::get_if<CelAddress>(&object.is)) return AddressText(address->host);
  if (const auto* range = std::get_if<CelRange>(&object.is)) {
    return StrCat(AddressText(range->range), "/", range->range.bits);
  }
  const auto* bytes = std::get_if<CelBytes>(&object.is);
  return bytes != nullptr ? bytes->octets : std::string();
}

}  // namespace swell::api
