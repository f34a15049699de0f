// Firewall: the kernel's table of nftables that keeps the rules of one cluster's pods.
//
// Without rules there is no table, and packets cost nothing. A change is one transaction: the old
// rules or the new ones hold, never a part. The table outlives swell, as pods do: after a restart
// the old rules hold until the first new ones are there.
//
// - Threads: the reactor's; the kernel is asked on a thread of its own, which begins with the first
//   rules. Answers come by `post`.
// - Invariants: at most one change is under way and one waits, the latest. An old table is never
//   changed in parts: it is replaced whole, or removed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/callback_scope.h"
#include "kube/node/network/network_rules.h"
#include "kube/process/background/idle_worker.h"
#include "kube/process/network/rule_text.h"

namespace swell::process {

class Firewall {
 public:
  using Done = std::function<void(Status)>;
  using Post = std::function<void(std::function<void()>)>;

  Firewall(RuleScope scope, Post post);
  ~Firewall();

  // Why rules cannot be kept here; ok if they can. What an earlier run left stays. Blocking.
  Status Start();
  void Enforce(node::SharedRules rules, Done done);
  // Where the service proxy listens from now on.
  void SetServices(std::set<std::pair<std::string, uint16_t>> services);
  // Removes the table. Blocking.
  void Shutdown();

  // Whether the service proxy may dial for the client. While only the kernel knows the rules, those
  // of an earlier run, it may not.
  bool Allows(const std::string& from, const std::string& to, uint16_t port) const;

 private:
  void Apply();
  std::string RemovalText() const;

  RuleScope scope_;
  Post post_;
  Status usable_;
  node::SharedRules rules_;
  std::set<std::string> chains_;  // of the text in force
  bool active_ = false;           // there is a table
  bool inherited_ = false;        // and an earlier run made it
  bool told_ = false;             // somebody has said what the rules are
  bool under_way_ = false;
  bool again_ = false;
  std::vector<Done> waiting_;  // for the change that waits
  std::unique_ptr<IdleWorker> worker_;
  CallbackScope scope_of_calls_;
};

}  // namespace swell::process
