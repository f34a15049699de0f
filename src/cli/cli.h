// RunCli: the `swell`, `arena`, `runai`, `elasticdl` and `slurm` commands. Everything they touch
// comes through CliEnv, so a test runs whole command lines against an API server in the same
// process.
//
//   int main(int argc, char** argv) { return swell::cli::CliMain(argc, argv, {UpCommand()}); }
//
// Exit status: 0 done, 1 the server or something else said no, 2 the command was used wrongly, 130
// interrupted.
//
// - Threads: one thread; commands block on the event loop they are given.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "cli/command.h"
#include "cli/console.h"
#include "json/value.h"
#include "kube/api/rest/rest.h"
#include "kube/client/client.h"

namespace swell::cli {

// Runs closures until something has happened: a Reactor, or a test's virtual time.
class EventLoop {
 public:
  virtual ~EventLoop() = default;
  virtual Executor& executor() = 0;
  // False when `limit` passed first, or on Ctrl-C.
  virtual bool RunUntil(const std::function<bool()>& done, Duration limit) = 0;
  virtual bool interrupted() const { return false; }
  // From now on SIGTERM and the end of the terminal count as Ctrl-C.
  virtual void WatchTermination() {}
  // An interruption has been dealt with: waits work again.
  virtual void Resume() {}
};

// What the flags say about where the cluster is.
struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
};

// A server to talk to.
struct Connection {
  std::shared_ptr<api::RestHandler> server;
  std::string url;  // for messages
  std::string ns = "default";
  std::string kubeconfig;  // the file it came from; empty in tests
  std::string context;
  api::UserInfo user;  // in-process only
};

// API objects that somebody else keeps.
using StateView = std::vector<const json::Value*>;

// What the scheduler and the job controllers would do, by their own code. The program around
// provides it: this layer does not schedule. Each may be empty.
struct WhatIfEngine {
  // A scheduling cycle over a state: what `swell simulate` prints.
  std::function<json::Value(const StateView& state, WallTime now)> simulate;
  // The same for `cycles` cycles, one after the other.
  std::function<json::Value(const StateView& state, WallTime now, int cycles)> simulate_cycles;
  // The pod group that a job of that resource would have, and then the pods that are in it.
  std::function<Result<json::Array>(const client::Resource& resource, const json::Value& job)>
      make_gang;
  // Which image a user of the cluster at that address probably meant. Empty: the cluster has the
  // image, no name is near, or its images are not known here.
  std::function<std::string(std::string_view url, const std::string& image)> meant_image;
};

struct CliEnv {
  // Writes bytes; false when nobody reads any more (the command then ends quietly).
  std::function<bool(std::string_view)> out;
  std::function<bool(std::string_view)> err;
  std::function<Result<std::string>()> read_stdin;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int columns = 100;
  std::function<std::string(const std::string&)> getenv;
  const Clock* clock = nullptr;
  EventLoop* loop = nullptr;
  std::function<Result<Connection>(const ClusterFlags&)> connect;
  WhatIfEngine what_if;
  // The terminal, and ports of this machine. Empty if there are no such things.
  std::function<std::unique_ptr<Console>()> console;
  std::function<Result<std::unique_ptr<PortListener>>(const std::string& address,
                                                      std::function<void(api::DuplexPtr)> accepted)>
      listen;
  // Shows the address in the user's browser; false: no browser could be started. Empty in tests.
  std::function<bool(const std::string& url)> open_url;
};

// `argv` as main() has it; argv[0] ending in "arena", "runai", "elasticdl" or the name of one of
// Slurm's commands is that front end, as is `swell arena …`. `extra`: commands of `swell` from
// outside of this library; they come first in its help.
int RunCli(const std::vector<std::string>& argv,
           CliEnv& env,
           const std::vector<Command>& extra = {});

// The same with the process's own terminal, environment, clock and network.
int CliMain(int argc,
            char** argv,
            const std::vector<Command>& extra = {},
            WhatIfEngine what_if = {});

// The version that `swell version` prints.
std::string_view Version();

}  // namespace swell::cli
