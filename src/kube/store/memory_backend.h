// A backend whose disk is a value in memory, with the faults of real disks on request.
//
// The disk outlives the backends opened on it, so a test can crash a store and open another on what
// was durable.
//
// - Threads: everything on the executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "kube/store/backend.h"

namespace swell::store {

class MemoryDisk {
 public:
  // Each commit takes so long. Zero: it is answered in the executor's next turn.
  Duration commit_delay{0};
  // So many of the next commits fail with `failure` and change nothing.
  uint64_t failing_commits = 0;
  Status failure = Status(Code::kNoSpace, "the disk is full");
  // Called with durable changes, before their writers are answered. May be empty.
  std::function<void(const std::vector<Change>&)> on_durable;

  // The machine stops: commits under way are never answered. They are lost, or (for a crash just
  // after the write) durable all the same when `keep_unanswered`.
  void Crash(bool keep_unanswered);

  uint64_t version() const { return version_; }
  const std::map<Key, EntryPtr>& objects() const { return objects_; }
  uint64_t commits() const { return commits_; }

 private:
  friend class FaultyBackend;
  void Apply(const std::vector<Change>& batch);

  std::map<Key, EntryPtr> objects_;
  uint64_t version_ = 0;
  uint64_t commits_ = 0;
  uint64_t crashes_ = 0;
  std::vector<std::vector<Change>> under_way_;
};

std::unique_ptr<Backend> MakeFaultyBackend(Executor& executor, std::shared_ptr<MemoryDisk> disk);

}  // namespace swell::store
