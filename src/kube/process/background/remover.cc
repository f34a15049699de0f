#include "kube/process/background/remover.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/process/files/volumes.h"

namespace swell::process {
namespace {

void Remove(const std::string& path) {
  Status removed = RemoveScratch(path);
  if (!removed.ok()) {
    SWELL_LOG_WARNING("process", "not removed", {"error", removed.ToString()});
  }
}

}  // namespace

Status Remover::Discard(const std::string& path, const std::string& trash) {
  // The process id: a trash directory may still hold what an earlier run left.
  const std::string moved = StrCat(trash, "/", ::getpid(), "-", next_++);
  auto move = [&] { return ::rename(path.c_str(), moved.c_str()) == 0 ? 0 : errno; };
  int error = move();
  if (error != 0 && !FileExists(path)) return Status::Ok();
  if (error == ENOENT && MakeDirs(trash, 0700).ok()) error = move();
  if (error != 0) return RemoveScratch(path);
  return worker_.PostIdle([moved] { Remove(moved); }) ? Status::Ok() : RemoveScratch(moved);
}

void Remover::Empty(const std::string& trash) {
  auto left = ListDir(trash);
  if (!left.ok()) return;  // never made
  for (const std::string& name : *left) {
    const std::string path = StrCat(trash, "/", name);
    if (!worker_.PostIdle([path] { Remove(path); })) Remove(path);
  }
}

}  // namespace swell::process
