// Remover: takes trees off the disk on a thread of its own, so that nobody waits for it who starts
// or ends pods. What it is given is first moved out of the way.
//
// Thread-safety: one thread, of its owner. Ownership: joins its thread at the end; what it had not
// removed by then is in the directories it was given, and those are emptied by the next Remover.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace swell::edge {

class Remover {
 public:
  Remover();
  ~Remover();
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;

  // After this `path` is free. It is moved to `attic`, a directory of the same file system; where
  // that cannot be, or too much waits already, it is removed at once. No error if it is not there.
  Status Discard(const std::string& path, const std::string& attic);
  // What an earlier run left there; before the first Discard.
  void Empty(const std::string& attic);
  // Waits until everything is removed.
  void Finish();

 private:
  void Enqueue(std::string path);
  void Run();

  static constexpr size_t kWaitingMax = 10'000;

  uint64_t next_ = 0;  // name in an attic
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;  // guarded by mutex_, as the two below
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace swell::edge
