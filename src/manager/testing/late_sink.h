// LateSink: passes answers on some time later, as a busy server would give them.
// - Threads: the executor's.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/executor.h"
#include "kube/api/rest/rest.h"

namespace swell::manager {

class LateSink final : public api::RestSink {
 public:
  LateSink(Executor& executor, Duration late, std::shared_ptr<api::RestSink> to)
      : executor_(executor), late_(late), to_(std::move(to)) {}
  void OnResponse(api::RestResponse response) override {
    executor_.After(late_, [to = to_, response] { to->OnResponse(response); });
  }
  // At once, since it has no objects that could be late.
  void OnStreamStart(int status, std::string type) override {
    to_->OnStreamStart(status, std::move(type));
  }
  bool OnChunk(const api::Chunk& chunk) override {
    executor_.After(late_, [to = to_, chunk] { to->OnChunk(chunk); });
    return true;
  }
  void OnStreamEnd(const Status& why) override {
    executor_.After(late_, [to = to_, why] { to->OnStreamEnd(why); });
  }

 private:
  Executor& executor_;
  const Duration late_;
  std::shared_ptr<api::RestSink> to_;
};

}  // namespace swell::manager
