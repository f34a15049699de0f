// The real environment of the commands: terminal, process environment, clock, sockets.
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/real_console.h"
#include "kube/edge/cluster/cluster_transport.h"
#include "kube/net/reactor/reactor.h"

namespace swell::cli {
namespace {

// As by nohup.
bool IsIgnored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

class ReactorLoop final : public EventLoop {
 public:
  Executor& executor() override { return reactor_; }
  bool RunUntil(const std::function<bool()>& done, Duration limit) override {
    // Ctrl-C ends the program at once until somebody waits; from then on it ends the wait.
    if (!signals_) {
      std::vector<int> which{SIGINT};
      if (termination_) which.push_back(SIGTERM);
      if (termination_ && !IsIgnored(SIGHUP)) which.push_back(SIGHUP);
      auto watch = reactor_.WatchSignals(which, [this](int) { interrupted_ = true; });
      if (watch.ok()) signals_ = std::move(*watch);
    }
    bool reached = false;
    reactor_.RunUntil([&] { return (reached = done()) || interrupted_; }, limit);
    return reached;
  }
  bool interrupted() const override { return interrupted_; }
  void WatchTermination() override {
    termination_ = true;
    signals_.reset();
  }
  void Resume() override { interrupted_ = false; }
  net::Reactor& reactor() { return reactor_; }

 private:
  net::Reactor reactor_;
  std::unique_ptr<net::SignalWatch> signals_;
  bool interrupted_ = false, termination_ = false;
};

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Result<std::string> ReadStdin() {
  constexpr size_t kInputBytesMax = 64 << 20;
  std::string all;
  char buffer[65536];
  for (;;) {
    ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read standard input");
    if (n == 0) return all;
    all.append(buffer, static_cast<size_t>(n));
    if (all.size() > kInputBytesMax) {
      return Status(Code::kTooLarge, "standard input is larger than 64 MiB");
    }
  }
}

int TerminalColumns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

std::string Environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

Result<Connection> Connect(net::Reactor& reactor, const Clock& clock, const ClusterFlags& flags) {
  Connection connection;
  SWELL_ASSIGN_OR_RETURN(client::ClusterAccess access,
                         FindCluster(flags, Environment, connection.kubeconfig));
  connection.url = access.server;
  connection.ns = access.ns;
  connection.context = flags.context;
  SWELL_ASSIGN_OR_RETURN(
      connection.server,
      edge::ClusterTransport::Open(reactor, clock, std::move(access), {.trust_not_found = true}));
  return connection;
}

// xdg-open knows the user's browser; without a display no browser can show anything.
bool OpenUrl(const std::string& url) {
  if (Environment("DISPLAY").empty() && Environment("WAYLAND_DISPLAY").empty()) return false;
  std::string program = "xdg-open", address = url;
  char* const argv[] = {program.data(), address.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, argv, environ) != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int CliMain(int argc, char** argv, const std::vector<Command>& extra, WhatIfEngine what_if) {
  ::signal(SIGPIPE, SIG_IGN);
  ReactorLoop loop;
  RealClock clock;
  CliEnv env;
  env.out = [](std::string_view bytes) { return WriteAll(STDOUT_FILENO, bytes); };
  env.err = [](std::string_view bytes) { return WriteAll(STDERR_FILENO, bytes); };
  env.read_stdin = ReadStdin;
  env.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  env.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  env.columns = TerminalColumns();
  env.getenv = Environment;
  env.clock = &clock;
  env.loop = &loop;
  env.connect = [&loop, &clock](const ClusterFlags& flags) {
    return Connect(loop.reactor(), clock, flags);
  };
  env.what_if = std::move(what_if);
  env.console = [&loop] { return MakeRealConsole(loop.reactor()); };
  env.listen = [&loop](const std::string& address, std::function<void(api::DuplexPtr)> accepted) {
    return ListenForReal(loop.reactor(), address, std::move(accepted));
  };
  env.open_url = OpenUrl;
  return RunCli(std::vector<std::string>(argv, argv + argc), env, extra);
}

}  // namespace swell::cli
