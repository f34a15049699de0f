// DialerOf: how an API server in this process reaches pods, services and webhooks over HTTP(S).
// - Threads: the reactor's thread.
// - Ownership: the reactor outlives the dialer and what it dials.
#pragma once

#include "kube/apiserver/api_server.h"
#include "kube/net/reactor/reactor.h"

namespace swell::ops {

apiserver::HttpDialer DialerOf(net::Reactor& reactor);

}  // namespace swell::ops
