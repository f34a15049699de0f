#include "edge/process/remover.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "edge/process/volumes.h"

namespace swell::edge {

Remover::Remover() : thread_([this] { Run(); }) {}

Remover::~Remover() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status Remover::Discard(const std::string& path, const std::string& attic) {
  bool full = false;
  {
    std::lock_guard lock(mutex_);
    full = waiting_.size() >= kWaitingMax;
  }
  if (full) return RemoveScratch(path);
  // The process id: an attic may still hold what an earlier run left.
  std::string moved = StrCat(attic, "/", ::getpid(), "-", next_++);
  int error = ::rename(path.c_str(), moved.c_str()) == 0 ? 0 : errno;
  if (error == ENOENT && FileExists(path) && MakeDirs(attic, 0700).ok()) {
    error = ::rename(path.c_str(), moved.c_str()) == 0 ? 0 : errno;
  }
  if (error != 0) return FileExists(path) ? RemoveScratch(path) : Status::Ok();
  Enqueue(std::move(moved));
  return Status::Ok();
}

void Remover::Empty(const std::string& attic) {
  auto left = ListDir(attic);
  if (!left.ok()) return;  // never made
  for (const std::string& name : *left) Enqueue(StrCat(attic, "/", name));
}

void Remover::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !busy_; });
}

void Remover::Enqueue(std::string path) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(path));
  }
  changed_.notify_all();
}

void Remover::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    std::string path = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    Status removed = RemoveScratch(path);
    if (!removed.ok()) {
      SWELL_LOG_WARNING("process", "not removed", {"path", path}, {"error", removed.ToString()});
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace swell::edge
