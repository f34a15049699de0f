// JobAdoption: what Adoption (workload.h) is to other kinds, for batch Jobs. The writes must be
// done before the job is reconciled, and carry the finalizer that keeps a pod until it is counted.
// An Indexed job adopts no pod without an index of its own.
//
// - Threads: core executor only.
#pragma once

#include <string>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class JobAdoption {
 public:
  JobAdoption(Context& context, client::Client& client, std::string finalizer);

  // Keys of the jobs that may adopt the pod.
  std::vector<std::string> JobsFor(const json::Value& orphan) const;
  // True if pods are adopted or released: `done` is called when that is written, and the watch of
  // the pods brings the job back.
  bool AdoptAndRelease(const json::Value& job, const client::WorkQueue::Done& done);

 private:
  std::vector<json::SharedValue> OrphansOf(const json::Value& job) const;
  json::Value Adopted(const json::Value& job, const json::Value& pod) const;
  json::Value Released(const json::Value& job, const json::Value& pod) const;

  client::Informer& jobs_;
  client::Informer& pods_;
  client::Client& client_;
  const std::string finalizer_;
};

}  // namespace swell::controllers
