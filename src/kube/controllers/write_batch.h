// How a reconcile pass ends with its writes: with when to look again, or with an error. An object
// that is gone already, or there already, is mostly none: the watch tells what is to be done next.
//
// Outcome, Ends: a pass with one write. WriteBatch: one with several; it ends the pass when the
// last one is answered, with the first error.
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
                                Duration look_again = {},
                                const std::vector<Code>& fine = {Code::kNotFound}) {
  const bool ends = status.ok() || std::find(fine.begin(), fine.end(), status.code()) != fine.end();
  return ends ? Result<Duration>(look_again) : Result<Duration>(status);
}
// The callback for that write.
inline client::ObjectCallback Ends(client::WorkQueue::Done done,
                                   Duration look_again = {},
                                   std::vector<Code> fine = {Code::kNotFound}) {
  return [done = std::move(done), look_again,
          fine = std::move(fine)](const Result<json::SharedValue>& result) {
    done(Outcome(result.status(), look_again, fine));
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
    if (look_again_.count() == 0 || delay < look_again_) look_again_ = delay;
  }
  void Fail(const Status& status) {
    if (first_error_.ok()) first_error_ = status;
  }
  // No more writes follow.
  void Close() { End(Status::Ok()); }

 private:
  void End(const Status& status) {
    const auto outcome = Outcome(status, {}, {Code::kNotFound, Code::kAlreadyExists});
    if (!outcome.ok()) Fail(status);
    if (--pending_ == 0) done_(Outcome(first_error_, look_again_, {}));
  }

  client::WorkQueue::Done done_;
  Duration look_again_{0};
  int pending_ = 1;  // one for whoever starts the writes
  Status first_error_;
};

inline std::shared_ptr<WriteBatch> MakeBatch(client::WorkQueue::Done done) {
  return std::make_shared<WriteBatch>(std::move(done));
}

}  // namespace swell::controllers
