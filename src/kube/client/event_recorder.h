// EventRecorder: writes Kubernetes Events about objects. Equal events become one with a count, as
// kubectl users expect; a flood about one object is limited (25 at once, then one in 5 minutes,
// Kubernetes' own spam filter). A few are written at a time and a bounded number waits, because the
// writes that they report come first. A remote server gets fewer at a time, since each costs it as
// much as a binding.
// - Threads: core executor only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client/client.h"

namespace swell::client {

class EventRecorder {
 public:
  EventRecorder(Executor& executor,
                Clock& clock,
                std::shared_ptr<api::RestHandler> server,
                api::UserInfo user,
                std::string component,
                uint64_t seed,
                std::string host = {});

  // type is Normal or Warning. `object` needs kind, apiVersion and metadata.
  void Record(const json::Value& object,
              std::string_view type,
              std::string_view reason,
              std::string_view message);

  static constexpr int kOpenMax = 32;
  static constexpr int kRemoteOpenMax = 2;
  static constexpr size_t kWaitingMax = 20'000;

 private:
  struct Known {
    std::string name;  // of the Event object; empty while it is being created
    std::string ns;
    int64_t count = 1;
  };
  struct Budget {
    double tokens = 25;
    int64_t refilled_ns = 0;
  };

  struct Write {
    uint64_t key = 0;  // into known_
    bool fresh = false;
    // Makes the request when it is sent: of thousands of events at once, most wait for long.
    std::function<api::RestRequest()> make;
  };

  bool Spend(uint64_t object_key);
  void Send(Write write);
  void Pump();
  std::string NextSuffix();
  void Remember(uint64_t key, const Known& known);

  Clock& clock_;
  std::string component_;
  std::string host_;
  Random random_;
  uint64_t last_tick_ = 0;
  // By hashes of what is told: one of these recorders is on every node.
  std::unordered_map<uint64_t, Known> known_;
  std::deque<uint64_t> known_order_;
  std::unordered_map<uint64_t, Budget> budgets_;
  std::deque<Write> waiting_;
  int open_ = 0;
  Client client_;
};

}  // namespace swell::client
