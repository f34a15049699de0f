#include "ui/commands/command_runner.h"

#include <utility>

#include "ui/state/as_user.h"
#include "ui/state/core_calls.h"

namespace swell::ui {

class CommandRunner::Loop final : public cli::EventLoop {
 public:
  Loop(net::Reactor& reactor, const std::atomic<bool>& ending)
      : reactor_(reactor), ending_(ending) {}

  Executor& executor() override { return reactor_; }
  bool interrupted() const override { return ending_.load(); }
  // In slices, so that the end of the program is noticed.
  bool RunUntil(const std::function<bool()>& done, Duration limit) override {
    constexpr Duration kSlice = std::chrono::milliseconds(200);
    const SteadyTime end = reactor_.Now() + std::min(limit, kLongest);
    while (!ending_.load()) {
      const Duration left = end - reactor_.Now();
      if (reactor_.RunUntil(done, std::max(Duration::zero(), std::min(left, kSlice)))) return true;
      if (left <= kSlice) return false;
    }
    return false;
  }

 private:
  // No answer takes so long.
  static constexpr Duration kLongest = std::chrono::minutes(5);

  net::Reactor& reactor_;
  const std::atomic<bool>& ending_;
};

CommandRunner::CommandRunner(Executor& pages,
                             Executor& core,
                             std::shared_ptr<api::RestHandler> server,
                             const Clock& clock,
                             cli::WhatIfEngine engine)
    : pages_(pages),
      clock_(clock),
      engine_(std::move(engine)),
      calls_(MakeCoreCalls(reactor_, core, std::move(server))),
      queue_(kWaitingMax, Duration::zero(), [this](std::vector<Task> tasks) {
        RunAll(std::move(tasks));
      }) {}

CommandRunner::~CommandRunner() {
  alive_.reset();
  ending_.store(true);
}

void CommandRunner::Run(const api::Credentials& credentials, Work work, Done done) {
  // The thread only carries it; it is called on the pages' executor, unless this is gone by then.
  auto here = [alive = std::weak_ptr<const bool>(alive_),
               done = std::move(done)](Result<json::Value> result) {
    if (!alive.expired()) done(std::move(result));
  };
  if (queue_.Push({credentials, std::move(work), here}, 1)) return;
  here(Status(Code::kTooManyRequests, "too many questions of this kind are waiting; try again"));
}

void CommandRunner::RunAll(std::vector<Task> tasks) {
  for (Task& task : tasks) {
    Result<json::Value> result = Status(Code::kUnavailable, "the cluster is stopping");
    if (!ending_.load()) result = RunOne(task);
    pages_.Post([done = std::move(task.done), result = std::move(result)] { done(result); });
  }
}

Result<json::Value> CommandRunner::RunOne(const Task& task) {
  Loop loop(reactor_, ending_);
  cli::CliEnv env;
  env.out = env.err = [](std::string_view) { return true; };
  env.read_stdin = [] { return Result<std::string>(std::string()); };
  env.getenv = [](const std::string&) { return std::string(); };
  env.clock = &clock_;
  env.loop = &loop;
  env.what_if = engine_;
  env.connect = [this, &task](const cli::ClusterFlags&) -> Result<cli::Connection> {
    cli::Connection connection;
    connection.server = MakeAsUser(calls_, task.credentials);
    return connection;
  };
  const cli::Command root{.name = "swell"};
  cli::Session session(env, {}, root);
  SWELL_ASSIGN_OR_RETURN(cli::Api * api, session.Server());
  return task.work(session, *api);
}

}  // namespace swell::ui
