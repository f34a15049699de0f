// What tests of upgraded connections share, so that they leave nothing behind. WireWatch: a
// RestHandler that hands requests on and remembers the connections it saw, so that a test can wait
// until nothing holds one any more.
//
// - Threads: one executor. Ownership: keeps the handler behind it.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kube/api/rest/rest.h"
#include "kube/net/net_testing.h"
#include "kube/net/reactor/reactor.h"

namespace swell::edge {

class WireWatch final : public api::RestHandler {
 public:
  explicit WireWatch(std::shared_ptr<api::RestHandler> behind) : behind_(std::move(behind)) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    return behind_->Handle(std::move(request), std::make_shared<Sink>(wires_, std::move(sink)));
  }

  // No request any more: the handler behind goes, unless others keep it.
  void Drop() { behind_.reset(); }
  bool AllGone() const {
    return std::all_of(wires_->begin(), wires_->end(),
                       [](const auto& wire) { return wire.expired(); });
  }

 private:
  using Wires = std::vector<std::weak_ptr<api::DuplexStream>>;

  class Sink final : public api::RestSink {
   public:
    Sink(std::shared_ptr<Wires> wires, std::shared_ptr<api::RestSink> sink)
        : wires_(std::move(wires)), sink_(std::move(sink)) {}
    void OnResponse(api::RestResponse response) override { sink_->OnResponse(std::move(response)); }
    void OnStreamStart(int status, std::string content_type) override {
      sink_->OnStreamStart(status, std::move(content_type));
    }
    bool OnChunk(const api::Chunk& chunk) override { return sink_->OnChunk(chunk); }
    void OnStreamEnd(const Status& why) override { sink_->OnStreamEnd(why); }
    api::DuplexPtr OnUpgrade(api::HeaderList headers) override {
      auto wire = sink_->OnUpgrade(std::move(headers));
      wires_->push_back(wire);
      return wire;
    }

   private:
    const std::shared_ptr<Wires> wires_;
    const std::shared_ptr<api::RestSink> sink_;
  };

  std::shared_ptr<api::RestHandler> behind_;
  const std::shared_ptr<Wires> wires_ = std::make_shared<Wires>();
};

// When a connection is gone, what it carried learns so by posts, each of which may post the next:
// there are never as many pipes behind one another as rounds here.
inline void RunPosted(net::Reactor& core) {
  for (int round = 0; round < 16; ++round) {
    bool ran = false;
    core.Post([&ran] { ran = true; });
    EXPECT_TRUE(core.RunUntil([&ran] { return ran; }, net::kPatience));
  }
}

}  // namespace swell::edge
