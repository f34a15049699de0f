#include "kube/net/tls/secret_box.h"

#include <climits>
#include <memory>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/strings.h"
#include "kube/net/tls/freer.h"

namespace swell::net {
namespace {

constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;
// scrypt's cost: N, r and p as OWASP names them for keys at rest.
constexpr uint64_t kCost = 1 << 16;
constexpr uint64_t kBlock = 8;
constexpr uint64_t kLanes = 1;
constexpr uint64_t kMemoryMax = uint64_t{128} << 20;

using CipherPtr = std::unique_ptr<EVP_CIPHER_CTX, Freer<EVP_CIPHER_CTX_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

Status CryptoError(const char* what) {
  ERR_clear_error();
  return Status(Code::kInternal, what);
}

Status CheckSizes(std::string_view key, std::string_view text, std::string_view context) {
  if (key.size() != kSecretKeyBytes) {
    return Status(Code::kInvalid,
                  StrCat("expected a key of ", kSecretKeyBytes, " bytes, it has ", key.size()));
  }
  if (text.size() > INT_MAX || context.size() > INT_MAX) {
    return Status(Code::kInvalid, "too long to encrypt");
  }
  return Status::Ok();
}

}  // namespace

Result<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (count > INT_MAX || RAND_bytes(Bytes(bytes), static_cast<int>(count)) != 1) {
    return CryptoError("no random bytes");
  }
  return bytes;
}

Result<std::string> SealBytes(std::string_view key,
                              std::string_view plain,
                              std::string_view context) {
  SWELL_RETURN_IF_ERROR(CheckSizes(key, plain, context));
  SWELL_ASSIGN_OR_RETURN(std::string box, RandomBytes(kNonceBytes));
  box.resize(kNonceBytes + plain.size() + kTagBytes);
  const CipherPtr cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  unsigned char* const out = Bytes(box) + kNonceBytes;
  const bool sealed =
      cipher != nullptr &&
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(box)) == 1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &size, Bytes(context),
                        static_cast<int>(context.size())) == 1 &&
      EVP_EncryptUpdate(cipher.get(), out, &size, Bytes(plain), static_cast<int>(plain.size())) ==
          1 &&
      EVP_EncryptFinal_ex(cipher.get(), out + plain.size(), &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, out + plain.size()) == 1;
  if (!sealed) return CryptoError("encryption failed");
  return box;
}

Result<std::string> OpenBytes(std::string_view key,
                              std::string_view sealed,
                              std::string_view context) {
  SWELL_RETURN_IF_ERROR(CheckSizes(key, sealed, context));
  const Status wrong(Code::kUnauthorized, "the key does not open it, or it was changed");
  if (sealed.size() < kNonceBytes + kTagBytes) return wrong;
  const std::string_view nonce = sealed.substr(0, kNonceBytes);
  const std::string_view body = sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  std::string plain(body.size(), '\0');
  const CipherPtr cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  unsigned char rest[kTagBytes];
  const bool opened =
      cipher != nullptr &&
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) == 1 &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &size, Bytes(context),
                        static_cast<int>(context.size())) == 1 &&
      EVP_DecryptUpdate(cipher.get(), Bytes(plain), &size, Bytes(body),
                        static_cast<int>(body.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, Bytes(tag)) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), rest, &size) == 1;
  ERR_clear_error();
  if (!opened) return wrong;
  return plain;
}

Result<std::string> KeyFromPassphrase(std::string_view passphrase, std::string_view salt) {
  std::string key(kSecretKeyBytes, '\0');
  if (EVP_PBE_scrypt(passphrase.data(), passphrase.size(), Bytes(salt), salt.size(), kCost, kBlock,
                     kLanes, kMemoryMax, Bytes(key), key.size()) != 1) {
    return CryptoError("no key could be made of the passphrase");
  }
  return key;
}

}  // namespace swell::net
