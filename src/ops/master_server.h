// MasterServer: a JobMaster behind HTTP, with its journal.
//
// POST /v1/… with a JSON document each, GET /v1/state, /v1/snapshot, /metrics, /healthz. An answer
// to a request that changed something goes out when the change is on the disk. All requests that
// come meanwhile share the next write and fdatasync, so these grow little with the workers.
//
// - Threads: the reactor's thread; the journal has a thread of its own that only writes.
// - Ownership: reactor and clock outlive the server.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "elastic/job_master.h"
#include "elastic/master_journal.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"

namespace swell::ops {

class MasterServer final : public net::Handler {
 public:
  // `journal` empty: nothing is kept.
  static Result<std::unique_ptr<MasterServer>> Make(net::Reactor& reactor,
                                                    const Clock& clock,
                                                    const std::string& journal);
  ~MasterServer() override;

  void OnRequest(std::shared_ptr<net::Exchange> exchange) override;

  const elastic::JobMaster& master() const { return master_; }

 private:
  struct JournalThread;
  using Waiting = std::vector<std::pair<std::shared_ptr<net::Exchange>, json::Value>>;

  MasterServer(net::Reactor& reactor, const Clock& clock);
  void Get(net::Exchange& exchange);
  void Keep(std::string line);
  void Commit();
  void Committed(const Status& status, Waiting answers);
  void Tick();

  net::Reactor& reactor_;
  const Clock& clock_;
  elastic::JobMaster master_;
  std::unique_ptr<elastic::MasterJournal> journal_;
  std::unique_ptr<JournalThread> thread_;
  // What is not on the disk yet, and who waits for it.
  std::string lines_;
  Waiting waiting_;
  bool committing_ = false;
  uint64_t journal_bytes_ = 0;
  Status broken_;  // the journal's first error: nothing is acknowledged any more
};

}  // namespace swell::ops
