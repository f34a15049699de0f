// SimWatcher: a client that lists and watches one resource through thick and thin, and compares
// every event with what became durable: none may be missing, doubled, out of order or early.
//
// It says "expired" only to a server that has started since it last heard of one; such a server has
// no history.
//
// - Threads: one thread.
// - Ownership: history and executor outlive it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/timer.h"
#include "kube/client/client.h"
#include "sim/sim_history.h"

namespace swell::sim {

class SimWatcher {
 public:
  SimWatcher(SimExecutor& executor,
             std::shared_ptr<api::RestHandler> server,
             api::UserInfo user,
             client::Resource resource,
             SimHistory& history,
             uint64_t seed);

  void Start();
  // The API server was started anew: places in its history may be gone.
  void OnServerStart() { may_expire_ = true; }
  // Whether it knows all that is durable.
  bool current() const;
  size_t events() const { return events_; }
  std::string Summary() const;

 private:
  void List();
  void OnList(Result<client::ObjectList> list);
  void Watch();
  void OnLine(std::string_view line);
  void OnEvent(std::string_view type, const json::Value& object);
  void Expired(const std::string& how);
  void Retry();

  SimExecutor& executor_;
  client::Resource resource_;
  std::string stored_as_;
  SimHistory& history_;
  Random random_;
  bool listed_ = false;
  bool may_expire_ = false;
  uint64_t version_ = 0;  // of the newest event or bookmark
  size_t next_ = 0;       // the next event's place in the history
  size_t events_ = 0;
  std::string partial_;
  Timer retry_{executor_};
  std::unique_ptr<client::Stream> stream_;
  client::Client client_;  // last: destroyed first
};

}  // namespace swell::sim
