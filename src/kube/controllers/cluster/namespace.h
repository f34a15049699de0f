// NamespaceController: deletes the objects of namespaces that are being deleted, resource by
// resource, and then removes the finalizer. The namespace's conditions report what remains.
// - Threads: core executor only. The scheme outlives it.
#pragma once

#include <memory>
#include <string>

#include "kube/api/schema/scheme.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class NamespaceController {
 public:
  NamespaceController(Context context, const api::Scheme& scheme);

 private:
  using Done = client::WorkQueue::Done;
  struct Sweep;  // one look at everything in one namespace

  void Reconcile(const std::string& name, Done done);
  void SweepNext(const std::shared_ptr<Sweep>& sweep);
  void DeleteAll(const std::shared_ptr<Sweep>& sweep, const client::Resource& resource);
  // Counts what deletion has left, then continues with the next resource.
  void CountRest(const std::shared_ptr<Sweep>& sweep, const client::Resource& resource);
  void Finish(const std::shared_ptr<Sweep>& sweep);
  bool SetConditions(const Sweep& sweep, json::Array& conditions) const;
  void Finalize(const std::shared_ptr<Sweep>& sweep);

  Context context_;
  const api::Scheme& scheme_;
  client::Informer& namespaces_;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::controllers
