// Firewall: the kernel's table of nftables that keeps the rules of one cluster's pods.
//
// libnftables is opened when the first rules come; without rules there is no table, and packets
// cost nothing. A change is one transaction: the old rules or the new ones hold, never a part.
//
// - Threads: the reactor's; the kernel is asked on a thread of its own, which begins with the first
//   rules. Answers come by `post`.
// - Invariants: at most one change is under way and one waits, the latest.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/callback_scope.h"
#include "kube/node/network_rules.h"
#include "kube/process/background/idle_worker.h"
#include "kube/process/network/rule_text.h"

namespace swell::edge {

class Firewall {
 public:
  using Done = std::function<void(Status)>;
  using Post = std::function<void(std::function<void()>)>;

  Firewall(RuleScope scope, Post post);
  ~Firewall();

  // Why rules cannot be kept here; ok if they can. Removes what an earlier run left. Blocking.
  Status Start();
  void Enforce(node::SharedRules rules, Done done);
  // Where the service proxy listens from now on.
  void SetServices(std::set<std::pair<std::string, uint16_t>> services);
  // Removes the table. Blocking.
  void Shutdown();

  // Null: nothing is limited.
  const node::NetworkRules* rules() const { return rules_.get(); }

 private:
  void Apply();
  std::string RemovalText() const;

  RuleScope scope_;
  Post post_;
  Status usable_;
  node::SharedRules rules_;
  std::set<std::string> chains_;  // of the text in force
  bool active_ = false;           // there is a table
  bool under_way_ = false;
  bool again_ = false;
  std::vector<Done> waiting_;  // for the change that waits
  std::unique_ptr<IdleWorker> worker_;
  CallbackScope scope_of_calls_;
};

}  // namespace swell::edge
