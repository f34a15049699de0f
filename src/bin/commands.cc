#include "bin/commands.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "bin/command_line.h"
#include "bin/data_dir.h"
#include "bin/embedded_cluster.h"
#include "json/value.h"
#include "kube/client/kubeconfig.h"
#include "operator/manager.h"

namespace swell {
namespace {

struct UpFlags {
  ClusterOptions cluster;
  std::string data_dir;
  std::string runtime = "process";
  std::string log_level = "info";
  std::vector<std::string> controllers;
  std::vector<std::string> settings;
  int64_t audit_mib = 100;
  int64_t audit_backups = 10;
  bool detach = false;
};

const cli::Command kUp{
    .name = "up",
    .summary = "Start a cluster on this machine.",
    .examples = {{"One node: this machine, its CPUs and GPUs", "swell up"},
                 {"Three virtual nodes and a control plane, in the background",
                  "swell up --detach --nodes 3 --gpus-per-node 4 --control-plane-nodes 3"},
                 {"Many nodes whose pods only pretend",
                  "swell up --nodes 1000 --gpus-per-node 8 --runtime simulated"}}};
const cli::Command kDown{.name = "down",
                         .summary = "Stop the cluster and its pods; what it stored stays.",
                         .examples = {{"The cluster in the usual place", "swell down"},
                                      {"Another one", "swell down --data-dir /srv/swell"}}};
const cli::Command kStatus{
    .name = "status",
    .summary = "Say whether a cluster runs here, and how to reach it.",
    .examples = {{"For people", "swell status"}, {"For scripts", "swell status -o json"}}};

void AddUpFlags(cli::Flags& flags, UpFlags& to) {
  flags.Switch("-d,--detach", &to.detach, "run in the background, return once it answers");
  AddDataDir(flags, to.data_dir);
  AddLogLevel(flags, to.log_level);
  ClusterOptions& cluster = to.cluster;
  flags.Group("Nodes");
  AddNodeFlags(flags, cluster.plan);
  flags.Choice("--runtime", &to.runtime, "KIND", {"process", "simulated"},
               "process: pods are real processes; simulated: pods only pretend (default process)");
  flags.Text("--pod-cidr", &cluster.pod_cidr, "CIDR", "addresses of pods");
  flags.Group("API server");
  flags.Text("--listen", &cluster.listen, "HOST:PORT",
             "address of the API (default 127.0.0.1, a free port kept over restarts)");
  flags.Text("--token-auth-file", &cluster.token_auth_file, "FILE",
             "bearer tokens, lines of token,user,uid,\"group1,group2\"");
  flags.Choice("--audit", &cluster.audit, "LEVEL", {"none", "writes", "all"},
               "what DIR/audit.log tells of the requests from outside: nothing; what changes "
               "something, reads a secret or is refused; everything (default writes)");
  flags.Int("--audit-log-maxsize", &to.audit_mib, "MIB",
            "size at which the audit log becomes audit.log.1 (default 100)");
  flags.Int("--audit-log-maxbackup", &to.audit_backups, "N",
            "how many of those are kept (default 10)");
  flags.Group("Scheduler");
  AddSettingsFlag(flags, to.settings);
  AddRecordFlag(flags, cluster.record_mib);
  flags.Group("Controllers");
  flags.List("--controllers", &to.controllers, "LIST",
             StrCat("built-in controllers to run: *, NAME, -NAME, with commas between; of ",
                    Join(controllers::ControllerNames(), ", "),
                    "; Swell's own always run (default *; swell: none of these)"));
  flags.SwitchOff("--no-default-scheduler", &cluster.default_scheduler,
                  "leave pods of the scheduler default-scheduler to another scheduler");
  flags.Group("");
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
    return ready_fd < 0 ? FailCommand(status) : 1;
  };
  if (Status locked = LockDataDir(dir); !locked.ok()) return fail(locked);
  SetLogSink(MakeFileLogSink(dir.LogFile()), LogLevelOf(flags.log_level));
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
  if (::pipe2(fds, O_CLOEXEC) != 0) return FailCommand(ErrnoStatus(errno, "pipe"));
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child < 0) return FailCommand(ErrnoStatus(errno, "fork"));
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
  if (line.starts_with("error ")) return FailCommand(Status(Code::kInternal, line.substr(6)));
  return FailCommand(Status(Code::kInternal, StrCat("the cluster ended before it was ready; see ",
                                                    flags.cluster.data_dir.LogFile())));
}

// The first name that is none of a controller; empty when all are.
std::string UnknownController(const std::vector<std::string>& controllers) {
  const std::vector<std::string>& known = controllers::ControllerNames();
  for (const std::string& item : controllers) {
    const std::string name = item.starts_with("-") ? item.substr(1) : item;
    if (name == "*" || name == "swell") continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) return name;
  }
  return {};
}

}  // namespace

int UpCommand(const std::vector<std::string>& arguments) {
  UpFlags flags;
  cli::Flags declared;
  AddUpFlags(declared, flags);
  if (auto exit = ParseCommandLine(kUp, declared, arguments)) return *exit;
  if (!flags.controllers.empty()) flags.cluster.controllers.clear();
  for (const std::string& list : flags.controllers) {
    for (std::string_view name : Split(list, ',')) flags.cluster.controllers.emplace_back(name);
  }
  if (Status set = ReadSettings(flags.settings, flags.cluster.scheduler); !set.ok()) {
    return Misused(kUp, set.message());
  }
  if (flags.audit_mib < 1 || flags.audit_backups < 0 || flags.audit_backups > 1000) {
    return Misused(kUp, "--audit-log-maxsize is at least 1, --audit-log-maxbackup 0 to 1000");
  }
  flags.cluster.audit_limits = {static_cast<uint64_t>(flags.audit_mib) << 20,
                                static_cast<int>(flags.audit_backups)};
  flags.cluster.data_dir = ChooseDataDir(flags.data_dir);
  flags.cluster.simulated = flags.runtime == "simulated";
  if (!flags.cluster.simulated) flags.cluster.sdk_path = FindSdk();
  // What is wrong with the flags is said here, before anything is started.
  if (std::string name = UnknownController(flags.cluster.controllers); !name.empty()) {
    return Misused(
        kUp, StrCat("--controllers: ", Quote(name), " is not in the list of known controllers"));
  }
  if (auto nodes = PlanNodes(flags.cluster.plan); !nodes.ok()) {
    return Misused(kUp, nodes.status().message());
  }
  if (Status prepared = PrepareDataDir(flags.cluster.data_dir); !prepared.ok()) {
    return FailCommand(prepared);
  }
  if (auto running = FindRunning(flags.cluster.data_dir)) {
    return FailCommand(
        Status(Code::kConflict, StrCat("a cluster already runs in ", flags.cluster.data_dir.path,
                                       " (process ", running->pid, "); stop it with: swell down")));
  }
  return flags.detach ? Detach(flags) : RunCluster(flags, -1);
}

int DownCommand(const std::vector<std::string>& arguments) {
  std::string data_dir;
  cli::Flags flags;
  AddDataDir(flags, data_dir);
  if (auto exit = ParseCommandLine(kDown, flags, arguments)) return *exit;
  DataDir dir = ChooseDataDir(data_dir);
  auto running = FindRunning(dir);
  if (!running) {
    std::printf("No cluster runs in %s\n", dir.path.c_str());
    return 0;
  }
  int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, running->pid, 0));
  if (pidfd < 0) return FailCommand(ErrnoStatus(errno, "find the cluster's process"));
  if (::kill(running->pid, SIGTERM) != 0) {
    return FailCommand(ErrnoStatus(errno, StrCat("stop process ", running->pid)));
  }
  pollfd wait{pidfd, POLLIN, 0};
  if (::poll(&wait, 1, 60'000) <= 0) {
    return FailCommand(
        Status(Code::kTimeout,
               StrCat("process ", running->pid, " did not stop within 60 s; see ", dir.LogFile())));
  }
  std::printf("The cluster in %s is stopped\n", dir.path.c_str());
  return 0;
}

int StatusCommand(const std::vector<std::string>& arguments) {
  std::string data_dir;
  std::string output;
  cli::Flags flags;
  AddDataDir(flags, data_dir);
  flags.Choice("-o,--output", &output, "FORMAT", {"json"}, "json");
  if (auto exit = ParseCommandLine(kStatus, flags, arguments)) return *exit;
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
