// DeviceClaims: keeps what drivers offer and pods claim in step with the API, for ModelFeeder, and
// gives claims their devices before a pod is bound, for DecisionExecutor.
//
// Giving is two writes for each claim, as kube-scheduler makes them: a finalizer, without which
// nobody would take the devices back, then the devices and the pod as their user. A claim that the
// pod was given for another place loses that first. What was written stays when the binding fails:
// the pod is decided anew.
//
// A pod may request devices as extended resources that no node offers, but classes of devices stand
// for. It gets a claim as soon as it waits, and its status says which request serves which
// container. kube-scheduler makes such a claim when it binds the pod.
//
// Pods without claims cost nothing here. On a cluster that does not serve resource.k8s.io/v1 a pod
// with claims waits, and its reason names that.
//
// - Threads: core executor only. Destroying it forgets what is under way.
// - Ownership: what its constructor takes by reference outlives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/callback_scope.h"
#include "kube/controllers/context.h"
#include "sched_inputs/device_catalog.h"

namespace swell::scheduling {

class DeviceClaims {
 public:
  struct Hooks {
    std::function<void(const std::string& node)> node_changed;
    std::function<void(const json::Value& pod)> pod_changed;
  };
  // Runs once, later: the pod's GPUs, which it requests or claims; or why it cannot be bound.
  using Done = std::function<void(const Result<std::vector<int>>&)>;

  explicit DeviceClaims(controllers::Context context);

  void Watch(Hooks hooks);
  // Makes the class of Swell's own GPUs, if it does not exist. Once all is in sync.
  void MakeOwnClass();

  void AddToNode(sched::NodeInfo& node);
  void AddToPod(const json::Value& pod, sched::PodInfo& out);
  void OnPodDeleted(const json::Value& pod);

  // Gives the pod's claims their devices among those that it was given on the node.
  void Give(const json::SharedValue& pod,
            const std::string& node,
            const std::vector<int>& devices,
            Done done);

 private:
  struct Giving;
  using GivingPtr = std::shared_ptr<Giving>;

  void LookAtResources(const json::Value& pod, sched::PodInfo& out);
  void MakeClaim(const json::Value& pod);
  void TellClaim(const json::Value& pod, const std::string& claim, const json::Array& mappings);
  void OnNotMade(const json::Value& pod, const Status& status);
  bool SomeNodeOffers(const std::string& resource);
  // The class that stands for a resource that no node offers; empty: none does.
  std::string ClassFor(const std::string& resource);
  sched_inputs::DeviceCatalog::View View() const;
  std::vector<json::SharedValue> UsersOf(const std::string& claim) const;
  void OnClaim(const json::Value& claim);
  void OnOffer();
  void TellNodes();
  void RefreshWaiting();
  void Refresh(const std::set<std::string>& pods);
  void GiveNext(const GivingPtr& giving);
  void AwaitClaim(const std::string& key, const GivingPtr& giving);
  void Resume(const std::string& key, const json::Value& claim);
  // The pod has the claim.
  void OnGiven(const GivingPtr& giving, const json::Value& claim);
  void GiveClaim(const GivingPtr& giving, json::Value claim);
  void Write(const GivingPtr& giving,
             const json::Value& claim,
             std::string_view subresource,
             std::function<void(const json::Value&)> then);

  controllers::Context context_;
  const bool served_;
  client::Informer& pods_;
  // Null where the cluster does not serve them.
  client::Informer* claims_ = nullptr;
  client::Informer* classes_ = nullptr;
  client::Informer* slices_ = nullptr;
  client::Informer* taint_rules_ = nullptr;
  sched_inputs::DeviceCatalog catalog_;
  Hooks hooks_;
  std::map<std::string, std::set<std::string>, std::less<>> users_;  // pods that name a claim
  struct Known {
    std::vector<std::string> claims;
    std::string node;
    bool ended = false;
  };
  std::map<std::string, Known, std::less<>> known_;  // pods with claims, and those of `unoffered_`
  std::set<std::string, std::less<>> unoffered_;     // resources of classes that no node offered
  // Pods, by uid, that get a claim to extended resources, and why they got none; empty: it is made.
  std::map<std::string, std::string, std::less<>> making_;
  // Those that were looked for on all nodes in vain, since a node came or changed: many pods may
  // ask for one.
  std::set<std::string, std::less<>> looked_for_;
  std::set<std::string> changed_nodes_;
  bool offers_changed_ = false;  // pods with claims are to be looked at, too
  bool refresh_posted_ = false;
  // Pods that follow another of their gang to a claim, by the claim.
  std::map<std::string, std::vector<GivingPtr>, std::less<>> followers_;
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::scheduling
