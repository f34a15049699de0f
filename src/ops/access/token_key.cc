#include "ops/access/token_key.h"

#include "base/base64_url.h"
#include "base/file.h"
#include "kube/net/tls/signing_key.h"
#include "kube/net/tls/tls.h"

namespace swell::ops {
namespace {

constexpr size_t kKeyIdDigits = 32;

class EcTokenKey final : public apiserver::TokenKey {
 public:
  explicit EcTokenKey(net::SigningKey key) : key_(std::move(key)) {
    jwk_ = json::Object{{"use", "sig"},
                        {"kty", "EC"},
                        {"kid", net::Sha256Hex(key_.x() + key_.y()).substr(0, kKeyIdDigits)},
                        {"crv", "P-256"},
                        {"alg", "ES256"},
                        {"x", Base64UrlEncode(key_.x())},
                        {"y", Base64UrlEncode(key_.y())}};
  }
  std::string Sign(std::string_view bytes) const override { return key_.Sign(bytes); }
  bool Verify(std::string_view bytes, std::string_view signature) const override {
    return key_.Verify(bytes, signature);
  }
  const json::Value& jwk() const override { return jwk_; }

 private:
  net::SigningKey key_;
  json::Value jwk_;
};

}  // namespace

Result<std::shared_ptr<const apiserver::TokenKey>> LoadOrMakeTokenKey(const DataDir& dir) {
  const std::string path = dir.path + "/pki/sa.key";
  auto stored = ReadFile(path, 1 << 16);
  if (stored.ok()) {
    auto key = net::SigningKey::FromPem(*stored);
    if (!key.ok()) return key.status().WithContext(path);
    return std::shared_ptr<const apiserver::TokenKey>(
        std::make_shared<EcTokenKey>(std::move(*key)));
  }
  if (stored.status().code() != Code::kNotFound) return stored.status();
  SWELL_ASSIGN_OR_RETURN(net::SigningKey key, net::SigningKey::Generate());
  SWELL_ASSIGN_OR_RETURN(const std::string pem, key.ToPem());
  SWELL_RETURN_IF_ERROR(WriteFileAtomically(path, pem, 0600));
  return std::shared_ptr<const apiserver::TokenKey>(std::make_shared<EcTokenKey>(std::move(key)));
}

}  // namespace swell::ops
