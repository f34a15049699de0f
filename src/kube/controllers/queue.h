// MakeQueue: a work queue whose keys a member function of its owner reconciles.
// - Threads: core executor only.
// - Ownership: the owner outlives its queue, which is one of its members.
#pragma once

#include <string>
#include <utility>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

// A key waits until the shared informers have filled their caches. `reconcile` takes (key, done),
// or done alone where the queue has one key.
template <class Owner, class... Args>
client::WorkQueue MakeQueue(const Context& context,
                            std::string name,
                            size_t parallel_max,
                            Owner* owner,
                            void (Owner::*reconcile)(Args...)) {
  auto run = [&informers = context.informers, owner, reconcile](const std::string& key,
                                                                client::WorkQueue::Done done) {
    if (!informers.synced()) return done(kNotSynced);
    if constexpr (sizeof...(Args) == 2) {
      (owner->*reconcile)(key, std::move(done));
    } else {
      (owner->*reconcile)(std::move(done));
    }
  };
  return client::WorkQueue(context.executor, context.metrics, std::move(name), parallel_max,
                           std::move(run));
}

}  // namespace swell::controllers
