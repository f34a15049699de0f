// Chunk: bytes on their way to a peer. A body is a list of them.
// - Threads: chunks are shared and immutable, so one serialised object can be on its way to many
//   peers, from any thread, without being copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace swell::net {

using Chunk = std::shared_ptr<const std::string>;
using Body = std::vector<Chunk>;

Chunk MakeChunk(std::string bytes);
uint64_t BodySize(const Body& body);
std::string BodyText(const Body& body);

}  // namespace swell::net
