// Spares: decides when to make things ahead of need. Up to half of them are made at once, for a
// rush of pods; the rest when the worker is idle.
// - Threads: the owner's.
// - Ownership: the worker outlives it, or its thread has ended first. Nothing is called after it is
//   destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/callback_scope.h"
#include "kube/process/background/idle_worker.h"

namespace swell::process {

class Spares {
 public:
  struct Options {
    size_t kept = 4;
    // How many are ready or being made, less those that somebody waits for.
    std::function<int64_t()> there;
    // Begins to make one; false: not now.
    std::function<bool()> make_one;
    std::function<void(std::function<void()>)> post;  // to the owner's thread
  };
  Spares(Options options, IdleWorker& worker);

  // To be called when one was taken, or is waited for.
  void Refill() { Refill(Half()); }
  void RefillInQuiet();
  // Makes no more.
  void Stop() { options_.kept = 0; }

 private:
  size_t Half() const { return (options_.kept + 1) / 2; }
  void Refill(size_t wanted);

  Options options_;
  IdleWorker& worker_;
  bool awaits_quiet_ = false;
  CallbackScope scope_;
};

}  // namespace swell::process
