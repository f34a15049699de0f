#include "ui/requests/request_checks.h"

#include "base/host_port.h"
#include "base/strings.h"

namespace swell::ui {

std::string HeaderOf(const net::HttpRequest& request, std::string_view name) {
  const std::string* value = net::FindHeader(request.headers, name);
  return value != nullptr ? *value : std::string();
}

bool IsRead(const net::HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

bool IsUpgrade(const net::HttpRequest& request) {
  return net::HeaderHasToken(request.headers, "Connection", "upgrade");
}

Status CheckHost(const net::HttpRequest& request, PortKind port) {
  if (!port.loopback) return Status::Ok();
  const std::string host = HeaderOf(request, "Host");
  const std::string_view name = WithoutPort(host);
  if (name == "127.0.0.1" || name == "localhost" || name == "[::1]") return Status::Ok();
  return Status(Code::kForbidden,
                StrCat("Host ", Quote(host), ": the pages answer to 127.0.0.1 and localhost only"));
}

Status CheckOrigin(const net::HttpRequest& request, PortKind port) {
  const std::string* origin = net::FindHeader(request.headers, "Origin");
  if (origin == nullptr && !IsUpgrade(request)) {
    const std::string* site = net::FindHeader(request.headers, "Sec-Fetch-Site");
    if (site != nullptr && *site == "same-origin") return Status::Ok();
    if (site == nullptr && net::FindHeader(request.headers, "Cookie") == nullptr) {
      return Status::Ok();
    }
  }
  const std::string own = StrCat(port.secure ? "https://" : "http://", HeaderOf(request, "Host"));
  if (origin != nullptr && net::EqualsIgnoreCase(*origin, own)) return Status::Ok();
  return Status(Code::kForbidden, StrCat("Origin ", Quote(origin ? *origin : ""),
                                         ": requests must come from the pages at ", own));
}

std::vector<std::string> CookiesOf(const net::HttpRequest& request, std::string_view name) {
  std::vector<std::string> values;
  for (const net::Header& header : request.headers) {
    if (!net::EqualsIgnoreCase(header.name, "Cookie")) continue;
    for (std::string_view cookie : Split(header.value, ';')) {
      cookie = Trim(cookie);
      const size_t equals = cookie.find('=');
      if (equals == std::string_view::npos || cookie.substr(0, equals) != name) continue;
      values.emplace_back(cookie.substr(equals + 1));
    }
  }
  return values;
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace swell::ui
