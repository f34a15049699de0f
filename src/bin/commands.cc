#include "bin/commands.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "bin/data_dir.h"
#include "bin/embedded_cluster.h"
#include "client/kubeconfig.h"
#include "json/value.h"

namespace swell {
namespace {

int Fail(const Status& status) {
  std::fprintf(stderr, "swell: %s\n", status.message().c_str());
  return 1;
}

// Parses with CLI11; nullopt means go on, else the exit status (0 for --help, 2 for misuse).
std::optional<int> Parse(CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "swell %s: %s\nSee: swell %s --help\n", app.get_name().c_str(),
                 error.what(), app.get_name().c_str());
    return 2;
  }
  return std::nullopt;
}

void AddDataDir(CLI::App& app, std::string& data_dir) {
  app.add_option("--data-dir", data_dir,
                 "where the cluster keeps everything (default $SWELL_DATA_DIR, else ~/.swell)")
      ->type_name("DIR");
}

// The SDK beside the program: in the source tree, or installed.
std::string FindSdk() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  for (std::filesystem::path dir = self.parent_path(); dir.has_relative_path();
       dir = dir.parent_path()) {
    for (const char* sub : {"sdk/python", "share/swell/python"}) {
      if (std::filesystem::exists(dir / sub / "swell" / "__init__.py", error)) {
        return (dir / sub).string();
      }
    }
  }
  return {};
}

struct UpFlags {
  ClusterOptions cluster;
  std::string data_dir;
  std::string runtime = "process";
  std::string log_level = "info";
  bool detach = false;
};

void AddUpFlags(CLI::App& app, UpFlags& flags) {
  AddDataDir(app, flags.data_dir);
  app.add_flag("-d,--detach", flags.detach, "run in the background, return once it answers");
  ClusterOptions& to = flags.cluster;
  app.add_option("--nodes", to.nodes, "virtual nodes (default: one node, this machine as it is)")
      ->type_name("N");
  app.add_option("--gpus-per-node", to.gpus_per_node, "GPUs of each virtual node")->type_name("N");
  app.add_option("--cpus", to.cpus, "CPUs of each node (default: the machine's)")->type_name("N");
  app.add_option("--memory", to.memory, "memory of each node (default: the machine's)")
      ->type_name("SIZE");
  app.add_option("--control-plane-nodes", to.control_plane_nodes,
                 "virtual control-plane nodes, without GPUs")
      ->type_name("N");
  app.add_option("--system-reserved", to.system_reserved,
                 "kept off what pods may use on each node, as cpu=80m,memory=500Mi")
      ->type_name("LIST");
  app.add_option("--runtime", flags.runtime,
                 "process: pods are real processes; simulated: pods only pretend")
      ->check(CLI::IsMember({"process", "simulated"}))
      ->type_name("KIND");
  app.add_option("--listen", to.listen,
                 "address of the API (default 127.0.0.1, a free port kept over restarts)")
      ->type_name("HOST:PORT");
  app.add_option("--token-auth-file", to.token_auth_file,
                 "bearer tokens, lines of token,user,uid,\"group1,group2\"")
      ->type_name("FILE");
  app.add_option("--pod-cidr", to.pod_cidr, "addresses of pods")->type_name("CIDR");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->type_name("LEVEL");
  app.footer(
      "Examples:\n"
      "  swell up                                   one node: this machine, its CPUs and GPUs\n"
      "  swell up --detach --nodes 3 --gpus-per-node 4 --control-plane-nodes 3\n"
      "  swell up --nodes 1000 --gpus-per-node 8 --runtime simulated\n");
}

LogLevel ToLevel(const std::string& text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

void PrintReady(const DataDir& dir, const std::string& url) {
  std::printf("The cluster answers at %s\n\n  export KUBECONFIG=%s\n", url.c_str(),
              dir.Kubeconfig().c_str());
  std::fflush(stdout);
}

// Runs the cluster in this process. `ready_fd` (or -1) is told the outcome in one line.
int RunCluster(const UpFlags& flags, int ready_fd) {
  const DataDir& dir = flags.cluster.data_dir;
  auto tell = [ready_fd](const std::string& line) {
    if (ready_fd < 0) return;
    [[maybe_unused]] ssize_t n = ::write(ready_fd, line.data(), line.size());
    ::close(ready_fd);
  };
  auto fail = [&](const Status& status) {
    tell("error " + status.message());
    return ready_fd < 0 ? Fail(status) : 1;
  };
  if (Status locked = LockDataDir(dir); !locked.ok()) return fail(locked);
  SetLogSink(MakeFileLogSink(dir.LogFile()), ToLevel(flags.log_level));
  std::signal(SIGPIPE, SIG_IGN);
  auto cluster = EmbeddedCluster::Create(flags.cluster);
  if (!cluster.ok()) return fail(cluster.status());
  Status ended = (*cluster)->Run([&] {
    SWELL_LOG_INFO("cluster", "ready", {"url", (*cluster)->server_url()});
    if (ready_fd < 0) {
      PrintReady(dir, (*cluster)->server_url());
    } else {
      tell("ready " + (*cluster)->server_url());
    }
  });
  cluster->reset();
  return ended.ok() ? 0 : fail(ended);
}

// The background process, in a session of its own with nothing of this terminal.
int Daemon(const UpFlags& flags, int ready_fd) {
  ::setsid();
  int null = ::open("/dev/null", O_RDWR);
  int log = ::open(flags.cluster.data_dir.LogFile().c_str(),
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (null < 0 || log < 0) return 1;
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  return RunCluster(flags, ready_fd);
}

int Detach(const UpFlags& flags) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return Fail(ErrnoStatus(errno, "pipe"));
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child < 0) return Fail(ErrnoStatus(errno, "fork"));
  if (child == 0) {
    ::close(fds[0]);
    ::_exit(Daemon(flags, fds[1]));
  }
  ::close(fds[1]);
  std::string line;
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(fds[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) line.append(buffer, static_cast<size_t>(n));
  }
  if (line.starts_with("ready ")) {
    PrintReady(flags.cluster.data_dir, line.substr(6));
    return 0;
  }
  if (line.starts_with("error ")) return Fail(Status(Code::kInternal, line.substr(6)));
  return Fail(Status(Code::kInternal, StrCat("the cluster ended before it was ready; see ",
                                             flags.cluster.data_dir.LogFile())));
}

}  // namespace

int UpCommand(const std::vector<std::string>& arguments) {
  UpFlags flags;
  CLI::App app("Starts a cluster on this machine.", "up");
  AddUpFlags(app, flags);
  if (auto exit = Parse(app, arguments)) return *exit;
  flags.cluster.data_dir = ChooseDataDir(flags.data_dir);
  flags.cluster.simulated = flags.runtime == "simulated";
  flags.cluster.sdk_path = FindSdk();
  // What is wrong with the flags is said here, before anything is started.
  if (auto nodes = PlanNodes(flags.cluster); !nodes.ok()) {
    std::fprintf(stderr, "swell up: %s\n", nodes.status().message().c_str());
    return 2;
  }
  if (Status prepared = PrepareDataDir(flags.cluster.data_dir); !prepared.ok()) {
    return Fail(prepared);
  }
  if (auto running = FindRunning(flags.cluster.data_dir)) {
    return Fail(
        Status(Code::kConflict, StrCat("a cluster already runs in ", flags.cluster.data_dir.path,
                                       " (process ", running->pid, "); stop it with: swell down")));
  }
  return flags.detach ? Detach(flags) : RunCluster(flags, -1);
}

int DownCommand(const std::vector<std::string>& arguments) {
  std::string data_dir;
  CLI::App app("Stops the cluster and its pods; what it stored stays.", "down");
  AddDataDir(app, data_dir);
  app.footer("Examples:\n  swell down\n  swell down --data-dir /srv/swell\n");
  if (auto exit = Parse(app, arguments)) return *exit;
  DataDir dir = ChooseDataDir(data_dir);
  auto running = FindRunning(dir);
  if (!running) {
    std::printf("No cluster runs in %s\n", dir.path.c_str());
    return 0;
  }
  int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, running->pid, 0));
  if (pidfd < 0) return Fail(ErrnoStatus(errno, "find the cluster's process"));
  if (::kill(running->pid, SIGTERM) != 0) {
    return Fail(ErrnoStatus(errno, StrCat("stop process ", running->pid)));
  }
  pollfd wait{pidfd, POLLIN, 0};
  if (::poll(&wait, 1, 60'000) <= 0) {
    return Fail(Status(Code::kTimeout, StrCat("process ", running->pid,
                                              " did not stop within 60 s; see ", dir.LogFile())));
  }
  std::printf("The cluster in %s is stopped\n", dir.path.c_str());
  return 0;
}

int StatusCommand(const std::vector<std::string>& arguments) {
  std::string data_dir;
  std::string output;
  CLI::App app("Says whether a cluster runs here, and how to reach it.", "status");
  AddDataDir(app, data_dir);
  app.add_option("-o,--output", output, "json")->check(CLI::IsMember({"json"}));
  app.footer("Examples:\n  swell status\n  swell status -o json\n");
  if (auto exit = Parse(app, arguments)) return *exit;
  DataDir dir = ChooseDataDir(data_dir);
  auto running = FindRunning(dir);
  std::string url;
  if (auto access = client::LoadKubeconfig(dir.Kubeconfig()); access.ok()) url = access->server;
  if (output == "json") {
    json::Value answer = json::Object{{"running", running.has_value()},
                                      {"dataDir", dir.path},
                                      {"kubeconfig", dir.Kubeconfig()},
                                      {"server", url}};
    if (running) json::Set(answer, {"pid"}, running->pid);
    std::printf("%s\n", json::PrintPretty(answer).c_str());
    return running ? 0 : 3;
  }
  if (!running) {
    std::printf("No cluster runs in %s\nStart one with: swell up --detach\n", dir.path.c_str());
    return 3;
  }
  std::printf("Running     process %d\nAPI         %s\nData        %s\nKubeconfig  %s\n",
              running->pid, url.c_str(), dir.path.c_str(), dir.Kubeconfig().c_str());
  return 0;
}

}  // namespace swell
