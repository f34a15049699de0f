#include "kube/net/tls/tls.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "base/strings.h"
#include "kube/net/tls/freer.h"
#include "kube/net/tls/tls_session.h"

namespace swell::net {
namespace {

using CtxPtr = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using MethodPtr = std::unique_ptr<BIO_METHOD, Freer<BIO_meth_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, Freer<SSL_SESSION_free>>;

constexpr unsigned char kAlpn[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// The oldest error of this thread's queue, which is then empty.
std::string TakeError() {
  unsigned long code = ERR_get_error();  // NOLINT(google-runtime-int): OpenSSL's type
  ERR_clear_error();
  if (code == 0) return "unknown error";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : StrCat("error ", code);
}

Status TlsError(std::string_view what) {
  return Status(Code::kBadRequest, StrCat("tls: ", what, ": ", TakeError()));
}

BioPtr MemoryBio(std::string_view text) {
  return BioPtr(
      BIO_new_mem_buf(text.data(), static_cast<int>(std::min<size_t>(text.size(), INT_MAX))));
}

Result<std::vector<X509Ptr>> ParseCertificates(std::string_view pem, std::string_view what) {
  BioPtr bio = MemoryBio(pem);
  std::vector<X509Ptr> out;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    out.emplace_back(certificate);
  }
  ERR_clear_error();  // the end of the text is reported as an error
  if (out.empty()) {
    return Status(Code::kBadRequest, StrCat("tls: ", what, " holds no PEM certificate"));
  }
  return out;
}

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a vanished peer would raise SIGPIPE.
int SocketWrite(BIO* bio, const char* bytes, int size) {
  auto fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  ssize_t put = send(fd, bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(put);
}

int SocketRead(BIO* bio, char* buffer, int size) {
  auto fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  ssize_t got = recv(fd, buffer, static_cast<size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long SocketControl(BIO*, int command, long, void*) {  // NOLINT(google-runtime-int): OpenSSL's type
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int SelectAlpn(SSL*,
               const unsigned char** out,
               unsigned char* out_size,
               const unsigned char* in,
               unsigned in_size,
               void*) {
  unsigned char* chosen = nullptr;
  int result = SSL_select_next_proto(&chosen, out_size, kAlpn, sizeof(kAlpn), in, in_size);
  *out = chosen;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

Status UseCertificate(SSL_CTX* ctx, const std::string& cert_pem, const std::string& key_pem) {
  SWELL_ASSIGN_OR_RETURN(std::vector<X509Ptr> chain, ParseCertificates(cert_pem, "certificate"));
  if (SSL_CTX_use_certificate(ctx, chain[0].get()) != 1) return TlsError("certificate");
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(ctx, chain[i].get()) != 1) return TlsError("certificate chain");
  }
  BioPtr bio = MemoryBio(key_pem);
  // The callback answers "no password": without it OpenSSL would ask on the terminal.
  auto no_password = [](char*, int, int, void*) { return 0; };
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (key == nullptr) return TlsError("private key");
  if (SSL_CTX_use_PrivateKey(ctx, key.get()) != 1) return TlsError("private key");
  if (SSL_CTX_check_private_key(ctx) != 1) return TlsError("private key does not fit certificate");
  return Status::Ok();
}

Status TrustCertificates(SSL_CTX* ctx, const std::string& ca_pem, bool announce) {
  SWELL_ASSIGN_OR_RETURN(std::vector<X509Ptr> roots, ParseCertificates(ca_pem, "CA bundle"));
  X509_STORE* store = SSL_CTX_get_cert_store(ctx);
  for (const X509Ptr& root : roots) {
    if (X509_STORE_add_cert(store, root.get()) != 1) return TlsError("CA certificate");
    if (announce && SSL_CTX_add_client_CA(ctx, root.get()) != 1) return TlsError("client CA");
  }
  return Status::Ok();
}

std::string NameEntry(const X509_NAME_ENTRY* entry) {
  unsigned char* utf8 = nullptr;
  int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return "";
  std::string text(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  // "admin\0.evil" must not pass for "admin" anywhere.
  return text.find('\0') == std::string::npos ? text : "";
}

void ReadSubject(X509* certificate, std::string* common_name, std::vector<std::string>* orgs) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) *common_name = NameEntry(X509_NAME_get_entry(subject, at));
  at = -1;
  while ((at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0) {
    std::string org = NameEntry(X509_NAME_get_entry(subject, at));
    if (!org.empty()) orgs->push_back(std::move(org));
  }
}

Result<WallTime> ToWallTime(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return TlsError("time in certificate");
  return WallTime{static_cast<int64_t>(timegm(&parts)) * 1'000'000'000};
}

}  // namespace

class TlsContext {
 public:
  TlsContext(CtxPtr ctx, MethodPtr method, bool server)
      : ctx(std::move(ctx)), method(std::move(method)), server(server) {}

  CtxPtr ctx;
  MethodPtr method;
  const bool server;
  bool verify = true;
  std::string server_name;
  SessionPtr session;  // clients: of the latest connection, to resume
};

namespace {

Result<std::shared_ptr<TlsContext>> NewContext(bool server) {
  CtxPtr ctx(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()));
  MethodPtr method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "swell socket"));
  if (ctx == nullptr || method == nullptr) return TlsError("context");
  BIO_meth_set_write(method.get(), SocketWrite);
  BIO_meth_set_read(method.get(), SocketRead);
  BIO_meth_set_ctrl(method.get(), SocketControl);
  SSL_CTX_set_min_proto_version(ctx.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(
      ctx.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(ctx.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(ctx.get(), 1);  // a record's header and content in one system call
  SSL_CTX_set_default_read_buffer_len(ctx.get(), 64 << 10);  // several records, likewise
  return std::make_shared<TlsContext>(std::move(ctx), std::move(method), server);
}

// Keeps the session a server has just granted.
int KeepSession(SSL* ssl, SSL_SESSION* session) {
  auto* context = static_cast<TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  context->session.reset(session);
  return 1;  // ours now
}

}  // namespace

Result<std::shared_ptr<TlsContext>> MakeServerContext(const TlsServerConfig& config) {
  SWELL_ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> context, NewContext(true));
  SSL_CTX* ctx = context->ctx.get();
  SWELL_RETURN_IF_ERROR(UseCertificate(ctx, config.cert_pem, config.key_pem));
  if (!config.client_ca_pem.empty()) {
    SWELL_RETURN_IF_ERROR(TrustCertificates(ctx, config.client_ca_pem, true));
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
  }
  SSL_CTX_set_alpn_select_cb(ctx, SelectAlpn, nullptr);
  // Sessions are only resumed with the server that granted them.
  static constexpr unsigned char kSessionContext[] = "swell";
  SSL_CTX_set_session_id_context(ctx, kSessionContext, sizeof(kSessionContext) - 1);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
  // Two is the default, and each costs as much as checking the client's certificate once more.
  SSL_CTX_set_num_tickets(ctx, 1);
  return context;
}

Result<std::shared_ptr<TlsContext>> MakeClientContext(const TlsClientConfig& config) {
  SWELL_ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> context, NewContext(false));
  SSL_CTX* ctx = context->ctx.get();
  if (!config.cert_pem.empty() || !config.key_pem.empty()) {
    SWELL_RETURN_IF_ERROR(UseCertificate(ctx, config.cert_pem, config.key_pem));
  }
  context->verify = !config.insecure_skip_verify;
  context->server_name = config.server_name;
  if (context->verify) {
    if (config.ca_pem.empty()) {
      if (SSL_CTX_set_default_verify_paths(ctx) != 1) return TlsError("system trust store");
    } else {
      SWELL_RETURN_IF_ERROR(TrustCertificates(ctx, config.ca_pem, false));
    }
  }
  SSL_CTX_set_verify(ctx, context->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (SSL_CTX_set_alpn_protos(ctx, kAlpn, sizeof(kAlpn)) != 0) return TlsError("ALPN");
  SSL_CTX_set_app_data(ctx, context.get());
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(ctx, KeepSession);
  return context;
}

Result<CertificateInfo> DescribeCertificate(std::string_view cert_pem) {
  SWELL_ASSIGN_OR_RETURN(std::vector<X509Ptr> chain, ParseCertificates(cert_pem, "certificate"));
  CertificateInfo info;
  ReadSubject(chain[0].get(), &info.common_name, &info.organizations);
  SWELL_ASSIGN_OR_RETURN(info.not_before, ToWallTime(X509_get0_notBefore(chain[0].get())));
  SWELL_ASSIGN_OR_RETURN(info.not_after, ToWallTime(X509_get0_notAfter(chain[0].get())));
  return info;
}

TlsSession::TlsSession(std::shared_ptr<TlsContext> context, ssl_st* ssl)
    : context_(std::move(context)), ssl_(ssl) {}

TlsSession::~TlsSession() { SSL_free(ssl_); }

Result<std::unique_ptr<TlsSession>> TlsSession::Make(std::shared_ptr<TlsContext> context,
                                                     int fd,
                                                     const std::string& server_name) {
  SSL* ssl = SSL_new(context->ctx.get());
  if (ssl == nullptr) return TlsError("session");
  std::unique_ptr<TlsSession> session(new TlsSession(context, ssl));
  BIO* bio = BIO_new(context->method.get());
  if (bio == nullptr) return TlsError("session");
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  if (context->server) {
    SSL_set_accept_state(ssl);
    return session;
  }
  const std::string& name = context->server_name.empty() ? server_name : context->server_name;
  in6_addr ignored{};
  bool is_ip = inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
               inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
  if (!is_ip && SSL_set_tlsext_host_name(ssl, name.c_str()) != 1) return TlsError("server name");
  if (context->verify) {
    X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    int ok = is_ip ? X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str())
                   : X509_VERIFY_PARAM_set1_host(param, name.c_str(), 0);
    if (ok != 1) return TlsError("server name");
  }
  if (context->session != nullptr) SSL_set_session(ssl, context->session.get());
  SSL_set_connect_state(ssl);
  return session;
}

TlsSession::Io TlsSession::Outcome(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return Io::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Io::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Io::kClosed;
    case SSL_ERROR_SYSCALL:
      error_ =
          result == 0 || errno == 0 ? "connection closed without goodbye" : std::strerror(errno);
      ERR_clear_error();
      return Io::kError;
    default:
      break;
  }
  unsigned long code = ERR_peek_error();  // NOLINT(google-runtime-int): OpenSSL's type
  int reason = ERR_GET_REASON(code);
  plain_http_ = reason == SSL_R_HTTP_REQUEST;
  if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ERR_clear_error();
    // Many programs close without close_notify. HTTP's own framing tells whether that lost data.
    return Io::kClosed;
  }
  error_ = TakeError();
  long verify = SSL_get_verify_result(ssl_);  // NOLINT(google-runtime-int): OpenSSL's type
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verify != X509_V_OK) {
    error_ += StrCat(": ", X509_verify_cert_error_string(verify));
  }
  return Io::kError;
}

TlsSession::Io TlsSession::Handshake() {
  ERR_clear_error();
  int result = SSL_do_handshake(ssl_);
  return result == 1 ? Io::kDone : Outcome(result);
}

TlsSession::Io TlsSession::Read(char* buffer, size_t size, size_t* got) {
  ERR_clear_error();
  *got = 0;
  int result = SSL_read(ssl_, buffer, static_cast<int>(std::min<size_t>(size, INT_MAX)));
  if (result <= 0) return Outcome(result);
  *got = static_cast<size_t>(result);
  return Io::kDone;
}

TlsSession::Io TlsSession::Write(const char* bytes, size_t size, size_t* put) {
  ERR_clear_error();
  *put = 0;
  int result = SSL_write(ssl_, bytes, static_cast<int>(std::min<size_t>(size, INT_MAX)));
  if (result <= 0) return Outcome(result);
  *put = static_cast<size_t>(result);
  return Io::kDone;
}

bool TlsSession::HasPending() const { return SSL_has_pending(ssl_) == 1; }

void TlsSession::SendCloseNotify() {
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_) == 1) (void)SSL_shutdown(ssl_);
  ERR_clear_error();
}

void TlsSession::FillIdentity(PeerIdentity* peer) const {
  peer->tls = true;
  X509Ptr certificate(SSL_get1_peer_certificate(ssl_));
  if (certificate == nullptr || SSL_get_verify_result(ssl_) != X509_V_OK) return;
  ReadSubject(certificate.get(), &peer->common_name, &peer->organizations);
}

}  // namespace swell::net
