// Making certificates: a CA, and leaves it vouches for.
#include <arpa/inet.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/strings.h"
#include "net/freer.h"
#include "net/tls.h"

namespace swell::net {
namespace {

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using NamePtr = std::unique_ptr<X509_NAME, Freer<X509_NAME_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Freer<BN_free>>;

Status CertError(std::string_view what) {
  unsigned long code = ERR_get_error();  // NOLINT(google-runtime-int): OpenSSL's type
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return Status(Code::kInternal,
                StrCat("certificate: ", what, ": ", reason != nullptr ? reason : "failed"));
}

std::string BioText(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);  // NOLINT(google-runtime-int): OpenSSL's type
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

Result<CertificatePair> ToPem(X509* certificate, EVP_PKEY* key) {
  BioPtr cert_bio(BIO_new(BIO_s_mem()));
  BioPtr key_bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(cert_bio.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return CertError("PEM");
  }
  return CertificatePair{BioText(cert_bio.get()), BioText(key_bio.get())};
}

Status AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return CertError(OBJ_nid2sn(nid));
  }
  return Status::Ok();
}

// Built name by name: a textual list would let a comma in one name smuggle in another.
Status AddAltNames(X509* certificate, const CertSpec& spec) {
  NamesPtr names(sk_GENERAL_NAME_new_null());
  auto add = [&names](int type, std::string_view bytes) {
    GENERAL_NAME* name = GENERAL_NAME_new();
    ASN1_STRING* text = type == GEN_IPADD ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
    ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size()));
    GENERAL_NAME_set0_value(name, type, text);
    sk_GENERAL_NAME_push(names.get(), name);
  };
  for (const std::string& dns : spec.dns_names) add(GEN_DNS, dns);
  for (const std::string& ip : spec.ip_addresses) {
    unsigned char raw[16];
    size_t size = 0;
    if (inet_pton(AF_INET, ip.c_str(), raw) == 1) size = 4;
    if (size == 0 && inet_pton(AF_INET6, ip.c_str(), raw) == 1) size = 16;
    if (size == 0) {
      return Status(Code::kBadRequest, StrCat("certificate: ", Quote(ip), " is not an IP address"));
    }
    add(GEN_IPADD, std::string_view(reinterpret_cast<char*>(raw), size));
  }
  if (sk_GENERAL_NAME_num(names.get()) == 0) return Status::Ok();
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) !=
      1) {
    return CertError("subjectAltName");
  }
  return Status::Ok();
}

Status SetSubject(X509* certificate,
                  const std::string& common_name,
                  const std::vector<std::string>& organizations) {
  NamePtr name(X509_NAME_new());
  auto add = [&name](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(name.get(), field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.data()),
                                      static_cast<int>(value.size()), -1, 0) == 1;
  };
  for (const std::string& organization : organizations) {
    if (!add("O", organization)) return CertError(StrCat("organization ", Quote(organization)));
  }
  if (!add("CN", common_name)) return CertError(StrCat("common name ", Quote(common_name)));
  if (X509_set_subject_name(certificate, name.get()) != 1) return CertError("subject");
  return Status::Ok();
}

// A certificate with everything but issuer, extensions and signature.
Result<X509Ptr> Begin(EVP_PKEY* key, const CertSpec& spec) {
  X509Ptr certificate(X509_new());
  unsigned char serial[16];
  if (certificate == nullptr || RAND_bytes(serial, sizeof(serial)) != 1) return CertError("serial");
  serial[0] &= 0x7f;  // positive, as RFC 5280 wants
  NumberPtr number(BN_bin2bn(serial, sizeof(serial), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  X509_set_version(certificate.get(), X509_VERSION_3);
  constexpr int64_t kNsPerS = 1'000'000'000;
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), spec.not_before.unix_ns / kNsPerS);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()),
                (spec.not_before + spec.validity).unix_ns / kNsPerS);
  if (X509_set_pubkey(certificate.get(), key) != 1) return CertError("public key");
  SWELL_RETURN_IF_ERROR(SetSubject(certificate.get(), spec.common_name, spec.organizations));
  return certificate;
}

}  // namespace

Result<CertificatePair> GenerateCa(const std::string& common_name,
                                   WallTime not_before,
                                   Duration validity) {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return CertError("key");
  CertSpec spec;
  spec.common_name = common_name;
  spec.not_before = not_before;
  spec.validity = validity;
  SWELL_ASSIGN_OR_RETURN(X509Ptr ca, Begin(key.get(), spec));
  X509* raw = ca.get();
  X509_set_issuer_name(raw, X509_get_subject_name(raw));
  SWELL_RETURN_IF_ERROR(AddExtension(raw, raw, NID_basic_constraints, "critical,CA:TRUE"));
  SWELL_RETURN_IF_ERROR(
      AddExtension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"));
  SWELL_RETURN_IF_ERROR(AddExtension(raw, raw, NID_subject_key_identifier, "hash"));
  if (X509_sign(raw, key.get(), EVP_sha256()) == 0) return CertError("signature");
  return ToPem(raw, key.get());
}

Result<CertificatePair> IssueCert(const CertificatePair& ca, const CertSpec& spec) {
  BioPtr cert_bio(BIO_new_mem_buf(ca.cert_pem.data(), static_cast<int>(ca.cert_pem.size())));
  BioPtr key_bio(BIO_new_mem_buf(ca.key_pem.data(), static_cast<int>(ca.key_pem.size())));
  X509Ptr issuer(PEM_read_bio_X509(cert_bio.get(), nullptr, nullptr, nullptr));
  auto no_password = [](char*, int, int, void*) { return 0; };
  KeyPtr issuer_key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_password, nullptr));
  if (issuer == nullptr || issuer_key == nullptr) return CertError("CA");
  if (X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    return CertError("CA key does not fit CA certificate");
  }
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return CertError("key");
  SWELL_ASSIGN_OR_RETURN(X509Ptr leaf, Begin(key.get(), spec));
  X509* raw = leaf.get();
  X509_set_issuer_name(raw, X509_get_subject_name(issuer.get()));
  SWELL_RETURN_IF_ERROR(
      AddExtension(raw, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  SWELL_RETURN_IF_ERROR(
      AddExtension(raw, issuer.get(), NID_key_usage, "critical,digitalSignature,keyEncipherment"));
  const char* usage = spec.server && spec.client ? "serverAuth,clientAuth"
                      : spec.server              ? "serverAuth"
                                                 : "clientAuth";
  if (spec.server || spec.client) {
    SWELL_RETURN_IF_ERROR(AddExtension(raw, issuer.get(), NID_ext_key_usage, usage));
  }
  SWELL_RETURN_IF_ERROR(AddExtension(raw, issuer.get(), NID_subject_key_identifier, "hash"));
  SWELL_RETURN_IF_ERROR(AddExtension(raw, issuer.get(), NID_authority_key_identifier, "keyid"));
  SWELL_RETURN_IF_ERROR(AddAltNames(raw, spec));
  if (X509_sign(raw, issuer_key.get(), EVP_sha256()) == 0) return CertError("signature");
  return ToPem(raw, key.get());
}

namespace {

std::string Hex(const unsigned char* bytes, size_t size) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(size * 2);
  for (size_t i = 0; i < size; ++i) {
    out.push_back(kHex[bytes[i] >> 4]);
    out.push_back(kHex[bytes[i] & 15]);
  }
  return out;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  int ok = EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  SWELL_CHECK(ok == 1);
  return Hex(digest, size);
}

Result<std::string> RandomToken(size_t bytes) {
  std::string raw(bytes, '\0');
  auto* data = reinterpret_cast<unsigned char*>(raw.data());
  if (RAND_bytes(data, static_cast<int>(bytes)) != 1) return CertError("entropy");
  return Hex(data, bytes);
}

bool ConstantTimeEquals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace swell::net
