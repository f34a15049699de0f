// OpenEngineStdio: the live streams of a command, or of a container to attach to, at the address
// that a container engine gave for them: SPDY/3.1 (remotecommand v4), which every engine serves.
// - Threads: the core thread, whose reactor `core` is and outlives the session.
#pragma once

#include <string>

#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime/runtime.h"

namespace swell::cri {

// `url`: "http://127.0.0.1:PORT/exec/TOKEN". The reason why a command did not run arrives as its
// exit.
void OpenEngineStdio(net::Reactor& core,
                     const std::string& url,
                     const node::StdioSpec& spec,
                     const node::StdioCallback& done);

}  // namespace swell::cri
