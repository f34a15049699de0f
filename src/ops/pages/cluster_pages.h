// ClusterPages: the pages of a cluster, embedded or not: their thread, ports, server, and what
// feeds them.
//
//   pages thread   sockets and sessions of the pages, and their views, away from the core thread
//
// - Threads: constructed, started and destroyed on the core's thread; MakeCode on it, too.
// - Ownership: core, clock, server and informers outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/result.h"
#include "cli/access/users.h"
#include "kube/api/rest/rest.h"
#include "kube/controllers/context.h"
#include "kube/net/tls/tls.h"
#include "ui/requests/request_checks.h"

namespace swell::ops {

inline constexpr std::string_view kOff = "off";  // an address where nothing is served

struct PagesOptions {
  std::string address;    // HOST:PORT; empty: the loopback address and the port of the last run
  std::string port_file;  // keeps the port for the next run; empty: nothing does
  std::string cert_pem;   // used on addresses that are not loopback
  std::string key_pem;
  // The port for what pods serve: HOST:PORT; empty: beside `address`, and the port of the last run;
  // kOff: programs of pods are not shown.
  std::string programs_address{kOff};
  std::string programs_port_file;
};

// The servers that the pages ask, on the core's thread.
struct PagesSources {
  std::shared_ptr<api::RestHandler> server;   // what is shown and kept, asked as `user`
  api::UserInfo user;                         // may read all
  std::shared_ptr<api::RestHandler> callers;  // acts with the credentials of each request
  bool registered_users = false;     // the cluster's users are swell's own (swell user create)
  cli::ClusterAddress address = {};  // and where their kubeconfigs lead to
  Metrics* metrics = nullptr;        // also gets the history's last samples; outlives the pages
};

class ClusterPages {
 public:
  // The history is kept in `history_file`; empty: in memory.
  ClusterPages(Executor& core,
               const Clock& clock,
               PagesSources sources,
               const std::string& history_file);
  ~ClusterPages();

  // Opens the ports; requests wait until Start.
  Status Listen(const PagesOptions& options, Random& random);
  // After the controllers have asked for their informers.
  void Start(controllers::Informers& informers, uint64_t seed);
  // Ends the thread; nothing is answered any more.
  void Stop();

  const std::string& url() const;
  // {"code", "url", "expiresSeconds"}: a code that logs in once, as the user of these credentials.
  json::Value MakeCode(const api::Credentials& credentials);

 private:
  struct Impl;
  Status ListenPrograms(const PagesOptions& options,
                        ui::PortKind kind,
                        const std::optional<net::TlsServerConfig>& tls,
                        Random& random);
  const PagesSources sources_;
  std::unique_ptr<Impl> impl_;
};

// Misuse unless each is kOff, empty or an address, and browsers reach both alike. `pages`: the
// value of --ui-address; `programs`: that of --ui-programs-address.
Status CheckPagesAddresses(const std::string& pages, const std::string& programs);

}  // namespace swell::ops
