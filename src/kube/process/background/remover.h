// Remover: removes directory trees in the background, so that pods need not wait for it. A tree is
// moved to a trash directory at once.
// - Threads: the owner's.
// - Ownership: trees that are left at the end stay in the trash; the next run calls Empty for them.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "kube/process/background/idle_worker.h"

namespace swell::process {

class Remover {
 public:
  // Frees `path`: moves it to `trash`, a directory of the same file system. If that fails, or too
  // many trees wait, it is removed now. It need not exist.
  Status Discard(const std::string& path, const std::string& trash);
  // Removes what an earlier run left there; to be called before the first Discard.
  void Empty(const std::string& trash);
  // Waits until everything is removed.
  void Finish() { worker_.Finish(); }

 private:
  uint64_t next_ = 0;  // name in a trash directory
  IdleWorker worker_;
};

}  // namespace swell::process
