// ReadyDirs: directories of one form, made before they are needed. What is in them costs a file
// system more than all else at a pod's start (half a millisecond for each file, where many were
// deleted of late); moving one to its place costs next to nothing.
// - Threads: one thread, of its owner; `make` also runs on a thread of this class.
// - Ownership: what is ready when it ends stays in its directory, which is the owner's to clear.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/callback_scope.h"
#include "base/result.h"
#include "kube/process/background/idle_worker.h"
#include "kube/process/background/spares.h"

namespace swell::edge {

class ReadyDirs {
 public:
  struct Options {
    std::string prefix;  // of the ready ones' paths, on the file system of those that are taken
    size_t ready = 4;
    // Makes a directory of the form, and what is missing of one that is there.
    std::function<Status(const std::string& path)> make;
    std::function<void(std::function<void()>)> post;  // to the owner's thread
  };
  explicit ReadyDirs(Options options);

  // Begins to make what is missing.
  void Refill() { spares_.Refill(); }
  // A directory of the form is at `path` after this; its parent must be there.
  Status Take(const std::string& path);
  // Makes no more ahead of need, and is writing nothing after this.
  void Finish();

 private:
  void MakeOne();

  Options options_;
  std::deque<std::string> ready_;
  size_t making_ = 0;
  uint64_t next_ = 0;
  Spares spares_;
  IdleWorker worker_;  // its thread ends before what it uses
  CallbackScope scope_;
};

}  // namespace swell::edge
