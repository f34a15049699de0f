// JobGang: the Workload and the PodGroup of a Job that says how it is scheduled (spec.scheduling),
// as Kubernetes' job controller makes them: before the first pod, and of jobs alone that nobody
// controls and whose template names no group of its own.
//
// The Workload belongs to the job, the PodGroup to both. Their minCount follows the job.
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

  // `jobs` hears of jobs whose objects change.
  JobGang(Context& context,
          client::Client& client,
          client::EventRecorder& events,
          client::WorkQueue& jobs);

  // Calls `ready`, or writes what is missing and ends the pass: the objects' watch brings the next.
  // `fresh`: the job has never started. One that has gets no objects any more.
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

// Whether the pods of the job are a group by what the job says.
bool SaysHowItIsScheduled(const json::Value& job);
// Makes the pod a member of the group.
void JoinGroup(json::Value& pod, const json::Value& group);

}  // namespace swell::controllers
