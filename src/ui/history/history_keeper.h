// HistoryKeeper: takes the cluster's numbers every kSampleEvery and writes them and the timelines
// of jobs down every kWriteEvery, so that a crash loses a minute at most.
// - Threads: the pages' executor; the file is written on its thread.
// - Ownership: executor, clock, state and server outlive it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/timer.h"
#include "kube/client/client.h"
#include "ui/history/history_file.h"
#include "ui/history/sampler.h"

namespace swell::ui {

class HistoryKeeper {
 public:
  static constexpr Duration kSampleEvery = std::chrono::seconds(kRings[0].step_s);
  static constexpr Duration kWriteEvery = std::chrono::seconds(60);
  static constexpr size_t kUnwrittenMax = 50'000;

  // `user` may read what pods use. `file` null: nothing outlives the process.
  HistoryKeeper(Executor& pages,
                const Clock& clock,
                ClusterState& state,
                std::shared_ptr<api::RestHandler> server,
                api::UserInfo user,
                std::unique_ptr<HistoryFile> file);
  // Writes what is not written.
  ~HistoryKeeper();

  // Hears the numbers of each moment.
  void OnSamples(std::function<void(const std::vector<Sample>&)> heard) {
    heard_ = std::move(heard);
  }
  // On the executor, before the state has its first batch.
  void Start();
  const History& history() const { return history_; }

 private:
  void SampleNext();
  void TakeSample();
  void Write();
  void Restore();
  Status WriteTimelines();
  int64_t NowSeconds() const;

  const Clock& clock_;
  ClusterState& state_;
  std::unique_ptr<HistoryFile> file_;
  History history_;
  SteadyTime written_;
  std::vector<HistoryPiece> unwritten_;   // while the disk is full
  std::set<std::string> unwritten_jobs_;  // whose timelines are to be written
  std::function<void(const std::vector<Sample>&)> heard_;
  bool failing_ = false;  // the log has said so
  Timer timer_;
  client::Client client_;
};

}  // namespace swell::ui
