#include "kube/net/tls/ssh_key.h"

#include <cstdint>
#include <memory>
#include <string_view>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/strings.h"
#include "kube/net/tls/freer.h"

namespace swell::net {
namespace {

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

// Names of RFC 5656.
constexpr std::string_view kType = "ecdsa-sha2-nistp521";
constexpr std::string_view kCurve = "nistp521";
// 4 (uncompressed), then the coordinates, 66 bytes each.
constexpr size_t kPointBytes = 133;

Status KeyError(const char* what) {
  ERR_clear_error();
  return Status(Code::kInternal, what);
}

// A string as SSH writes it (RFC 4251): its length in four bytes, highest first, then its bytes.
void Append(std::string& out, std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((size >> shift) & 0xFF);
  out += text;
}

}  // namespace

Result<SshKey> MakeSshKey() {
  const KeyPtr key(EVP_EC_gen("P-521"));
  if (key == nullptr) return KeyError("SSH key: cannot make one");
  unsigned char point[kPointBytes];
  size_t size = 0;
  if (EVP_PKEY_get_octet_string_param(key.get(), OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                      &size) != 1 ||
      size != kPointBytes || point[0] != POINT_CONVERSION_UNCOMPRESSED) {
    return KeyError("SSH key: no public point");
  }
  std::string blob;
  Append(blob, kType);
  Append(blob, kCurve);
  Append(blob, {reinterpret_cast<const char*>(point), size});
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey_traditional(bio.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                           nullptr) != 1) {
    return KeyError("SSH key: cannot write PEM");
  }
  char* pem = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &pem);  // NOLINT(google-runtime-int): OpenSSL's
  return SshKey{std::string(pem, static_cast<size_t>(length)),
                StrCat(kType, " ", Base64Encode(blob), "\n")};
}

}  // namespace swell::net
