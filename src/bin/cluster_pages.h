// ClusterPages: the pages of an embedded cluster: their thread, port, server, and what feeds them.
//
//   pages thread   sockets and sessions of the pages, and their views, away from the core thread
//
// - Threads: constructed, started and destroyed on the core's thread; MakeCode on it, too.
// - Ownership: core, clock, server and informers outlive it.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "kube/controllers/context.h"
#include "ops/data_dir.h"

namespace swell {

struct PagesOptions {
  std::string address;  // HOST:PORT; empty: the loopback address and the port of the last run
  DataDir data_dir;
  Pki pki;  // its server certificate is used on addresses that are not loopback
};

class ClusterPages {
 public:
  // `user` may read all; the history is kept in `history_file`.
  ClusterPages(Executor& core,
               const Clock& clock,
               std::shared_ptr<api::RestHandler> server,
               api::UserInfo user,
               const std::string& history_file);
  ~ClusterPages();

  // Opens the port; requests wait until Start.
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
  const api::UserInfo user_;
  std::unique_ptr<Impl> impl_;
};

// Whether a HOST:PORT is of this machine only.
bool IsLoopback(const std::string& address);

}  // namespace swell
