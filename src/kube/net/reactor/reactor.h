// Reactor: an Executor over the operating system's event queue (Asio's io_context).
//
// One thread runs it and is "its thread": the I/O thread, the core thread, or a command's main
// thread inside RunUntil. Closures, timers and readiness callbacks run there, one at a time.
//
// - Threads: Post and Stop from any thread; everything else on the reactor's thread, or on any one
//   thread while nobody runs the reactor.
// - Ownership: watches belong to the caller and end when destroyed, even from inside their own
//   callback; they must not outlive the reactor. A watch never owns its file descriptor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/result.h"

namespace swell::net {

// What a watch of a descriptor waits for, and what it tells of.
enum class Interest { kNone, kRead, kWrite, kBoth };
struct Readiness {
  bool readable = false, writable = false;
};

constexpr Interest InterestIn(bool read, bool write) {
  if (read) return write ? Interest::kBoth : Interest::kRead;
  return write ? Interest::kWrite : Interest::kNone;
}
constexpr bool Reads(Interest interest) {
  return interest == Interest::kRead || interest == Interest::kBoth;
}
constexpr bool Writes(Interest interest) {
  return interest == Interest::kWrite || interest == Interest::kBoth;
}

// One address to connect to: the bytes of a sockaddr.
struct SocketAddress {
  std::string bytes;
};

// Readiness of one file descriptor, which is made non-blocking. Level-triggered: the callback comes
// again until the cause is read away or the interest is withdrawn.
class FdWatch {
 public:
  struct Impl;
  explicit FdWatch(std::unique_ptr<Impl> impl);
  ~FdWatch();
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;

  void SetInterest(Interest interest);
  // No callbacks until Release, after which they come again for what is ready then.
  void Hold();
  void Release();

 private:
  std::unique_ptr<Impl> impl_;
};

class SignalWatch {
 public:
  struct Impl;
  explicit SignalWatch(std::shared_ptr<Impl> impl);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  std::shared_ptr<Impl> impl_;
};

class Reactor final : public Executor {
 public:
  Reactor();
  ~Reactor() override;

  // Runs until Stop.
  void Run();
  // Runs for `span` of real time, or until Stop.
  void RunFor(Duration span);
  // Runs until `done` holds (asked after every round of events), `limit` has passed or Stop.
  // Returns done().
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  // Final: later runs return at once. What is posted afterwards is destroyed with the reactor.
  void Stop();
  // On its thread: others wait for what this one does. It gets the processor soon when it wakes
  // (base/short_turns.h), and while it has much to do it lets others have it in between.
  void KeepTurnsShort();

  void Post(std::function<void()> fn) override;
  TimerId After(Duration delay, std::function<void()> fn) override;
  void Cancel(TimerId id) override;
  bool OnThread() const override;

  SteadyTime Now() const { return clock_.Steady(); }

  // Counts turns of the loop: rounds of readiness and of posted closures.
  uint64_t turn() const;

  // Calls `readable` while `fd` (pipe, socket, pidfd, inotify, eventfd) has something to read.
  Result<std::unique_ptr<FdWatch>> WatchFd(int fd, std::function<void()> readable);
  // Both directions; no interest until SetInterest.
  Result<std::unique_ptr<FdWatch>> Watch(int fd, std::function<void(Readiness)> ready);
  Result<std::unique_ptr<SignalWatch>> WatchSignals(const std::vector<int>& signals,
                                                    std::function<void(int)> received);

  // Looks a host name up (literal addresses too) without blocking the thread.
  void Resolve(const std::string& host,
               uint16_t port,
               std::function<void(Result<std::vector<SocketAddress>>)> done);

  // Where sockets read to before anybody keeps the bytes: one buffer for all connections.
  char* scratch();
  static constexpr size_t kScratchBytes = 64 << 10;

 private:
  struct Impl;

  RealClock clock_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace swell::net
