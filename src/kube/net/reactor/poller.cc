#include "kube/net/reactor/poller.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/strings.h"

namespace swell::net {
namespace {

constexpr int kRoundMax = 512;  // then the loop's other work gets its turn

Status MakeNonBlocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ((flags & O_NONBLOCK) == 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)) {
    return ErrnoStatus(errno, StrCat("watch of descriptor ", fd));
  }
  return Status::Ok();
}

}  // namespace

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  SWELL_CHECK_MSG(epoll_.valid(), std::strerror(errno));
}

Result<std::shared_ptr<Poller::Watch>> Poller::Add(int fd, Ready ready) {
  SWELL_RETURN_IF_ERROR(MakeNonBlocking(fd));
  auto watch = std::make_shared<Watch>();
  watch->fd = fd;
  watch->id = next_id_++;
  watch->ready = std::move(ready);
  watches_.emplace(watch->id, watch);
  return watch;
}

bool Poller::SetInterest(Watch& watch, Interest interest) {
  const uint32_t events = (Reads(interest) ? EPOLLIN : 0U) | (Writes(interest) ? EPOLLOUT : 0U);
  if (events == watch.events) return true;
  // Without interest the descriptor must be removed: the kernel reports errors and hang-ups of
  // every descriptor that it knows.
  const int change = events == 0         ? EPOLL_CTL_DEL
                     : watch.events == 0 ? EPOLL_CTL_ADD
                                         : EPOLL_CTL_MOD;
  const uint32_t before = std::exchange(watch.events, events);
  if (watch.held && change == EPOLL_CTL_MOD) return true;  // told of when it is released
  if (Control(watch, change) || change == EPOLL_CTL_DEL) return true;
  watch.events = before;
  return false;
}

bool Poller::Control(const Watch& watch, int change) const {
  epoll_event event{};
  // Even the errors of what is held are told of once at most.
  event.events = watch.held ? EPOLLONESHOT : watch.events;
  event.data.u64 = watch.id;
  return ::epoll_ctl(epoll_.get(), change, watch.fd, &event) == 0;
}

void Poller::Hold(Watch& watch) {
  if (std::exchange(watch.held, true) || watch.events == 0) return;
  (void)Control(watch, EPOLL_CTL_MOD);
}

void Poller::Release(Watch& watch) {
  if (!std::exchange(watch.held, false) || watch.events == 0) return;
  (void)Control(watch, EPOLL_CTL_MOD);
}

void Poller::Remove(Watch& watch) {
  SetInterest(watch, Interest::kNone);
  watches_.erase(watch.id);
}

void Poller::HandOut(const std::function<bool()>& stopped) {
  std::array<epoll_event, kRoundMax> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kRoundMax, 0);
  for (int i = 0; i < count && !stopped(); ++i) {
    const auto found = watches_.find(events[i].data.u64);
    if (found == watches_.end()) continue;
    const std::shared_ptr<Watch> watch = found->second;  // it may end in its own callback
    if (watch->held) continue;
    const uint32_t told = events[i].events;
    const bool broken = (told & (EPOLLERR | EPOLLHUP)) != 0;
    const bool read = (watch->events & EPOLLIN) != 0 && (broken || (told & EPOLLIN) != 0);
    const bool write = (watch->events & EPOLLOUT) != 0 && (broken || (told & EPOLLOUT) != 0);
    if (read || write) watch->ready({.readable = read, .writable = write});
  }
}

}  // namespace swell::net
