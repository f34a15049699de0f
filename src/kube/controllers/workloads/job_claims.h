// JobClaims: the pods of a batch Job by its selector, as in Kubernetes: a pod that nobody controls
// becomes the job's, with the finalizer of its books, and a pod that the job does not select any
// more is let go. An Indexed job takes no pod without an index of its own.
//
// - Threads: core executor only.
#pragma once

#include <string>
#include <vector>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class JobClaims {
 public:
  JobClaims(Context& context, client::Client& client, std::string finalizer);

  // Keys of the jobs that may adopt the pod.
  std::vector<std::string> JobsFor(const json::Value& orphan) const;
  // True: pods change hands, and `done` is called. The watch brings the pods, and so the job, back.
  bool Settle(const json::Value& job, const client::WorkQueue::Done& done);

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
