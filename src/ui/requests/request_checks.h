// What the ports of the pages look at in every request: where a browser says that it comes from,
// which host it means, and its cookies. A browser that another page has led here gets nowhere.
// - Threads: pure functions and plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kube/net/http/http.h"

namespace swell::ui {

// How a port is reached.
struct PortKind {
  bool loopback = true;  // only requests that name a loopback address as their host are answered
  bool secure = false;   // it speaks TLS
};

// The header's value, else "".
std::string HeaderOf(const net::HttpRequest& request, std::string_view name);
bool IsRead(const net::HttpRequest& request);
bool IsUpgrade(const net::HttpRequest& request);

// Against names of other hosts that are pointed at a loopback address. kForbidden.
Status CheckHost(const net::HttpRequest& request, PortKind port);
// A browser says where a write or a WebSocket comes from: it must come from this port. A client
// that says nothing of the kind and has no cookie is not a misled browser. kForbidden.
Status CheckOrigin(const net::HttpRequest& request, PortKind port);

// Every value that cookies of this name have; a browser sends several where their paths differ.
std::vector<std::string> CookiesOf(const net::HttpRequest& request, std::string_view name);

// Takes as long for any two texts of the same length.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace swell::ui
