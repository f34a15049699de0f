// GarbageCollector: deletes objects whose owners are gone. Owners deleted with Foreground wait for
// the dependents that block them; owners deleted with Orphan release their dependents first.
//
// It watches every resource of the scheme and keeps only the graph of owners. It reads an unknown
// owner from the API before it deletes a dependent, and every deletion names the uid that was
// decided on.
//
// - Threads: core executor only.
// - Ownership: owns informers of resources that nothing else watches; the scheme outlives it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/scheme.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class GarbageCollector {
 public:
  GarbageCollector(Context context, const api::Scheme& scheme);

  // Watches what is not watched yet; again whenever a CRD comes.
  void Start();

 private:
  using Done = client::WorkQueue::Done;
  struct Node {
    client::Resource resource;
    std::string ns, name, version;
    std::vector<api::OwnerReference> owners;
    bool deleting = false;
    bool foreground = false;  // has the finalizer foregroundDeletion
    bool orphan = false;      // has the finalizer orphan
  };
  struct Verdict;

  void Watch(const client::Resource& resource);
  void OnObject(const client::Resource& resource, const json::Value& object);
  void OnGone(const json::Value& object);
  void Link(const std::string& uid, const std::vector<api::OwnerReference>& owners, bool add);
  void AddDependents(const std::string& uid);

  void Reconcile(const std::string& uid, Done done);
  // Once everything is in view.
  void ReconcileLater(const std::string& uid);
  void AwaitSync();
  void CheckOwners(const std::string& uid, std::shared_ptr<Verdict> verdict, size_t next);
  void Carry(const std::string& uid, const Verdict& verdict);
  // Whether the dependent keeps an owner that is deleted in the foreground.
  static bool Blocks(const Node& dependent, const std::string& owner_uid, const Node& owner);
  void ReconcileForeground(const std::string& uid, const Node& node, Done done);
  // Whether an object that is deleted in the foreground waits for `other`, directly or through
  // others.
  bool WaitsFor(const std::string& uid, const std::string& other) const;
  void ReconcileOrphan(const std::string& uid, const Node& node, Done done);
  void DropOwners(const std::string& uid, const std::set<std::string>& owners, Done done);
  void DropFinalizer(const Node& node, std::string_view finalizer, Done done);
  void DeleteNode(const std::string& uid,
                  const Node& node,
                  std::string_view propagation,
                  Done done);
  bool synced() const;

  Context context_;
  const api::Scheme& scheme_;
  std::map<client::Resource, std::unique_ptr<client::Informer>> own_;
  std::vector<client::Informer*> watched_;
  std::set<client::Resource> seen_;
  std::unordered_map<std::string, Node> nodes_;              // by uid; never iterated
  std::map<std::string, std::set<std::string>> dependents_;  // owner's uid → uids
  std::set<std::string> later_;                              // uids
  Timer sync_timer_{context_.executor};
  bool started_ = false;
  client::WorkQueue queue_;
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::controllers
