// A socket after an HTTP upgrade as an api::DuplexStream. It has no half-close: CloseWrite closes.
// - Threads: the executor's thread.
// - Ownership: the executor outlives the stream.
#pragma once

#include <memory>

#include "kube/api/rest/duplex.h"
#include "kube/net/connection/byte_stream.h"

namespace swell::edge {

api::DuplexPtr MakeNetDuplex(Executor& executor, std::shared_ptr<net::ByteStream> stream);

}  // namespace swell::edge
