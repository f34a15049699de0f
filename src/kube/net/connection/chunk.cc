#include "kube/net/connection/chunk.h"

#include <utility>

namespace swell::net {

Chunk MakeChunk(std::string bytes) { return std::make_shared<const std::string>(std::move(bytes)); }

uint64_t BodySize(const Body& body) {
  uint64_t size = 0;
  for (const Chunk& chunk : body) size += chunk->size();
  return size;
}

std::string BodyText(const Body& body) {
  std::string text;
  text.reserve(BodySize(body));
  for (const Chunk& chunk : body) text += *chunk;
  return text;
}

}  // namespace swell::net
