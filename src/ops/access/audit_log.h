// AuditLog: the API server's audit events on disk, one JSON document per line, in files of a
// bounded size. A thread of its own writes, so that no disk delays a request. If the disk is too
// slow or full, events are left out and counted, and the problem is reported.
// - Threads: events from any thread.
// - Ownership: outlives the server that reports to it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/background_queue.h"
#include "base/line_file.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cli/flags.h"

namespace swell::ops {

// What the audit log records, as the flags of `swell up` say it.
struct AuditPlan {
  std::string level = "writes";  // "none", "writes", "all"
  int64_t file_mib = 100;
  int64_t backups = 10;
  bool required = false;  // requests that cannot be recorded are refused
  bool on() const { return level != "none"; }
  LineFile::Limits limits() const;
};
void AddAuditFlags(cli::Flags& flags, AuditPlan& plan);
// Misuse names the flag.
Status CheckAuditPlan(const AuditPlan& plan);

class AuditLog {
 public:
  // Runs on the writing thread: with a problem when events begin to be left out, and with an empty
  // text when they are written again. `missing`: events left out so far.
  using Changed = std::function<void(const std::string& problem, uint64_t missing)>;

  static Result<std::unique_ptr<AuditLog>> Open(const std::string& path,
                                                LineFile::Limits limits,
                                                Metrics* metrics,
                                                Changed changed = {});

  void Append(std::string line);
  // Why the last event was left out; empty: it was written, or waits for its turn.
  std::string Problem() const;

 private:
  AuditLog(std::unique_ptr<LineFile> file, Metrics* metrics, Changed changed);
  void Write(const std::vector<std::string>& lines);
  void TellSlowness();
  void SetProblem(const std::string& problem);

  std::unique_ptr<LineFile> file_;  // the writing thread's
  const Changed changed_;
  mutable Mutex mutex_;
  std::string problem_ SWELL_GUARDED_BY(mutex_);
  bool told_ SWELL_GUARDED_BY(mutex_) = false;  // of a problem that is not over
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> dropped_{0};
  std::unique_ptr<Metrics::Registration> registered_;
  BackgroundQueue<std::string> queue_;
};

}  // namespace swell::ops
