// The real terminal and real ports.
// - Threads: the reactor's thread, which outlives them.
#pragma once

#include <memory>
#include <string>

#include "cli/console.h"
#include "kube/net/reactor/reactor.h"

namespace swell::cli {

std::unique_ptr<Console> MakeRealConsole(net::Reactor& reactor);

// Listens at "127.0.0.1:8080" or "[::1]:0".
Result<std::unique_ptr<PortListener>> ListenForReal(net::Reactor& reactor,
                                                    const std::string& address,
                                                    std::function<void(api::DuplexPtr)> accepted);

}  // namespace swell::cli
