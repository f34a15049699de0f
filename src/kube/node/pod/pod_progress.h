// PodProgress: what the ranks of one pod report, published as an annotation; and the stacks of
// those that are stalled.
//
// A stall that begins or ends is written at once. So is a process's first step, from which on its
// speed and deadline are known, and a new number, since the first rank speaks for the job.
// Everything else waits: ten seconds for the job's first rank and for the first speed, a minute for
// others, so that a thousand jobs do not load the API server with it.
//
// - Threads: core executor only.
// - Ownership: a member of its PodWorker. Host and record outlive it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/node/health/progress_watch.h"
#include "kube/node/pod/pod_host.h"
#include "kube/node/pod/pod_record.h"

namespace swell::node {

class PodProgress {
 public:
  // `publish` takes the annotation's text.
  PodProgress(PodHost& host,
              const PodRecord& record,
              std::function<void(std::string text)> publish);

  void OnRecords(const ProgressRecords& records);
  void OnContainerExit();
  void Close();

 private:
  void CheckLater();
  void Check();
  void ReadStacks();
  void PublishSoon(bool now);
  void Publish();

  PodHost& host_;
  const PodRecord& record_;
  std::function<void(std::string text)> publish_;
  ProgressWatch watch_;
  std::vector<int64_t> published_numbers_;
  bool published_speed_ = false;
  Timer check_timer_, publish_timer_;
  CallbackScope scope_;
};

}  // namespace swell::node
