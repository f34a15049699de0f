// PodNetwork: network namespaces for pods, made ahead of need, joined by one bridge.
//
// Each pod gets a namespace with lo and eth0; eth0's other end hangs on the bridge, whose address
// is the host's and the pods' gateway. Names of bridge and links carry the data directory's hash,
// so several clusters live side by side and nobody else's interface is ever touched. Namespaces are
// held by files (bind mounts), not processes: they survive a restart of swell.
//
// The kernel takes milliseconds to tens of milliseconds for a namespace; so a few are kept ready,
// and handing one out costs nothing.
//
// - Threads: Start before anything else; Acquire, Release and Shutdown from one thread (the
//   runtime's I/O thread). Acquire's callback runs through `post`.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/callback_scope.h"
#include "base/result.h"
#include "kube/process/background/idle_worker.h"
#include "kube/process/background/spares.h"
#include "kube/process/network/address_guard.h"
#include "kube/process/network/rule_text.h"

namespace swell::process {

// The machine's user ids that pods of all clusters have, in ranges of kIdsOfPod.
inline constexpr int64_t kFirstRangeOfIds = 0x0800;
inline constexpr int64_t kRangesOfIds = 0x7000;

struct NetworkLease {
  int slot = 0;  // names the namespace and its address
  std::string ip;
  std::string path;
  std::string users;     // the user namespace that owns it; empty: the machine's
  int64_t first_id = 0;  // the machine's id of its root
};

class PodNetwork {
 public:
  struct Options {
    std::string dir;     // where the namespaces' files are
    std::string tag;     // six characters that make names of interfaces ours
    std::string cidr;    // "10.88.0.0/16"; empty: one that is free
    int bits = 16;       // of a network that is chosen: the last one of these in a free /16
    size_t ready = 4;    // namespaces kept ready
    bool users = false;  // each has a user namespace of its own
    std::function<void(std::function<void()>)> post;
  };

  explicit PodNetwork(Options options);
  ~PodNetwork();

  // Makes the bridge, forgets namespaces of slots that are not in use, starts the thread.
  Status Start(const std::set<int>& slots_in_use);
  void Acquire(std::function<void(Result<NetworkLease>)> done);
  // The pod's processes are gone; its namespace follows.
  void Release(int slot);
  // Removes every namespace, link and the bridge. Blocking.
  void Shutdown();

  // Why pods can send with each other's addresses; ok if they cannot. After Start.
  const Status& guarded() const { return guarded_; }
  std::string gateway() const;
  // The host's resolv.conf for pods. Where the host forwards nothing they reach no name server but
  // one of its own: each unknown name would cost many seconds. Elsewhere they ask for two seconds.
  std::string ResolvConf(std::string_view resolv_conf) const;
  NetworkLease LeaseOf(int slot) const;
  // What rules for the pods' traffic are about.
  RuleScope RulesScope() const;
  std::string bridge() const { return "swell" + options_.tag; }

 private:
  Status ChooseSubnet();
  bool MakeOne();
  int NextSlot();
  Status Make(int slot);
  void Destroy(int slot);
  void OnMade(int slot, const Status& status);
  std::string LinkName(int slot) const;
  std::string PathOf(int slot) const;
  std::string UsersPathOf(int slot) const;
  int64_t FirstIdOf(int slot) const;
  PodAddresses AddressesOf(int slot) const;
  Status StartGuard(const std::set<int>& slots_in_use);
  Status EnterNew(int slot) const;

  Options options_;
  uint32_t base_ = 0;
  int prefix_ = 16;
  int bridge_index_ = 0;
  std::set<int> taken_;  // in use, ready or being made
  std::deque<int> ready_;
  std::deque<std::function<void(Result<NetworkLease>)>> waiting_;
  size_t making_ = 0;
  int cursor_ = 1;
  int failures_ = 0;

  AddressGuard guard_;  // the worker's, once it is there
  Status guarded_;
  std::unique_ptr<IdleWorker> worker_;  // where namespaces are made and destroyed
  std::unique_ptr<Spares> spares_;
  CallbackScope scope_;
};

}  // namespace swell::process
