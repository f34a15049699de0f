// Context: what every controller gets: clock, randomness, the API server, and shared informers.
// - Threads: core executor only.
// - Ownership: the Context outlives every controller.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/client/event_recorder.h"
#include "kube/client/informer.h"
#include "kube/client/work_queue.h"

namespace swell::controllers {

// A key is looked at again after this, while the caches are not filled yet.
inline constexpr Duration kNotSynced = std::chrono::milliseconds(5);

// One informer per resource for the whole process.
class Informers {
 public:
  Informers(Executor& executor,
            std::shared_ptr<api::RestHandler> server,
            api::UserInfo user,
            uint64_t seed);

  // The informer of a resource, made at the first call; Start() starts those made so far. Indexes:
  // - everything in namespaces: "owner" (uid of its controller), "orphans" (namespace, if it has no
  //   controller)
  // - pods: "node", "group" (key of the pod group), "orphans-of-job" (uid of the batch Job whose
  //   labels the pod carries, if it has no controller)
  // - batch Jobs: "uid", "manual-selector" (namespace, if somebody wrote the selector)
  // - PersistentVolumes: "claim" (key of the claim)
  client::Informer& Of(const client::Resource& resource);
  // Before Of: the group is served in another version than the one that resources name, as
  // policy/v1beta1 was before Kubernetes 1.21.
  void UseVersion(const std::string& group, const std::string& version);
  // Before Of: the server does not know the resource; nobody asks for it.
  void LeaveOut(const client::Resource& resource) { left_out_.insert(resource); }
  bool Serves(const client::Resource& resource) const { return !left_out_.contains(resource); }
  // nullptr when nobody asked for it yet.
  client::Informer* Find(const client::Resource& resource) const;
  // Those asked for so far.
  std::vector<client::Resource> resources() const;
  void Start();
  bool synced() const;
  // Runs once everything that was started is in the caches.
  void WhenSynced(std::function<void()> done);

 private:
  Executor& executor_;
  std::shared_ptr<api::RestHandler> server_;
  api::UserInfo user_;
  uint64_t seed_;
  std::map<std::string, std::string> versions_;  // group → version
  std::set<client::Resource> left_out_;
  std::map<client::Resource, std::unique_ptr<client::Informer>> informers_;
  std::vector<client::Informer*> unstarted_;
};

struct Context {
  Executor& executor;
  Clock& clock;
  Random& random;
  std::shared_ptr<api::RestHandler> server;
  api::UserInfo user;
  Informers& informers;
  Metrics* metrics = nullptr;  // may be null
};

// The event recorder of `component`.
client::EventRecorder MakeRecorder(Context& context, std::string component);

using ObjectHandler = std::function<void(const json::SharedValue&)>;

// Calls `now` for every object that comes or changes, and `gone` for one that goes, as it was last.
void Follow(client::Informer& informer, const ObjectHandler& now, ObjectHandler gone = {});
// Handlers that put a key into the queue: the object's own, or that of its controller of this kind.
ObjectHandler Queued(client::WorkQueue& queue);
ObjectHandler OwnerQueued(client::WorkQueue& queue, std::string kind);

}  // namespace swell::controllers
