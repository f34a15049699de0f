#include "kube/edge/streams/upgrade.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/net/framing/websocket.h"
#include "kube/net/http/http.h"

namespace swell::edge {
namespace {

constexpr std::string_view kStreamVersion = "X-Stream-Protocol-Version";
constexpr std::string_view kAcceptedVersions = "X-Accepted-Stream-Protocol-Versions";

// Every item of every header of that name; they may be lists.
std::vector<std::string> Items(const api::HeaderList& headers, std::string_view name) {
  std::vector<std::string> items;
  for (const auto& [header, value] : headers) {
    if (!net::EqualsIgnoreCase(header, name)) continue;
    for (std::string_view item : Split(value, ',')) {
      if (!Trim(item).empty()) items.emplace_back(Trim(item));
    }
  }
  return items;
}

bool Has(const std::vector<std::string>& items, std::string_view item) {
  return std::any_of(items.begin(), items.end(),
                     [item](const auto& one) { return net::EqualsIgnoreCase(one, item); });
}

const std::string* FirstCommon(const std::vector<std::string>& wanted,
                               const std::vector<std::string>& offered) {
  for (const std::string& item : wanted) {
    if (std::find(offered.begin(), offered.end(), item) != offered.end()) return &item;
  }
  return nullptr;
}

bool NegotiateWebSocket(const api::HeaderList& offer,
                        const std::vector<std::string>& ours,
                        Agreement* agreement,
                        api::RestResponse* refusal) {
  const std::vector<std::string> keys = Items(offer, "Sec-WebSocket-Key");
  if (keys.size() != 1 || Items(offer, "Sec-WebSocket-Version") != std::vector<std::string>{"13"}) {
    *refusal = TextResponse(400, "WebSocket: Sec-WebSocket-Key and version 13 are required");
    refusal->headers.emplace_back("Sec-WebSocket-Version", "13");
    return false;
  }
  const std::vector<std::string> wanted = Items(offer, "Sec-WebSocket-Protocol");
  const std::string* chosen = FirstCommon(wanted, ours);
  if (chosen == nullptr && !wanted.empty()) {
    *refusal = TextResponse(403, StrCat("WebSocket: client supports [", Join(wanted, " "),
                                        "], server accepts [", Join(ours, " "), "]"));
    return false;
  }
  agreement->web_socket = true;
  agreement->headers = {{"Upgrade", "websocket"},
                        {"Sec-WebSocket-Accept", net::WebSocketAccept(keys[0])}};
  if (chosen == nullptr) return true;
  agreement->protocol = *chosen;
  agreement->headers.emplace_back("Sec-WebSocket-Protocol", *chosen);
  return true;
}

}  // namespace

bool Negotiate(const api::HeaderList& offer,
               const std::vector<std::string>& spdy_protocols,
               const std::vector<std::string>& web_socket_protocols,
               Agreement* agreement,
               api::RestResponse* refusal) {
  const std::vector<std::string> upgrades = Items(offer, "Upgrade");
  if (Has(upgrades, "websocket")) {
    return NegotiateWebSocket(offer, web_socket_protocols, agreement, refusal);
  }
  if (!Has(upgrades, "SPDY/3.1")) {
    *refusal = TextResponse(400, "Upgrade request required");
    return false;
  }
  const std::vector<std::string> wanted = Items(offer, kStreamVersion);
  if (wanted.empty()) {
    *refusal = TextResponse(400, StrCat("unable to upgrade: ", kStreamVersion, " is required"));
    return false;
  }
  const std::string* chosen = FirstCommon(wanted, spdy_protocols);
  if (chosen == nullptr) {
    *refusal = TextResponse(
        403, StrCat("unable to upgrade: unable to negotiate protocol: client supports [",
                    Join(wanted, " "), "], server accepts [", Join(spdy_protocols, " "), "]"));
    for (const std::string& protocol : spdy_protocols) {
      refusal->headers.emplace_back(kAcceptedVersions, protocol);
    }
    return false;
  }
  agreement->protocol = *chosen;
  agreement->headers = {{"Upgrade", "SPDY/3.1"}, {std::string(kStreamVersion), *chosen}};
  return true;
}

api::HeaderList OfferSpdy(const std::vector<std::string>& protocols) {
  api::HeaderList headers{{"Upgrade", "SPDY/3.1"}};
  for (const std::string& protocol : protocols) {
    headers.emplace_back(kStreamVersion, protocol);
  }
  return headers;
}

api::RestResponse TextResponse(int status, std::string text) {
  api::RestResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body.push_back(api::MakeChunk(std::move(text) + "\n"));
  return response;
}

}  // namespace swell::edge
