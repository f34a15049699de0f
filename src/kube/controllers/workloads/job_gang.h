// JobGang: makes the Workload and the PodGroup of a Job with spec.scheduling, as Kubernetes' job
// controller does. It makes them before the first pod. Jobs that have a controller, or whose
// template names a group, get none.
//
// The job owns the Workload, and both own the PodGroup. Their minCount follows the job.
//
// - Threads: core executor only.
// - Ownership: what its constructor takes by reference outlives it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class JobGang {
 public:
  using Done = client::WorkQueue::Done;
  // Null: the job's pods are in no group.
  using Ready = std::function<void(const json::SharedValue& group)>;

  // `jobs` gets the keys of jobs whose objects change.
  JobGang(Context& context,
          client::Client& client,
          client::EventRecorder& events,
          client::WorkQueue& jobs);

  // Calls `ready` if everything is there. Otherwise writes what is missing and ends the pass; the
  // watch of the new object starts the next one. `fresh`: the job has never started. A job that has
  // started gets no new objects.
  void Ensure(const json::SharedValue& job, bool fresh, const Done& done, const Ready& ready);

 private:
  void MakeWorkload(const json::SharedValue& job, const std::string& name, const Done& done);
  void MakeGroup(const json::SharedValue& job,
                 const json::Value& workload,
                 const std::string& name,
                 const Done& done);
  // True: a write is under way.
  bool FollowMinCount(const json::Value& job,
                      const client::Resource& resource,
                      const json::Value& object,
                      const json::Value& spec,
                      std::string_view path,
                      const Done& done);
  client::ObjectCallback Made(const json::SharedValue& job,
                              std::string_view kind,
                              const std::string& name,
                              const Done& done);

  client::Informer& workloads_;
  client::Informer& groups_;
  client::Client& client_;
  client::EventRecorder& events_;
};

// Whether the job's spec makes its pods a group.
bool SaysHowItIsScheduled(const json::Value& job);
// Makes the pod a member of the group.
void JoinGroup(json::Value& pod, const json::Value& group);

}  // namespace swell::controllers
