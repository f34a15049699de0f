// WriteBatch: ends a reconcile pass when the last of its writes is answered: with the first error,
// or with the time after which to requeue. Outcome and Ends do that for a pass with one write.
//
// An object that is already gone, or already exists, is not an error: the watch requeues its owner.
//
// - Threads: core executor only.
// - Ownership: a batch is shared by its writes' callbacks.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kube/client/client.h"
#include "kube/client/work_queue.h"

namespace swell::controllers {

inline Result<Duration> Outcome(const Status& status,
                                Duration requeue_after = {},
                                const std::vector<Code>& fine = {Code::kNotFound}) {
  const bool ends = status.ok() || std::find(fine.begin(), fine.end(), status.code()) != fine.end();
  return ends ? Result<Duration>(requeue_after) : Result<Duration>(status);
}
// The callback of a pass with one write.
inline client::ObjectCallback Ends(client::WorkQueue::Done done,
                                   Duration requeue_after = {},
                                   std::vector<Code> fine = {Code::kNotFound}) {
  return [done = std::move(done), requeue_after,
          fine = std::move(fine)](const Result<json::SharedValue>& result) {
    done(Outcome(result.status(), requeue_after, fine));
  };
}

class WriteBatch : public std::enable_shared_from_this<WriteBatch> {
 public:
  explicit WriteBatch(client::WorkQueue::Done done) : done_(std::move(done)) {}

  // A callback for one write; `then` sees its outcome first.
  client::ObjectCallback Track(std::function<void(const Result<json::SharedValue>&)> then = {}) {
    ++pending_;
    return [self = shared_from_this(),
            then = std::move(then)](const Result<json::SharedValue>& result) {
      if (then) then(result);
      self->End(result.status());
    };
  }
  void RequeueAfter(Duration delay) {
    if (requeue_after_.count() == 0 || delay < requeue_after_) requeue_after_ = delay;
  }
  // The pass ends with the first error that is set. Ok has no effect.
  void Fail(const Status& status) {
    if (first_error_.ok()) first_error_ = status;
  }
  // No more writes follow.
  void Close() { End(Status::Ok()); }

 private:
  void End(const Status& status) {
    const auto outcome = Outcome(status, {}, {Code::kNotFound, Code::kAlreadyExists});
    if (!outcome.ok()) Fail(status);
    if (--pending_ == 0) done_(Outcome(first_error_, requeue_after_, {}));
  }

  client::WorkQueue::Done done_;
  Duration requeue_after_{0};
  int pending_ = 1;  // one until Close()
  Status first_error_;
};

inline std::shared_ptr<WriteBatch> MakeBatch(client::WorkQueue::Done done) {
  return std::make_shared<WriteBatch>(std::move(done));
}

}  // namespace swell::controllers
