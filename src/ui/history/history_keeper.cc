#include "ui/history/history_keeper.h"

#include <utility>

#include "base/log.h"

namespace swell::ui {

HistoryKeeper::HistoryKeeper(Executor& pages,
                             const Clock& clock,
                             ClusterState& state,
                             std::shared_ptr<api::RestHandler> server,
                             api::UserInfo user,
                             std::unique_ptr<HistoryFile> file)
    : clock_(clock),
      state_(state),
      file_(std::move(file)),
      written_(clock.Steady()),
      timer_(pages),
      client_(pages, std::move(server), std::move(user), "swell-pages") {}

HistoryKeeper::~HistoryKeeper() { Write(); }

void HistoryKeeper::Start() {
  if (file_) {
    const Status read = file_->Load([this](const HistoryPiece& piece) { history_.Restore(piece); });
    if (!read.ok()) {
      SWELL_LOG_WARNING("pages", "a part of the history cannot be read",
                        {"error", read.ToString()});
    }
  }
  SampleNext();
}

int64_t HistoryKeeper::NowSeconds() const { return clock_.Now().unix_ns / 1'000'000'000; }

// At whole steps of the clock, a little behind: a sample early by a moment would fall into the slot
// before.
void HistoryKeeper::SampleNext() {
  const Duration into = Duration(clock_.Now().unix_ns % kSampleEvery.count());
  timer_.Start(kSampleEvery - into + std::chrono::milliseconds(100), [this] {
    SampleNext();
    // What pods use is asked of their nodes, which may take a moment or fail.
    client_.Call({.method = "GET", .path = "/apis/metrics.k8s.io/v1beta1/pods"},
                 [this](const Result<api::RestResponse>& answer) {
                   std::optional<json::Value> list;
                   if (answer.ok()) {
                     auto parsed = json::Parse(answer->BodyString());
                     if (parsed.ok()) list = std::move(*parsed);
                   }
                   state_.SetUsage(list ? &*list : nullptr);
                   Sample();
                 });
  });
}

void HistoryKeeper::Sample() {
  if (!state_.known()) return;
  history_.Add(NowSeconds(), SampleCluster(state_, clock_.Now()));
  if (clock_.Steady() - written_ >= kWriteEvery) Write();
}

void HistoryKeeper::Write() {
  written_ = clock_.Steady();
  if (!file_) return;
  for (HistoryPiece& piece : history_.TakeChanges()) unwritten_.push_back(std::move(piece));
  const Status written = file_->Write(unwritten_, NowSeconds());
  if (unwritten_.size() > kUnwrittenMax) unwritten_.clear();
  if (written.ok()) {
    unwritten_.clear();
    failing_ = false;
  } else if (!std::exchange(failing_, true)) {
    SWELL_LOG_WARNING("pages", "the history is not written", {"error", written.ToString()});
  }
}

}  // namespace swell::ui
