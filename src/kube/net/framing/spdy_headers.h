// SpdyHeaderCodec: SPDY/3's header blocks: names and values with lengths, compressed by zlib with a
// dictionary both sides know. Internal to net.
// - Threads: none.
// - Invariants: all blocks of one direction share one compression state, so they must be coded in
//   the order they travel; after an error the state is lost.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/net/http/http.h"

namespace swell::net {

class SpdyHeaderCodec {
 public:
  SpdyHeaderCodec();
  ~SpdyHeaderCodec();
  SpdyHeaderCodec(const SpdyHeaderCodec&) = delete;
  SpdyHeaderCodec& operator=(const SpdyHeaderCodec&) = delete;

  // A header that occurs several times becomes one with several values.
  std::string Encode(const Headers& headers);
  Result<Headers> Decode(std::string_view block);

 private:
  struct Zlib;
  Result<std::string> Inflate(std::string_view block);
  std::unique_ptr<Zlib> zlib_;
};

}  // namespace swell::net
