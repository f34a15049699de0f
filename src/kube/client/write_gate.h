// WriteGate: a RestHandler before another, through which writes pass only while they may: for a
// replica that must not write when it does not lead. A request that passes names the term in which
// it was sent (kube/api/meta/lease_term.h), so that a server can refuse it when it arrives after
// the term's end.
//
// Reads, watches and Events always pass. Few other writes are open at a time; one that waits is
// checked again when its turn comes, so that a process that was held up, or slept, sends nothing
// late. A write that may not pass is answered 429, as by a server that is busy: it was not made,
// and the caller retries later.
//
// - Threads: core executor only.
// - Ownership: calls and sinks may outlive it. Bounds: as many wait as `waiting_max`, then 429.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kube/api/rest/rest.h"

namespace swell::client {

class WriteGate final : public api::RestHandler {
 public:
  // Enough to keep a transport's connections busy.
  static constexpr size_t kUnderWayMax = 64;
  static constexpr size_t kWaitingMax = 200'000;

  // `term`: in which writes may be made now; empty: for ever; nothing: they may not.
  WriteGate(std::shared_ptr<api::RestHandler> server,
            std::function<std::optional<std::string>()> term,
            size_t waiting_max = kWaitingMax,
            size_t under_way_max = kUnderWayMax);
  ~WriteGate() override;

  // Gives up what waits, and what is under way: that is answered 503, for it may have been made.
  void Cut();
  // Writes that passed and are not answered.
  size_t under_way() const;

  [[nodiscard]] std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                                      std::shared_ptr<api::RestSink> sink) override;

 private:
  struct Write;
  struct State;
  class Call;
  class Sink;

  std::shared_ptr<State> state_;
};

}  // namespace swell::client
