// ReadyDirs: directories with the same content, made before they are needed.
//
// Making their files costs more than everything else at a pod's start (half a millisecond for each
// file after many were deleted); moving a directory into place costs next to nothing.
//
// - Threads: the owner's; `make` also runs on a thread of this class.
// - Ownership: ready directories that are left at the end are the owner's to remove.
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

namespace swell::process {

class ReadyDirs {
 public:
  struct Options {
    std::string prefix;  // of the ready ones' paths, on the file system of those that are taken
    size_t ready = 4;
    // Makes such a directory, or what is missing in one that exists.
    std::function<Status(const std::string& path)> make;
    std::function<void(std::function<void()>)> post;  // to the owner's thread
  };
  explicit ReadyDirs(Options options);

  // Begins to make the directories that are missing.
  void Refill() { spares_.Refill(); }
  // Puts such a directory at `path`; its parent must exist.
  Status Take(const std::string& path);
  // Makes no more directories ahead of need; nothing is being written after this.
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

}  // namespace swell::process
