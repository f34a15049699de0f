// NetworkWatch: has the NetworkPolicies of the cluster enforced, and says of those that are not
// why. It reads pods and namespaces only while there is a policy.
//
// Changes are passed on at most every 50 ms, the first of them at once.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/client/event_recorder.h"
#include "kube/client/informer.h"
#include "kube/node/network/network_rules.h"

namespace swell::node {

class NetworkWatch {
 public:
  // `enforce`: null where pods have no networks of their own. `nodes`: those of this machine;
  // empty: all of the cluster. Pods of other machines have other networks, where the same addresses
  // may occur.
  NetworkWatch(Executor& executor,
               Clock& clock,
               const std::shared_ptr<api::RestHandler>& server,
               const api::UserInfo& user,
               EnforceRules enforce,
               std::set<std::string, std::less<>> nodes = {});

  void Start();

 private:
  void OnPolicy();
  void OnChange();
  void Flush();
  void OnEnforced(const Status& status);
  std::vector<json::SharedValue> OwnPods() const;

  Executor& executor_;
  std::shared_ptr<api::RestHandler> server_;
  const api::UserInfo user_;
  const EnforceRules enforce_;
  const std::set<std::string, std::less<>> nodes_;
  bool dirty_ = false;
  bool under_way_ = false;
  Timer timer_{executor_};                   // pending: too soon for another flush
  std::map<std::string, std::string> told_;  // uid of a policy → what its event says
  CallbackScope scope_;
  client::EventRecorder events_;
  client::Informer policies_;
  std::unique_ptr<client::Informer> pods_;  // these two once there was a policy
  std::unique_ptr<client::Informer> namespaces_;
};

}  // namespace swell::node
