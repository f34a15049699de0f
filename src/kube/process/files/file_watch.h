// FileWatch: reports changes of files in a directory (inotify on a reactor).
// - Threads: the reactor's thread.
// - Ownership: a subscription ends when the handle that Add returned is destroyed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/net/reactor/reactor.h"

namespace swell::process {

class FileWatch {
 public:
  static Result<std::unique_ptr<FileWatch>> Create(net::Reactor& reactor);
  ~FileWatch();

  using Changed = std::function<void(const std::string& file)>;
  // Written to, replaced or created: `changed` gets the file's name within the directory.
  Result<std::shared_ptr<void>> Add(const std::string& dir, Changed changed);

 private:
  struct Subscription {
    Changed changed;
  };
  explicit FileWatch(int fd) : fd_(fd) {}
  void OnReadable();

  int fd_;
  std::map<int, std::vector<std::weak_ptr<Subscription>>> subscriptions_;  // by watch descriptor
  std::unique_ptr<net::FdWatch> watch_;
};

}  // namespace swell::process
