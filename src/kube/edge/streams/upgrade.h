// Upgrades: what a client asks a connection to become, and what a server agrees to: SPDY/3.1 with a
// protocol of X-Stream-Protocol-Version, or WebSocket with a subprotocol.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/api/rest/rest.h"

namespace swell::edge {

struct Agreement {
  bool web_socket = false;
  std::string protocol;     // "" is possible for WebSocket: the client named none
  api::HeaderList headers;  // of the 101
};

// The first protocol in the client's order that the server has, too. On failure false, and
// `refusal` is the answer, in the words of Kubernetes' servers.
bool Negotiate(const api::HeaderList& offer,
               const std::vector<std::string>& spdy_protocols,
               const std::vector<std::string>& web_socket_protocols,
               Agreement* agreement,
               api::RestResponse* refusal);

// What a client sends to speak SPDY/3.1.
api::HeaderList OfferSpdy(const std::vector<std::string>& protocols);

// An answer of one line of text.
api::RestResponse TextResponse(int status, std::string text);

}  // namespace swell::edge
