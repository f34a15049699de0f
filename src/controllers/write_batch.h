// WriteBatch: several writes of one reconcile pass. It ends the pass when the last one is answered:
// with the first error, or with when to look again. What is gone already, or there already, is no
// error. Thread-safety: core executor only. Shared by the writes' callbacks.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "client/client.h"
#include "client/work_queue.h"

namespace swell::controllers {

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
  void LookAgainIn(Duration delay) {
    if (look_again_.count() == 0 || delay < look_again_) look_again_ = delay;
  }
  void Fail(const Status& status) {
    if (first_error_.ok()) first_error_ = status;
  }
  // No more writes follow.
  void Close() { End(Status::Ok()); }

 private:
  void End(const Status& status) {
    const bool fine =
        status.ok() || status.code() == Code::kNotFound || status.code() == Code::kAlreadyExists;
    if (!fine) Fail(status);
    if (--pending_ > 0) return;
    done_(first_error_.ok() ? Result<Duration>(look_again_) : Result<Duration>(first_error_));
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
