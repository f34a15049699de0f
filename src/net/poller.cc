#include "net/poller.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>

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

bool Poller::SetInterest(Watch& watch, bool read, bool write) {
  const uint32_t events = (read ? EPOLLIN : 0U) | (write ? EPOLLOUT : 0U);
  if (events == watch.events) return true;
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch.id;
  // Without interest it must not be known at all: errors and hang-ups are told to whoever is.
  const int change = events == 0         ? EPOLL_CTL_DEL
                     : watch.events == 0 ? EPOLL_CTL_ADD
                                         : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_.get(), change, watch.fd, &event) != 0 && change != EPOLL_CTL_DEL) {
    return false;
  }
  watch.events = events;
  return true;
}

void Poller::Remove(Watch& watch) {
  SetInterest(watch, false, false);
  watches_.erase(watch.id);
}

void Poller::HandOut(const std::function<bool()>& stopped) {
  std::array<epoll_event, kRoundMax> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kRoundMax, 0);
  for (int i = 0; i < count && !stopped(); ++i) {
    const auto found = watches_.find(events[i].data.u64);
    if (found == watches_.end()) continue;
    const std::shared_ptr<Watch> watch = found->second;  // it may end in its own callback
    const uint32_t told = events[i].events;
    const bool broken = (told & (EPOLLERR | EPOLLHUP)) != 0;
    const bool read = (watch->events & EPOLLIN) != 0 && (broken || (told & EPOLLIN) != 0);
    const bool write = (watch->events & EPOLLOUT) != 0 && (broken || (told & EPOLLOUT) != 0);
    if (read || write) watch->ready(read, write);
  }
}

}  // namespace swell::net
