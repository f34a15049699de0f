#include "kube/process/files/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"

namespace swell::process {

Result<std::unique_ptr<FileWatch>> FileWatch::Create(net::Reactor& reactor) {
  int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "inotify");
  std::unique_ptr<FileWatch> watch(new FileWatch(fd));
  SWELL_ASSIGN_OR_RETURN(watch->watch_,
                         reactor.WatchFd(fd, [raw = watch.get()] { raw->OnReadable(); }));
  return watch;
}

FileWatch::~FileWatch() {
  watch_.reset();
  ::close(fd_);
}

Result<std::shared_ptr<void>> FileWatch::Add(const std::string& dir, Changed changed) {
  int id = ::inotify_add_watch(fd_, dir.c_str(),
                               IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
  if (id < 0) return ErrnoStatus(errno, "watch " + dir);
  auto subscription = std::make_shared<Subscription>(Subscription{std::move(changed)});
  auto& list = subscriptions_[id];
  std::erase_if(list, [](const auto& weak) { return weak.expired(); });
  list.push_back(subscription);
  return std::shared_ptr<void>(subscription);
}

void FileWatch::OnReadable() {
  alignas(inotify_event) char buffer[16384];
  ssize_t n = ::read(fd_, buffer, sizeof buffer);
  for (ssize_t at = 0; at < n;) {
    inotify_event event;
    std::memcpy(&event, buffer + at, sizeof event);
    std::string name(event.len == 0 ? "" : buffer + at + sizeof event);
    at += static_cast<ssize_t>(sizeof event + event.len);
    if ((event.mask & IN_IGNORED) != 0) {
      subscriptions_.erase(event.wd);
      continue;
    }
    auto found = subscriptions_.find(event.wd);
    if (found == subscriptions_.end()) continue;
    std::vector<std::weak_ptr<Subscription>> list = found->second;
    bool live = false;
    for (const auto& weak : list) {
      if (auto subscription = weak.lock()) {
        live = true;
        subscription->changed(name);
      }
    }
    // Nobody listens any more: the kernel need not tell either.
    if (!live) {
      subscriptions_.erase(event.wd);
      ::inotify_rm_watch(fd_, event.wd);
    }
  }
}

}  // namespace swell::process
