// Making certificates: a CA, and leaves it vouches for.
#include <arpa/inet.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/strings.h"
#include "kube/net/tls/freer.h"
#include "kube/net/tls/tls.h"

namespace swell::net {
namespace {

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using NamePtr = std::unique_ptr<X509_NAME, Freer<X509_NAME_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
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

// A certificate with everything but subject, issuer, extensions and signature.
Result<X509Ptr> Begin(EVP_PKEY* key, WallTime not_before, Duration validity) {
  X509Ptr certificate(X509_new());
  unsigned char serial[16];
  if (certificate == nullptr || RAND_bytes(serial, sizeof(serial)) != 1) return CertError("serial");
  serial[0] &= 0x7f;  // positive, as RFC 5280 wants
  NumberPtr number(BN_bin2bn(serial, sizeof(serial), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  X509_set_version(certificate.get(), X509_VERSION_3);
  constexpr int64_t kNsPerS = 1'000'000'000;
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), not_before.unix_ns / kNsPerS);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), (not_before + validity).unix_ns / kNsPerS);
  if (X509_set_pubkey(certificate.get(), key) != 1) return CertError("public key");
  return certificate;
}

struct Issuer {
  X509Ptr certificate;
  KeyPtr key;
};

Result<Issuer> ParseIssuer(const CertificatePair& ca) {
  BioPtr cert_bio(BIO_new_mem_buf(ca.cert_pem.data(), static_cast<int>(ca.cert_pem.size())));
  BioPtr key_bio(BIO_new_mem_buf(ca.key_pem.data(), static_cast<int>(ca.key_pem.size())));
  Issuer issuer{X509Ptr(PEM_read_bio_X509(cert_bio.get(), nullptr, nullptr, nullptr)), nullptr};
  auto no_password = [](char*, int, int, void*) { return 0; };
  issuer.key.reset(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_password, nullptr));
  if (issuer.certificate == nullptr || issuer.key == nullptr) return CertError("CA");
  if (X509_check_private_key(issuer.certificate.get(), issuer.key.get()) != 1) {
    return CertError("CA key does not fit CA certificate");
  }
  return issuer;
}

// Issuer and what every leaf has.
Status AddLeafExtensions(X509* leaf, X509* issuer, const char* key_usage, const char* usage) {
  X509_set_issuer_name(leaf, X509_get_subject_name(issuer));
  SWELL_RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  if (*key_usage != '\0') {
    SWELL_RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_key_usage, key_usage));
  }
  if (*usage != '\0') {
    SWELL_RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_ext_key_usage, usage));
  }
  SWELL_RETURN_IF_ERROR(AddExtension(leaf, issuer, NID_subject_key_identifier, "hash"));
  return AddExtension(leaf, issuer, NID_authority_key_identifier, "keyid");
}

// What was signed by the very key that it names.
Result<RequestPtr> ParseRequest(const std::string& pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  RequestPtr request(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  if (request == nullptr) return CertError("request");
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1) {
    return CertError("request's signature");
  }
  return request;
}

// Other names of the subject, as the request has them.
Status CopyAltNames(X509* certificate, X509_REQ* request) {
  STACK_OF(X509_EXTENSION)* all = X509_REQ_get_extensions(request);
  const int at = X509v3_get_ext_by_NID(all, NID_subject_alt_name, -1);
  const bool copied = at < 0 || X509_add_ext(certificate, X509v3_get_ext(all, at), -1) == 1;
  sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
  return copied ? Status::Ok() : CertError("subjectAltName");
}

}  // namespace

Result<CertificatePair> GenerateCa(const std::string& common_name,
                                   WallTime not_before,
                                   Duration validity) {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return CertError("key");
  SWELL_ASSIGN_OR_RETURN(X509Ptr ca, Begin(key.get(), not_before, validity));
  X509* raw = ca.get();
  SWELL_RETURN_IF_ERROR(SetSubject(raw, common_name, {}));
  X509_set_issuer_name(raw, X509_get_subject_name(raw));
  SWELL_RETURN_IF_ERROR(AddExtension(raw, raw, NID_basic_constraints, "critical,CA:TRUE"));
  SWELL_RETURN_IF_ERROR(
      AddExtension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"));
  SWELL_RETURN_IF_ERROR(AddExtension(raw, raw, NID_subject_key_identifier, "hash"));
  if (X509_sign(raw, key.get(), EVP_sha256()) == 0) return CertError("signature");
  return ToPem(raw, key.get());
}

Result<CertificatePair> IssueCert(const CertificatePair& ca, const CertSpec& spec) {
  SWELL_ASSIGN_OR_RETURN(const Issuer issuer, ParseIssuer(ca));
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return CertError("key");
  SWELL_ASSIGN_OR_RETURN(X509Ptr leaf, Begin(key.get(), spec.not_before, spec.validity));
  X509* raw = leaf.get();
  SWELL_RETURN_IF_ERROR(SetSubject(raw, spec.common_name, spec.organizations));
  const char* usage = spec.server && spec.client ? "serverAuth,clientAuth"
                      : spec.server              ? "serverAuth"
                      : spec.client              ? "clientAuth"
                                                 : "";
  SWELL_RETURN_IF_ERROR(AddLeafExtensions(raw, issuer.certificate.get(),
                                          "critical,digitalSignature,keyEncipherment", usage));
  SWELL_RETURN_IF_ERROR(AddAltNames(raw, spec));
  if (X509_sign(raw, issuer.key.get(), EVP_sha256()) == 0) return CertError("signature");
  return ToPem(raw, key.get());
}

Result<std::string> IssueClientCert(const CertificatePair& ca,
                                    const std::string& request_pem,
                                    const ClientTerms& terms) {
  SWELL_ASSIGN_OR_RETURN(const Issuer issuer, ParseIssuer(ca));
  SWELL_ASSIGN_OR_RETURN(const RequestPtr request, ParseRequest(request_pem));
  SWELL_ASSIGN_OR_RETURN(
      X509Ptr leaf, Begin(X509_REQ_get0_pubkey(request.get()), terms.not_before, terms.validity));
  X509* raw = leaf.get();
  if (X509_set_subject_name(raw, X509_REQ_get_subject_name(request.get())) != 1) {
    return CertError("subject");
  }
  const char* key_usage = terms.digital_signature && terms.key_encipherment
                              ? "critical,digitalSignature,keyEncipherment"
                          : terms.digital_signature ? "critical,digitalSignature"
                          : terms.key_encipherment  ? "critical,keyEncipherment"
                                                    : "";
  SWELL_RETURN_IF_ERROR(AddLeafExtensions(raw, issuer.certificate.get(), key_usage, "clientAuth"));
  SWELL_RETURN_IF_ERROR(CopyAltNames(raw, request.get()));
  if (X509_sign(raw, issuer.key.get(), EVP_sha256()) == 0) return CertError("signature");
  BioPtr pem(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(pem.get(), raw) != 1) return CertError("PEM");
  return BioText(pem.get());
}

namespace {

// All entries of one sort in a name, in their order.
Result<std::vector<std::string>> EntriesOf(const X509_NAME* subject, int nid) {
  std::vector<std::string> entries;
  int at = -1;
  while ((at = X509_NAME_get_index_by_NID(subject, nid, at)) >= 0) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) return CertError("subject");
    entries.emplace_back(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
  }
  return entries;
}

}  // namespace

Result<RequestedNames> NamesInRequest(const std::string& request_pem) {
  SWELL_ASSIGN_OR_RETURN(const RequestPtr request, ParseRequest(request_pem));
  const X509_NAME* subject = X509_REQ_get_subject_name(request.get());
  RequestedNames names;
  SWELL_ASSIGN_OR_RETURN(names.organizations, EntriesOf(subject, NID_organizationName));
  SWELL_ASSIGN_OR_RETURN(const auto common_names, EntriesOf(subject, NID_commonName));
  if (!common_names.empty()) names.common_name = common_names.front();
  return names;
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

}  // namespace swell::net
