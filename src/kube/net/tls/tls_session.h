// TlsSession: one TLS connection over a non-blocking socket. For net itself and for probes of pods.
// OpenSSL stays in tls.cc.
// - Threads: none. The socket must outlive the session.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/net/tls/peer_identity.h"
#include "kube/net/tls/tls.h"

struct ssl_st;

namespace swell::net {

class TlsSession {
 public:
  enum class Io { kDone, kWantRead, kWantWrite, kClosed, kError };

  // `server_name` for clients: what the certificate must name, unless the context skips that.
  static Result<std::unique_ptr<TlsSession>> Make(std::shared_ptr<TlsContext> context,
                                                  int fd,
                                                  const std::string& server_name);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  Io Handshake();
  Io Read(char* buffer, size_t size, size_t* got);
  Io Write(const char* bytes, size_t size, size_t* put);
  // Bytes already off the socket that Read would give: no readiness will announce them.
  bool HasPending() const;
  // Tells the peer that nothing follows; best effort.
  void SendCloseNotify();
  // True when the peer speaks plain HTTP to this TLS port.
  bool SawPlainHttp() const { return plain_http_; }
  void FillIdentity(PeerIdentity* peer) const;
  // After kError.
  const std::string& error() const { return error_; }

 private:
  TlsSession(std::shared_ptr<TlsContext> context, ssl_st* ssl);
  Io Outcome(int result);

  std::shared_ptr<TlsContext> context_;
  ssl_st* ssl_;
  std::string error_;
  bool plain_http_ = false;
};

}  // namespace swell::net
