#include "kube/net/reactor/reactor.h"

#include <atomic>
#include <map>
#include <thread>
#include <unordered_map>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/check.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/short_turns.h"
#include "base/strings.h"
#include "kube/net/reactor/poller.h"

namespace swell::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using IoExecutor = asio::io_context::executor_type;
using Descriptor = asio::posix::basic_stream_descriptor<IoExecutor>;
using SteadyClock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<SteadyClock, asio::wait_traits<SteadyClock>, IoExecutor>;
using Signals = asio::basic_signal_set<IoExecutor>;
using Resolver = asio::ip::basic_resolver<asio::ip::tcp, IoExecutor>;

constexpr Duration kLongest = std::chrono::hours(24 * 365);
constexpr Duration kTurnFor = std::chrono::milliseconds(1);  // shorter costs gets per second

}  // namespace

struct FdWatch::Impl {
  Reactor& reactor;
  Poller& poller;
  std::shared_ptr<Poller::Watch> watch;
};

FdWatch::FdWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FdWatch::~FdWatch() { impl_->poller.Remove(*impl_->watch); }

void FdWatch::SetInterest(Interest interest) {
  if (impl_->poller.SetInterest(*impl_->watch, interest)) return;
  // What the kernel cannot watch reports once; the reader then sees why by reading.
  impl_->reactor.Post([weak = std::weak_ptr(impl_->watch), interest] {
    if (auto watch = weak.lock()) watch->ready({Reads(interest), Writes(interest)});
  });
}

void FdWatch::Hold() { impl_->poller.Hold(*impl_->watch); }
void FdWatch::Release() { impl_->poller.Release(*impl_->watch); }

struct SignalWatch::Impl : std::enable_shared_from_this<SignalWatch::Impl> {
  Impl(asio::io_context& context, std::function<void(int)> callback)
      : signals(context), received(std::move(callback)) {}

  void Arm() {
    signals.async_wait([self = shared_from_this()](const error_code& error, int signal) {
      if (error || self->stopped) return;
      self->received(signal);
      if (!self->stopped) self->Arm();
    });
  }

  Signals signals;
  std::function<void(int)> received;
  bool stopped = false;
};

SignalWatch::SignalWatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

SignalWatch::~SignalWatch() {
  impl_->stopped = true;
  error_code ignored;
  impl_->signals.clear(ignored);
  impl_->signals.cancel(ignored);
}

struct Reactor::Impl {
  Impl()
      : context(1),
        work(context.get_executor()),
        timer(context),
        resolver(context),
        ready(context, poller.fd()),
        scratch(new char[kScratchBytes]) {}

  // One turn of the loop.
  struct TurnScope {
    explicit TurnScope(Impl* impl) : impl(impl) {
      ++impl->turn;
      if (impl->turns_short) began = impl->clock.Steady();
    }
    ~TurnScope() {
      if (impl->turns_short) impl->LetOthersOn(impl->clock.Steady() - began);
    }
    Impl* impl;
    SteadyTime began;
  };

  // Names the running thread for OnThread while a Run* call is active.
  struct RunScope {
    explicit RunScope(Impl* impl) : impl(impl) {
      SWELL_CHECK_MSG(impl->thread.load() == std::thread::id(), "a reactor is run by one thread");
      impl->thread.store(std::this_thread::get_id());
    }
    ~RunScope() { impl->thread.store(std::thread::id()); }
    Impl* impl;
  };

  ~Impl() { ready.release(); }  // the poller's

  void AwaitReady();
  void Drain();
  void ArmTimer();
  void RunTimers();
  void LetOthersOn(Duration worked);

  asio::io_context context;
  asio::executor_work_guard<IoExecutor> work;
  Timer timer;
  Resolver resolver;
  Poller poller;
  Descriptor ready;  // some of what the poller watches is
  bool awaiting = false;
  uint64_t turn = 0;
  bool turns_short = false;
  Duration worked{0};  // since others were let on the processor
  std::unique_ptr<char[]> scratch;
  std::atomic<std::thread::id> thread{};
  std::atomic<bool> stopped{false};

  Mutex mutex;
  std::vector<std::function<void()>> posted SWELL_GUARDED_BY(mutex);
  bool drain_pending SWELL_GUARDED_BY(mutex) = false;
  std::vector<std::function<void()>>
      batch;  // the spare vector, so that steady state allocates none

  RealClock clock;
  TimerId next_timer = 1;
  std::map<std::pair<int64_t, TimerId>, std::function<void()>> timers;  // (due ns, id)
  std::unordered_map<TimerId, int64_t> due;
  int64_t armed_for = INT64_MAX;
};

void Reactor::Impl::AwaitReady() {
  if (std::exchange(awaiting, true)) return;
  ready.async_wait(Descriptor::wait_read, [this](const error_code& error) {
    awaiting = false;
    if (error) return;
    const TurnScope scope(this);
    poller.HandOut([this] { return stopped.load(); });
    AwaitReady();
  });
}

void Reactor::Impl::Drain() {
  const TurnScope scope(this);
  {
    MutexLock lock(mutex);
    drain_pending = false;
    batch.swap(posted);
  }
  // A local, because a closure may run the loop's owner's code that posts; batch itself is only
  // touched here, and Drain is never nested.
  std::vector<std::function<void()>> running = std::move(batch);
  for (auto& fn : running) {
    fn();
    fn = nullptr;  // frees what the closure holds before the next one runs
  }
  running.clear();
  batch = std::move(running);
}

void Reactor::Impl::ArmTimer() {
  if (timers.empty()) return;
  int64_t first = timers.begin()->first.first;
  if (first >= armed_for) return;
  armed_for = first;
  timer.expires_at(SteadyClock::time_point(std::chrono::nanoseconds(first)));
  timer.async_wait([this](const error_code& error) {
    if (!error) RunTimers();
  });
}

void Reactor::Impl::RunTimers() {
  armed_for = INT64_MAX;
  int64_t now = clock.Steady().ns;
  TimerId newest = next_timer;  // timers set by these callbacks wait for the next round
  while (!timers.empty()) {
    auto first = timers.begin();
    if (first->first.first > now || first->first.second >= newest) break;
    auto fn = std::move(first->second);
    due.erase(first->first.second);
    timers.erase(first);
    fn();
  }
  ArmTimer();
}

// The kernel looks who else is due at its ticks, milliseconds apart, and when somebody wakes, who
// may not be due just then.
void Reactor::Impl::LetOthersOn(Duration worked_now) {
  worked += worked_now;
  if (worked < kTurnFor) return;
  worked = Duration::zero();
  std::this_thread::yield();
}

Reactor::Reactor() : impl_(std::make_unique<Impl>()) {}

Reactor::~Reactor() {
  // Closures may own objects that use the reactor while they die; let them, while it is whole.
  std::vector<std::function<void()>> posted;
  {
    MutexLock lock(impl_->mutex);
    posted.swap(impl_->posted);
    impl_->drain_pending = true;
  }
  posted.clear();
  impl_->timers.clear();
}

void Reactor::Run() {
  Impl::RunScope scope(impl_.get());
  impl_->context.run();
}

void Reactor::RunFor(Duration span) {
  RunUntil([] { return false; }, span);
}

bool Reactor::RunUntil(const std::function<bool()>& done, Duration limit) {
  Impl::RunScope scope(impl_.get());
  const SteadyTime end = Now() + std::min(limit, kLongest);
  while (!done()) {
    Duration left = end - Now();
    if (left <= Duration::zero() || impl_->stopped) return false;
    impl_->context.run_one_for(left);
  }
  return true;
}

void Reactor::Stop() {
  impl_->stopped = true;
  impl_->context.stop();
}

void Reactor::KeepTurnsShort() {
  SWELL_CHECK(OnThread());
  AskForShortTurns();
  impl_->turns_short = true;
}

void Reactor::Post(std::function<void()> fn) {
  bool wake = false;
  {
    MutexLock lock(impl_->mutex);
    impl_->posted.push_back(std::move(fn));
    wake = !std::exchange(impl_->drain_pending, true);
  }
  if (wake) asio::post(impl_->context, [impl = impl_.get()] { impl->Drain(); });
}

TimerId Reactor::After(Duration delay, std::function<void()> fn) {
  SWELL_CHECK(OnThread());
  TimerId id = impl_->next_timer++;
  int64_t due = (Now() + std::clamp(delay, Duration::zero(), kLongest)).ns;
  impl_->timers.emplace(std::make_pair(due, id), std::move(fn));
  impl_->due.emplace(id, due);
  impl_->ArmTimer();
  return id;
}

void Reactor::Cancel(TimerId id) {
  auto found = impl_->due.find(id);
  if (found == impl_->due.end()) return;
  // The Asio timer stays armed; finding nothing due costs less than arming it again.
  impl_->timers.erase({found->second, id});
  impl_->due.erase(found);
}

bool Reactor::OnThread() const {
  std::thread::id running = impl_->thread.load();
  return running == std::thread::id() || running == std::this_thread::get_id();
}

Result<std::unique_ptr<FdWatch>> Reactor::WatchFd(int fd, std::function<void()> readable) {
  auto watch = Watch(fd, [readable = std::move(readable)](Readiness ready) {
    if (ready.readable) readable();
  });
  if (watch.ok()) (*watch)->SetInterest(Interest::kRead);
  return watch;
}

Result<std::unique_ptr<FdWatch>> Reactor::Watch(int fd, std::function<void(Readiness)> ready) {
  SWELL_ASSIGN_OR_RETURN(auto watch, impl_->poller.Add(fd, std::move(ready)));
  impl_->AwaitReady();
  return std::make_unique<FdWatch>(
      std::make_unique<FdWatch::Impl>(FdWatch::Impl{*this, impl_->poller, std::move(watch)}));
}

Result<std::unique_ptr<SignalWatch>> Reactor::WatchSignals(const std::vector<int>& signals,
                                                           std::function<void(int)> received) {
  auto impl = std::make_shared<SignalWatch::Impl>(impl_->context, std::move(received));
  for (int signal : signals) {
    error_code error;
    impl->signals.add(signal, error);
    if (error) return ErrnoStatus(error.value(), StrCat("watch of signal ", signal));
  }
  impl->Arm();
  return std::make_unique<SignalWatch>(std::move(impl));
}

void Reactor::Resolve(const std::string& host,
                      uint16_t port,
                      std::function<void(Result<std::vector<SocketAddress>>)> done) {
  auto finish = [host, done = std::move(done)](const error_code& error,
                                               const Resolver::results_type& results) {
    if (error) {
      done(Status(Code::kUnavailable,
                  StrCat("look-up of host ", Quote(host), ": ", error.message())));
      return;
    }
    std::vector<SocketAddress> addresses;
    for (const auto& entry : results) {
      auto endpoint = entry.endpoint();
      addresses.push_back(
          {std::string(reinterpret_cast<const char*>(endpoint.data()), endpoint.size())});
    }
    done(std::move(addresses));
  };
  impl_->resolver.async_resolve(host, std::to_string(port),
                                asio::ip::resolver_query_base::numeric_service, std::move(finish));
}

uint64_t Reactor::turn() const { return impl_->turn; }

char* Reactor::scratch() { return impl_->scratch.get(); }

}  // namespace swell::net
