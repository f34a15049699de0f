// AuditLog: the API server's audit events on disk, one JSON document per line, in files of a
// bounded size. A thread of its own writes, so that no disk delays a request; when it is too slow
// or full, events are left out, and counted.
// - Threads: events from any thread.
// - Ownership: outlives the server that reports to it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/background_queue.h"
#include "base/line_file.h"
#include "base/metrics.h"

namespace swell {

class AuditLog {
 public:
  static Result<std::unique_ptr<AuditLog>> Open(const std::string& path,
                                                LineFile::Limits limits,
                                                Metrics* metrics);

  void Append(std::string line);

 private:
  AuditLog(std::unique_ptr<LineFile> file, Metrics* metrics);
  void Write(const std::vector<std::string>& lines);

  std::unique_ptr<LineFile> file_;  // the writing thread's
  bool failing_ = false;            // likewise
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> dropped_{0};
  std::unique_ptr<Metrics::Registration> registered_;
  BackgroundQueue<std::string> queue_;
};

}  // namespace swell
