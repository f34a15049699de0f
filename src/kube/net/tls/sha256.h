// Sha256: the digest of bytes that come in pieces.
// - Threads: a plain value.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace swell::net {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(std::string_view bytes);
  // In lower-case hexadecimal digits. Nothing can be added after it.
  std::string Hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace swell::net
