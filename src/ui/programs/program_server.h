// ProgramServer: the port for programs that pods serve, such as TensorBoard. It is a port of its
// own, since another port is another origin: what pods serve cannot act as the pages.
//
//   /open?ticket=…   exchanges a ticket of the pages for a cookie, and leads to
//   /p/PATH/…        the program, through PodRelay, as the user of the session that opened it
//
// On loopback addresses the pages and the programs also have different host names (127.0.0.1 and
// localhost): browsers keep cookies by host and not by port.
//
// - Threads: the pages' executor, which its HttpServer's reactor is.
// - Ownership: clock and relay outlive it.
// - Errors: 401 without a cookie or after the session's end, 403 for other hosts and origins; see
//   PodRelay for the rest.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "kube/api/rest/rest.h"
#include "kube/net/http/server.h"
#include "ui/programs/openings.h"
#include "ui/programs/pod_relay.h"
#include "ui/requests/request_checks.h"

namespace swell::ui {

struct ProgramPlugs {
  const Clock& clock;
  std::function<std::string()> secret;  // 256 random bits as text
  // Notes that the session is used, and tells its credentials. Null: it is over.
  std::function<const api::Credentials*(std::string_view session)> use_session;
  PodRelay* relay = nullptr;  // null: programs are not shown
};

class ProgramServer final : public net::Handler {
 public:
  explicit ProgramServer(ProgramPlugs plugs);

  // Before the first request. Without it, programs are not shown.
  void SetPort(PortKind kind, uint16_t port) {
    kind_ = kind;
    port_ = port;
  }
  bool listens() const { return port_ != 0 && plugs_.relay != nullptr; }

  // Where a browser opens the Service for this session, once and soon. `host`: of the pages, as the
  // browser names it.
  std::string Open(const std::string& session,
                   const std::string& ns,
                   const std::string& service,
                   std::string_view host);
  // Its programs end.
  void EndSession(const std::string& session);
  // The sessions that have programs open.
  std::set<std::string> Sessions() const { return openings_.Sessions(); }

  void OnRequest(std::shared_ptr<net::Exchange> exchange) override;

 private:
  using ExchangePtr = std::shared_ptr<net::Exchange>;

  void Redeem(const ExchangePtr& exchange);
  void Show(const ExchangePtr& exchange);
  std::string Cookie(const Opening& opening) const;

  const ProgramPlugs plugs_;
  PortKind kind_;
  uint16_t port_ = 0;
  Openings openings_;
};

}  // namespace swell::ui
