#include "ui/state/core_calls.h"

#include <utility>

namespace swell::ui {
namespace {

// One call: what the core thread has of it is touched there alone.
struct Crossing {
  std::unique_ptr<api::RestCall> call;  // core
  bool given_up = false;                // core
  std::shared_ptr<api::RestSink> sink;  // pages; null once it is given up
};

// On the core thread: carries each step back.
class BackSink final : public api::RestSink {
 public:
  BackSink(Executor& pages, std::shared_ptr<Crossing> crossing)
      : pages_(pages), crossing_(std::move(crossing)) {}

  void OnResponse(api::RestResponse response) override {
    Back([response = std::move(response)](api::RestSink& to) { to.OnResponse(response); });
  }
  void OnStreamStart(int status, std::string type) override {
    Back([status, type = std::move(type)](api::RestSink& to) { to.OnStreamStart(status, type); });
  }
  bool OnChunk(const api::Chunk& chunk) override {
    if (crossing_->given_up) return false;
    Back([chunk](api::RestSink& to) { to.OnChunk(chunk); });
    return true;
  }
  void OnStreamEnd(const Status& why) override {
    Back([why](api::RestSink& to) { to.OnStreamEnd(why); });
  }

 private:
  template <class F>
  void Back(F step) {
    pages_.Post([crossing = crossing_, step = std::move(step)] {
      if (auto sink = crossing->sink) step(*sink);
    });
  }

  Executor& pages_;
  std::shared_ptr<Crossing> crossing_;
};

// The caller's end. Giving it up ends the call on the core thread, too.
class CrossCall final : public api::RestCall {
 public:
  CrossCall(Executor& core, std::shared_ptr<Crossing> crossing)
      : core_(core), crossing_(std::move(crossing)) {}
  ~CrossCall() override {
    crossing_->sink.reset();
    core_.Post([crossing = crossing_] {
      crossing->given_up = true;
      crossing->call.reset();
    });
  }

 private:
  Executor& core_;
  std::shared_ptr<Crossing> crossing_;
};

class CoreCalls final : public api::RestHandler {
 public:
  CoreCalls(Executor& pages, Executor& core, std::shared_ptr<api::RestHandler> server)
      : pages_(pages), core_(core), server_(std::move(server)) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    auto crossing = std::make_shared<Crossing>();
    crossing->sink = std::move(sink);
    core_.Post([&pages = pages_, server = server_, crossing, request = std::move(request)] {
      if (crossing->given_up) return;
      crossing->call = server->Handle(request, std::make_shared<BackSink>(pages, crossing));
    });
    return std::make_unique<CrossCall>(core_, std::move(crossing));
  }

 private:
  Executor& pages_;
  Executor& core_;
  std::shared_ptr<api::RestHandler> server_;
};

}  // namespace

std::shared_ptr<api::RestHandler> MakeCoreCalls(Executor& pages,
                                                Executor& core,
                                                std::shared_ptr<api::RestHandler> server) {
  return std::make_shared<CoreCalls>(pages, core, std::move(server));
}

}  // namespace swell::ui
