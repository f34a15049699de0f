// Remover: takes trees off the disk when there is time, so that nobody waits for it who starts or
// ends pods. What it is given is moved out of the way at once.
// - Threads: one thread, of its owner. What is not removed when it ends is in the attics it was
//   given, and those are emptied by the next one.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "kube/process/background/idle_worker.h"

namespace swell::edge {

class Remover {
 public:
  // After this `path` is free. It is moved to `attic`, a directory of the same file system; where
  // that cannot be, or too much waits already, it is removed now. No error if it is not there.
  Status Discard(const std::string& path, const std::string& attic);
  // What an earlier run left there; before the first Discard.
  void Empty(const std::string& attic);
  // Waits until everything is removed.
  void Finish() { worker_.Finish(); }

 private:
  uint64_t next_ = 0;  // name in an attic
  IdleWorker worker_;
};

}  // namespace swell::edge
