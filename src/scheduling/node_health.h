// NodeHealthController: keeps new work off nodes that are unhealthy, and away from nodes on which
// work failed often.
//
//   conditions say a fault   taint swell.dev/unhealthy:NoSchedule, until none has for kCalm
//   failures without a       each adds to the node's score, which decays; from kSuspectScore on the
//   user's error             taint swell.dev/suspect:PreferNoSchedule, until half of it is left
//
// It never stops what runs. What api::FaultsOf counts is a fault. Failures are those of the classes
// Hardware (1) and PeerLost (1/3, and nothing if a member of the same group failed or was taken for
// another cause), and a node that falls silent while pods are on it (1). An annotation of the Node
// keeps them.
//
// - Threads: core executor only.
// - Ownership: the informers outlive it.
// - Invariants: kNodeFailuresKept failures of a node are kept at most, and kCausesMax groups.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kube/api/objects/node_health.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

class NodeHealthController {
 public:
  explicit NodeHealthController(controllers::Context context);

  static constexpr Duration kCalm = std::chrono::seconds(60);
  // How often a suspect node's score is read again.
  static constexpr Duration kEvery = std::chrono::minutes(10);

 private:
  using Done = client::WorkQueue::Done;

  void OnPod(const json::SharedValue& pod);
  void NoteCause(const json::Value& pod, const std::string& group);
  bool TakeNews(const std::string& name,
                const json::Value& node,
                std::vector<api::NodeFailure>& failures,
                Duration& requeue_after);
  void ForgetTaken(const std::string& name);
  void Reconcile(const std::string& name, Done done);
  bool WantUnhealthy(const std::string& name, const json::Value& node, Duration& requeue_after);
  void Report(const json::Value& node,
              const json::Array& before,
              const json::Array& after,
              const std::vector<api::NodeFailure>& failures);

  controllers::Context context_;
  client::Informer& nodes_;
  client::Informer& pods_;
  static constexpr size_t kCausesMax = 4096;
  struct News {
    api::NodeFailure failure;
    std::string group;  // of its pod
    SteadyTime seen;
    bool taken = false;  // is being written, or is explained
  };
  // Failures that are not in the Node's annotation yet, by node.
  std::map<std::string, std::vector<News>, std::less<>> news_;
  // When a member of a group last ended for a cause that explains those of its peers.
  std::map<std::string, SteadyTime, std::less<>> causes_;
  std::map<std::string, SteadyTime, std::less<>> calm_since_;  // of tainted nodes without a fault
  client::EventRecorder events_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::scheduling
