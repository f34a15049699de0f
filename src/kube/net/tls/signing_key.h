// SigningKey: an EC P-256 key that signs tokens as JWT's ES256 does (SHA-256; r and s, 32 bytes
// each, one after the other).
// - Threads: const methods may run anywhere at once.
// - Ownership: a handle to one shared key.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace swell::net {

class SigningKey {
 public:
  static Result<SigningKey> Generate();
  // A PEM private key: PKCS #8 or SEC 1.
  static Result<SigningKey> FromPem(std::string_view pem);
  Result<std::string> ToPem() const;

  // 64 bytes; empty when the library fails.
  std::string Sign(std::string_view bytes) const;
  bool Verify(std::string_view bytes, std::string_view signature) const;

  // The public point's coordinates, 32 bytes each.
  const std::string& x() const;
  const std::string& y() const;

 private:
  struct Rep;
  explicit SigningKey(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  static Result<SigningKey> FromKey(void* key);
  std::shared_ptr<const Rep> rep_;
};

}  // namespace swell::net
