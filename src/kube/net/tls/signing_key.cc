#include "kube/net/tls/signing_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "kube/net/tls/freer.h"

namespace swell::net {
namespace {

constexpr int kCoordinateBytes = 32;
constexpr size_t kMaxDerBytes = 80;  // of a P-256 signature: at most 72

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Status KeyError(const char* what) {
  ERR_clear_error();
  return Status(Code::kInternal, what);
}

std::string Padded(const BIGNUM* number) {
  std::string bytes(kCoordinateBytes, '\0');
  if (BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), kCoordinateBytes) < 0) {
    return {};
  }
  return bytes;
}

std::string Coordinate(EVP_PKEY* key, const char* name) {
  BIGNUM* raw = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &raw) != 1) return {};
  NumberPtr number(raw);
  return Padded(number.get());
}

}  // namespace

struct SigningKey::Rep {
  KeyPtr key;
  std::string x, y;
};

Result<SigningKey> SigningKey::FromKey(void* key) {
  auto rep = std::make_shared<Rep>();
  rep->key.reset(static_cast<EVP_PKEY*>(key));
  char group[32] = {};
  size_t length = 0;
  if (EVP_PKEY_get_base_id(rep->key.get()) != EVP_PKEY_EC ||
      EVP_PKEY_get_utf8_string_param(rep->key.get(), OSSL_PKEY_PARAM_GROUP_NAME, group,
                                     sizeof group, &length) != 1 ||
      std::string_view(group, length) != "prime256v1") {
    return KeyError("signing key: only EC P-256 keys can sign tokens");
  }
  rep->x = Coordinate(rep->key.get(), OSSL_PKEY_PARAM_EC_PUB_X);
  rep->y = Coordinate(rep->key.get(), OSSL_PKEY_PARAM_EC_PUB_Y);
  if (rep->x.empty() || rep->y.empty()) return KeyError("signing key: no public point");
  return SigningKey(std::move(rep));
}

Result<SigningKey> SigningKey::Generate() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  if (key == nullptr) return KeyError("signing key: cannot make one");
  return FromKey(key);
}

Result<SigningKey> SigningKey::FromPem(std::string_view pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr);
  if (key == nullptr) return KeyError("signing key: not a PEM private key");
  return FromKey(key);
}

Result<std::string> SigningKey::ToPem() const {
  BioPtr bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), rep_->key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
      1) {
    return KeyError("signing key: cannot write PEM");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);  // NOLINT(google-runtime-int): OpenSSL's
  return std::string(data, static_cast<size_t>(size));
}

std::string SigningKey::Sign(std::string_view bytes) const {
  DigestPtr digest(EVP_MD_CTX_new());
  unsigned char der[kMaxDerBytes];
  size_t size = sizeof der;
  if (EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, rep_->key.get()) != 1 ||
      EVP_DigestSign(digest.get(), der, &size, Bytes(bytes), bytes.size()) != 1) {
    ERR_clear_error();
    return {};
  }
  const unsigned char* at = der;
  SignaturePtr signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<int>(size)));
  if (signature == nullptr) return {};
  return Padded(ECDSA_SIG_get0_r(signature.get())) + Padded(ECDSA_SIG_get0_s(signature.get()));
}

bool SigningKey::Verify(std::string_view bytes, std::string_view signature) const {
  if (signature.size() != 2 * kCoordinateBytes) return false;
  BIGNUM* r = BN_bin2bn(Bytes(signature), kCoordinateBytes, nullptr);
  BIGNUM* s = BN_bin2bn(Bytes(signature.substr(kCoordinateBytes)), kCoordinateBytes, nullptr);
  SignaturePtr parsed(ECDSA_SIG_new());
  if (ECDSA_SIG_set0(parsed.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return false;
  }
  unsigned char der[kMaxDerBytes];
  unsigned char* end = der;
  const int size = i2d_ECDSA_SIG(parsed.get(), &end);
  DigestPtr digest(EVP_MD_CTX_new());
  const bool valid =
      size > 0 &&
      EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, rep_->key.get()) == 1 &&
      EVP_DigestVerify(digest.get(), der, static_cast<size_t>(size), Bytes(bytes), bytes.size()) ==
          1;
  ERR_clear_error();
  return valid;
}

const std::string& SigningKey::x() const { return rep_->x; }
const std::string& SigningKey::y() const { return rep_->y; }

}  // namespace swell::net
