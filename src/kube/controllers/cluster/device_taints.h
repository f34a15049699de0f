// DeviceTaintEviction: evicts pods whose devices are tainted with NoExecute, by their driver or by
// a DeviceTaintRule, as kube-controller-manager's device-taint-eviction-controller does.
//
// A pod is evicted when a device of a claim that is reserved for it has a taint that the claim does
// not tolerate, or has tolerated long enough. The tolerations are those that the allocation
// recorded.
//
// The status of a rule says how many pods it still has to evict and how many it has, since this
// process began. That of a rule without effect says once what NoExecute would do.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kube/api/objects/device_claim.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class DeviceTaintEviction {
 public:
  explicit DeviceTaintEviction(Context context);

 private:
  // When the pod has to go, and for which taint.
  struct Eviction {
    WallTime at;
    std::string taint;
    std::string rule;  // empty: the driver tainted it
  };

  void OnSlice(const json::SharedValue& slice);
  void OnRule(const json::SharedValue& rule);
  void OnPod(const json::Value& pod);
  void OnClaim(const json::Value& claim);
  void QueueUsers();
  void QueueRules();
  bool Idle() const { return tainting_slices_.empty() && tainting_rules_.empty(); }
  std::optional<Eviction> EvictionOf(const json::Value& pod) const;
  void AddDevice(const api::AllocatedDevice& device, std::optional<Eviction>& out) const;
  void ReconcileRule(const std::string& name, client::WorkQueue::Done done);
  // How many pods use devices of the rule, and would not stay for ever with NoExecute.
  int64_t CountVictims(const json::Value& rule) const;
  bool IsCurrent(const json::Value& slice) const;
  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void Evict(const json::SharedValue& pod,
             const Eviction& eviction,
             const client::WorkQueue::Done& done);

  Context context_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& slices_;
  client::Informer& rules_;
  // Slices and rules with a NoExecute taint, by name.
  std::map<std::string, json::SharedValue, std::less<>> tainting_slices_;
  std::map<std::string, json::SharedValue, std::less<>> tainting_rules_;
  std::map<std::string, int64_t> evicted_;  // by rule's name
  client::WorkQueue queue_;
  client::WorkQueue rule_queue_;
  client::EventRecorder events_;
  client::Client client_;
};

}  // namespace swell::controllers
