// CommandRunner: runs the code of swell's commands for the pages, as a session's user: why a job
// waits, where one would go, what would follow from a change.
//
// Such code asks the API server many things one after the other and searches for long, so it runs
// on a thread of its own. It asks with the user's credentials, so it sees what they may see.
//
// - Threads: Run and what it calls back on the pages' executor; work on the runner's thread.
// - Ownership: both executors, server and clock outlive it. Destroying it interrupts the work under
//   way, and nothing is called back any more.
// - Invariants: one work at a time; at most kWaitingMax wait.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/background_queue.h"
#include "cli/session.h"
#include "kube/net/reactor/reactor.h"

namespace swell::ui {

class CommandRunner {
 public:
  static constexpr size_t kWaitingMax = 64;
  using Work = std::function<Result<json::Value>(cli::Session& session, cli::Api& api)>;
  using Done = std::function<void(Result<json::Value>)>;

  CommandRunner(Executor& pages,
                Executor& core,
                std::shared_ptr<api::RestHandler> server,
                const Clock& clock,
                cli::WhatIfEngine engine);
  ~CommandRunner();

  // kTooManyRequests goes to `done` when too many wait.
  void Run(const api::Credentials& credentials, Work work, Done done);

 private:
  struct Task {
    api::Credentials credentials;
    Work work;
    Done done;
  };
  class Loop;
  void RunAll(std::vector<Task> tasks);
  Result<json::Value> RunOne(const Task& task);

  Executor& pages_;
  const Clock& clock_;
  cli::WhatIfEngine engine_;
  std::atomic<bool> ending_{false};
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  net::Reactor reactor_;  // what the core thread posts to outlives each work
  std::shared_ptr<api::RestHandler> calls_;
  BackgroundQueue<Task> queue_;
};

}  // namespace swell::ui
