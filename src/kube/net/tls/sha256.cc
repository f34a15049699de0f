#include "kube/net/tls/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace swell::net {

struct Sha256::Context {
  Context() : evp(EVP_MD_CTX_new()) {
    SWELL_CHECK(evp != nullptr && EVP_DigestInit_ex(evp, EVP_sha256(), nullptr) == 1);
  }
  ~Context() { EVP_MD_CTX_free(evp); }
  EVP_MD_CTX* evp;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Add(std::string_view bytes) {
  SWELL_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  SWELL_CHECK(EVP_DigestFinal_ex(context_->evp, digest, &size) == 1);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * static_cast<size_t>(size));
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

}  // namespace swell::net
