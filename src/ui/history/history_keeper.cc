#include "ui/history/history_keeper.h"

#include <cmath>
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

HistoryKeeper::~HistoryKeeper() {
  // The counters of now: those of the last sample would lack what was counted since.
  if (state_.known()) history_.Add(NowSeconds(), SampleCluster(state_, clock_.Now()));
  Write();
}

void HistoryKeeper::Start() {
  if (file_) Restore();
  SampleNext();
}

void HistoryKeeper::Restore() {
  int64_t written_s = 0;
  Status read = file_->Load([this](const HistoryPiece& piece) { history_.Restore(piece); });
  if (read.ok()) {
    read = file_->LoadTimelines(
        [this](const KeptTimeline& one) { state_.members().Restore(one.job, one.text); },
        written_s);
  }
  state_.SetRestoredUntil({written_s * 1'000'000'000});
  for (const auto& [series, pods] : history_.Newest("preemptions_by_rule")) {
    state_.evictions().Restore(std::string(series.Label("rule")), std::llround(pods));
  }
  if (!read.ok()) {
    SWELL_LOG_WARNING("pages", "a part of the history cannot be read", {"error", read.ToString()});
  }
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
                   TakeSample();
                 });
  });
}

void HistoryKeeper::TakeSample() {
  if (!state_.known()) return;
  const std::vector<Sample> samples = SampleCluster(state_, clock_.Now());
  history_.Add(NowSeconds(), samples);
  if (heard_) heard_(samples);
  if (clock_.Steady() - written_ >= kWriteEvery) Write();
}

void HistoryKeeper::Write() {
  written_ = clock_.Steady();
  if (!file_) {
    static_cast<void>(state_.members().TakeChanged());
    return;
  }
  for (HistoryPiece& piece : history_.TakeChanges()) unwritten_.push_back(std::move(piece));
  Status written = file_->Write(unwritten_, NowSeconds());
  if (unwritten_.size() > kUnwrittenMax) unwritten_.clear();
  if (written.ok()) {
    unwritten_.clear();
    written = WriteTimelines();
  }
  if (written.ok()) {
    failing_ = false;
  } else if (!std::exchange(failing_, true)) {
    SWELL_LOG_WARNING("pages", "the history is not written", {"error", written.ToString()});
  }
}

// Before anything is known, what was written last stays the last word.
Status HistoryKeeper::WriteTimelines() {
  if (!state_.known()) return Status::Ok();
  unwritten_jobs_.merge(state_.members().TakeChanged());
  std::vector<KeptTimeline> timelines;
  for (const std::string& job : unwritten_jobs_) {
    const JobLog* log = state_.members().Find(job);
    timelines.push_back({job, log == nullptr ? "" : TextOf(*log)});
  }
  const Status written = file_->WriteTimelines(timelines, NowSeconds());
  if (written.ok() || unwritten_jobs_.size() > kUnwrittenMax) unwritten_jobs_.clear();
  return written;
}

}  // namespace swell::ui
