// What every controller is given: time, chance, the API server, and the informers they share.
//
// Thread-safety: core executor only. The Context outlives every controller.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "client/informer.h"

namespace swell::controllers {

// Labels and annotations that Swell's components agree on.
namespace keys {
inline constexpr std::string_view kPodGroup = "swell.dev/pod-group";      // label on pods
inline constexpr std::string_view kPodSet = "swell.dev/pod-set";          // label on pods
inline constexpr std::string_view kProject = "swell.dev/project";         // label on pods, jobs
inline constexpr std::string_view kGpuDevices = "swell.dev/gpu-devices";  // "0,2"
inline constexpr std::string_view kGpuFraction = "swell.dev/gpu-fraction";
inline constexpr std::string_view kGpuMemory = "swell.dev/gpu-memory";
inline constexpr std::string_view kGpuFractionDevices = "swell.dev/gpu-fraction-devices";
inline constexpr std::string_view kMemberPriority = "swell.dev/member-priority";
inline constexpr std::string_view kCheckpointTime = "swell.dev/checkpoint-time";
inline constexpr std::string_view kStep = "swell.dev/step";
inline constexpr std::string_view kPreemptedBy = "swell.dev/preempted-by";      // "ns/pod"
inline constexpr std::string_view kPreemptedRule = "swell.dev/preempted-rule";  // "preempt"
inline constexpr std::string_view kPreemptedMessage = "swell.dev/preempted-message";
inline constexpr std::string_view kPreemptedLost = "swell.dev/preempted-lost-gpu-seconds";
inline constexpr std::string_view kOnPreemption = "swell.dev/on-preemption";  // Requeue, Fail
}  // namespace keys

// One informer per resource for the whole process.
class Informers {
 public:
  Informers(Executor& executor,
            std::shared_ptr<api::RestHandler> server,
            api::UserInfo user,
            uint64_t seed);

  // The informer of a resource, made at the first call; Start() starts those made so far.
  // Pods are indexed by "node", "group" (ns/pod-group label) and "owner" (controller's uid).
  client::Informer& Of(const client::Resource& resource);
  // nullptr when nobody asked for it yet.
  client::Informer* Find(const client::Resource& resource) const;
  void Start();
  bool synced() const;
  // Runs once everything that was started is in the caches.
  void WhenSynced(std::function<void()> done);

 private:
  Executor& executor_;
  std::shared_ptr<api::RestHandler> server_;
  api::UserInfo user_;
  uint64_t seed_;
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
};

}  // namespace swell::controllers
