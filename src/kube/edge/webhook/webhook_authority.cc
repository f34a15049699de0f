#include "kube/edge/webhook/webhook_authority.h"

#include <utility>

#include "base/strings.h"

namespace swell::edge {
namespace {

constexpr Duration kDay = std::chrono::hours(24);
constexpr Duration kFollowedBefore = 60 * kDay;
constexpr Duration kReplacedBefore = 3 * kDay;
constexpr Duration kKnownFor = 2 * kDay;  // until everybody trusts it
constexpr Duration kClockSlack = std::chrono::minutes(5);

std::string Field(const json::Value& data, std::string_view name) {
  return Base64Decode(json::GetString(data, {name})).value_or("");
}

bool Readable(const std::string& cert) {
  return !cert.empty() && net::DescribeCertificate(cert).ok();
}

bool GoodAt(const std::string& cert, WallTime when) {
  auto info = net::DescribeCertificate(cert);
  return info.ok() && info->not_after > when;
}

}  // namespace

std::string WebhookAuthority::Bundle() const {
  std::string bundle = current.cert_pem;
  if (next) bundle += next->cert_pem;
  return bundle + previous;
}

json::Object WebhookAuthority::Data() const {
  json::Object data{{"tls.crt", Base64Encode(current.cert_pem)},
                    {"tls.key", Base64Encode(current.key_pem)}};
  if (next) {
    data["next.crt"] = Base64Encode(next->cert_pem);
    data["next.key"] = Base64Encode(next->key_pem);
  }
  if (!previous.empty()) data["previous.crt"] = Base64Encode(previous);
  return data;
}

WebhookAuthority WebhookAuthority::Read(const json::Value& data) {
  WebhookAuthority out;
  net::CertificatePair current{Field(data, "tls.crt"), Field(data, "tls.key")};
  net::CertificatePair next{Field(data, "next.crt"), Field(data, "next.key")};
  std::string previous = Field(data, "previous.crt");
  if (Readable(current.cert_pem) && !current.key_pem.empty()) out.current = std::move(current);
  if (Readable(next.cert_pem) && !next.key_pem.empty()) out.next = std::move(next);
  if (Readable(previous)) out.previous = std::move(previous);
  return out;
}

Result<std::optional<WebhookAuthority>> Renew(const WebhookAuthority& authority,
                                              const std::string& common_name,
                                              WallTime now) {
  WebhookAuthority renewed = authority;
  bool changed = false;
  if (!renewed.previous.empty() && !GoodAt(renewed.previous, now)) {
    renewed.previous.clear();
    changed = true;
  }
  if (renewed.next) {
    SWELL_ASSIGN_OR_RETURN(auto info, net::DescribeCertificate(renewed.next->cert_pem));
    const bool known = now - info.not_before >= kKnownFor + kClockSlack;
    if (known || !GoodAt(renewed.current.cert_pem, now)) {
      renewed.previous = std::exchange(renewed.current, std::move(*renewed.next)).cert_pem;
      renewed.next.reset();
      changed = true;
    }
  }
  if (!GoodAt(renewed.current.cert_pem, now + kReplacedBefore)) {
    SWELL_ASSIGN_OR_RETURN(auto made, net::GenerateCa(common_name, now - kClockSlack));
    renewed.previous = std::exchange(renewed.current, std::move(made)).cert_pem;
    changed = true;
  } else if (!renewed.next && !GoodAt(renewed.current.cert_pem, now + kFollowedBefore)) {
    SWELL_ASSIGN_OR_RETURN(renewed.next, net::GenerateCa(common_name, now - kClockSlack));
    changed = true;
  }
  if (!changed) return std::optional<WebhookAuthority>();
  return std::optional<WebhookAuthority>(std::move(renewed));
}

}  // namespace swell::edge
