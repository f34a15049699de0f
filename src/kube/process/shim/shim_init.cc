#include "kube/process/shim/shim_init.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/shim/confine.h"
#include "kube/process/shim/container_root.h"
#include "kube/process/shim/container_system.h"
#include "kube/process/shim/pod_shim.h"
#include "kube/process/shim/terminal.h"

namespace swell::process {
namespace {

// close_range's flag; older headers lack the name.
constexpr unsigned kCloseOnExec = 1U << 2;

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

[[noreturn]] void Die(int error_fd, const Status& why) {
  WriteAll(error_fd, why.message());
  ::_exit(127);
}

Status JoinNetwork(const std::string& path) {
  if (path.empty()) return Status::Ok();
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open network namespace " + path);
  if (::setns(fd.get(), CLONE_NEWNET) == 0) return Status::Ok();
  return ErrnoStatus(errno, "join network " + path);
}

Status UseDevNull() {
  const UniqueFd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open /dev/null");
  ::dup2(fd.get(), STDIN_FILENO);
  return Status::Ok();
}

Status MakeAndUseTerminal(const ShimSpec& spec, int socket) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd slave, MakeTerminal(spec.uid, socket));
  return UseTerminal(slave.get());
}

// Starts before the container's root is there: entering control groups takes as long as building
// it, for the kernel waits until all processors have noticed. `go` is written when it stands.
[[noreturn]] void RunCommand(const ShimSpec& spec,
                             const InitPipes& pipes,
                             const std::vector<UniqueFd>& cgroups,
                             const ConfineFiles& files,
                             int go) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  JoinCgroups(cgroups);
  EnterCgroupNamespace(spec);
  char byte;
  if (::read(go, &byte, 1) != 1 || ::chdir("/") != 0) ::_exit(127);
  SetOomScore(spec);  // not earlier: while the root is built there is a moment without /proc
  Status ready = EnterUserNamespace(files.user_namespace);
  if (ready.ok()) ready = UseDevNull();
  if (ready.ok() && pipes.terminal >= 0) ready = MakeAndUseTerminal(spec, pipes.terminal);
  if (!ready.ok()) Die(pipes.error, ready);
  if (pipes.terminal < 0) {
    if (pipes.in >= 0) ::dup2(pipes.in, STDIN_FILENO);
    ::dup2(pipes.out, STDOUT_FILENO);
    ::dup2(pipes.err, STDERR_FILENO);
  }
  KeepStandardStreamsOnly();
  Die(pipes.error, ExecCommand(spec, spec.argv, files.filter));
}

// Everything that is left of the container, when no namespace does it for us.
void KillDescendants(pid_t main) {
  ::kill(-main, SIGKILL);
  auto children = ReadFile(StrCat("/proc/self/task/", ::getpid(), "/children"), 1 << 20);
  if (!children.ok()) return;
  for (std::string_view text : Split(*children, ' ')) {
    auto pid = ParseInt(Trim(text));
    if (pid && *pid > 1) ::kill(static_cast<pid_t>(*pid), SIGKILL);
  }
}

// Whether the process has a handler of its own for the signal.
bool Handles(pid_t pid, int signal) {
  constexpr std::string_view kCaught = "SigCgt:";
  auto status = ReadFile(StrCat("/proc/", pid, "/status"), 64 << 10);
  if (!status.ok() || signal < 1 || signal > 64) return false;
  for (std::string_view line : Split(*status, '\n')) {
    if (!line.starts_with(kCaught)) continue;
    const std::string mask(Trim(line.substr(kCaught.size())));
    return (std::strtoull(mask.c_str(), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

class Init {
 public:
  Init(pid_t main, int report, bool own_pids) : main_(main), report_(report), own_pids_(own_pids) {}

  [[noreturn]] void Run(const sigset_t& signals) {
    while (true) {
      siginfo_t info;
      int signal = ::sigwaitinfo(&signals, &info);
      if (signal < 0) continue;
      if (signal == SIGCHLD) {
        Reap();
      } else if (signal == KillAllSignal()) {
        killing_ = true;
        KillRest();
        Reap();
      } else {
        const bool stops = signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
        if (Forward(signal) && stops) stopping_ = true;
      }
    }
  }

 private:
  // A command that handles the signal gets it alone, as the first process of a container does, and
  // tells its children what it likes; its end is the container's. One that does not would die of
  // it, or not hear of it, and a shell would never tell the program that it runs: then all of its
  // process group get the signal, and the container ends with the last of them. Whether they got
  // it.
  bool Forward(int signal) {
    if (main_done_) {
      if (own_pids_) ::kill(-1, signal);
      return true;
    }
    if (Handles(main_, signal)) {
      ::kill(main_, signal);
      return false;
    }
    // Before the command leads a group of its own there is only itself.
    if (::kill(-main_, signal) != 0) ::kill(main_, signal);
    return true;
  }

  void KillRest() {
    if (own_pids_) {
      ::kill(-1, SIGKILL);
    } else {
      KillDescendants(main_);
    }
  }

  void Reap() {
    while (true) {
      int status = 0;
      pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0) Leave();  // nobody is left
      if (pid == 0) break;
      if (pid == main_) {
        main_done_ = true;
        WriteAll(report_, std::string_view(reinterpret_cast<const char*>(&status), sizeof status));
        ::close(report_);
        // In namespaces of our own the kernel ends the rest with us. Orderly stops wait for it.
        if (!stopping_ && own_pids_) Leave();
      }
    }
    if (main_done_ && (killing_ || !stopping_ || !GroupIsLeft())) KillRest();
  }

  // A stop waits for the processes that were told of it. A child with a session of its own was not.
  bool GroupIsLeft() const { return ::kill(-main_, 0) == 0 || errno == EPERM; }

  [[noreturn]] void Leave() { ::_exit(0); }

  pid_t main_;
  int report_;
  bool own_pids_;
  bool main_done_ = false;
  bool stopping_ = false;
  bool killing_ = false;
};

// Why the kernel does not find a file that exists.
std::string MissingInterpreter(const std::string& program) {
  char begin[256];
  const UniqueFd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.valid() ? ::read(file.get(), begin, sizeof(begin)) : 0;
  std::string_view line(begin, std::max<ssize_t>(size, 0));
  if (!line.starts_with("#!")) return "the loader that it was linked for is not there";
  line = line.substr(2, line.find('\n') - 2);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  line = line.substr(0, line.find_first_of(" \t"));
  // The line ends of Windows are a part of the name.
  const bool returns = line.ends_with('\r');
  if (returns) line.remove_suffix(1);
  return StrCat("its first line names a program that is not there: '", line,
                returns ? "\\r'" : "'");
}

}  // namespace

std::vector<UniqueFd> OpenCgroups(const ShimSpec& spec) {
  std::vector<UniqueFd> files;
  for (const CgroupDir& group : spec.cgroups) {
    UniqueFd fd(::open((group.path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (fd.valid()) files.push_back(std::move(fd));
  }
  return files;
}

void JoinCgroups(const std::vector<UniqueFd>& files) {
  for (const UniqueFd& fd : files) WriteAll(fd.get(), "0");
}

void SetOomScore(const ShimSpec& spec) {
  const UniqueFd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file.valid()) WriteAll(file.get(), std::to_string(spec.oom_score));
}

Result<std::string> FindExecutable(const std::string& command,
                                   const std::vector<std::string>& env) {
  auto usable = [](const std::string& path) {
    struct stat info;
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
  };
  if (command.find('/') != std::string::npos) {
    if (usable(command)) return command;
    bool exists = FileExists(command);
    std::string why = exists ? "permission denied" : "no such file or directory";
    return Status(exists ? Code::kInvalid : Code::kNotFound,
                  StrCat("exec: ", Quote(command), ": ", why));
  }
  std::string_view path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (const std::string& item : env) {
    if (item.starts_with("PATH=")) path = std::string_view(item).substr(5);
  }
  for (std::string_view dir : Split(path, ':')) {
    if (dir.empty()) continue;
    std::string candidate = StrCat(dir, "/", command);
    if (usable(candidate)) return candidate;
  }
  return Status(Code::kNotFound,
                StrCat("exec: ", Quote(command), ": executable file not found in $PATH"));
}

int StartFailureCode(const Status& why) { return why.code() == Code::kNotFound ? 127 : 126; }

void EnterCgroupNamespace(const ShimSpec& spec) {
  // Where the kernel has none, /proc/self/cgroup tells the group's name, and no more.
  if (spec.confined && !spec.privileged && spec.isolation != Isolation::kNone) {
    ::unshare(CLONE_NEWCGROUP);
  }
}

void KeepStandardStreamsOnly() {
  // Marked, not closed: the filter of system calls is still to be read.
  ::syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, kCloseOnExec);
}

Status ExecCommand(const ShimSpec& spec,
                   const std::vector<std::string>& argv,
                   const std::string& filter) {
  const std::string cwd = spec.cwd.empty() ? "/" : spec.cwd;
  // Its user need not have the right to enter it, but makes it only with the right to.
  const bool there = FileExists(cwd);
  if (there && ::chdir(cwd.c_str()) != 0) return ErrnoStatus(errno, "working directory " + cwd);
  SWELL_RETURN_IF_ERROR(Confine(spec, filter));
  if (!there) {
    SWELL_RETURN_IF_ERROR(MakeDirs(cwd));
    if (::chdir(cwd.c_str()) != 0) return ErrnoStatus(errno, "working directory " + cwd);
  }
  SWELL_ASSIGN_OR_RETURN(std::string program, FindExecutable(argv[0], spec.env));
  std::vector<char*> arguments, environment;
  for (const std::string& item : argv) arguments.push_back(const_cast<char*>(item.c_str()));
  for (const std::string& item : spec.env) environment.push_back(const_cast<char*>(item.c_str()));
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(program.c_str(), arguments.data(), environment.data());
  if (errno == ENOEXEC) {
    // A script without #!: what execvp and every shell do.
    arguments.insert(arguments.begin(), const_cast<char*>("/bin/sh"));
    arguments[1] = program.data();
    ::execve("/bin/sh", arguments.data(), environment.data());
  }
  const std::string why = errno == ENOENT ? MissingInterpreter(program) : std::strerror(errno);
  return Status(Code::kInvalid, StrCat("exec: ", Quote(argv[0]), ": ", why));
}

void RunInit(const ShimSpec& spec, const std::string& dir, const InitPipes& pipes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (pipes.mapped >= 0) {
    char byte;
    if (::read(pipes.mapped, &byte, 1) != 1) ::_exit(127);
  }
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Processes of the container may meet this one, which still is the program of the machine.
  if (spec.isolation == Isolation::kFull) ::prctl(PR_SET_DUMPABLE, 0);
  const bool own_pids = spec.own_pids();
  if (!own_pids) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Status ready = JoinNetwork(spec.netns);
  if (ready.ok()) ready = SetSysctls(spec);
  auto files = OpenConfineFiles(spec);
  if (ready.ok()) ready = files.status();
  if (!ready.ok()) Die(pipes.error, ready);
  auto release = MakePipe();
  if (!release.ok()) Die(pipes.error, release.status());
  std::vector<UniqueFd> cgroups = OpenCgroups(spec);
  pid_t main = ::fork();
  if (main < 0) Die(pipes.error, ErrnoStatus(errno, "fork"));
  if (main == 0) {
    release->write.Reset();
    RunCommand(spec, pipes, cgroups, *files, release->read.get());
  }
  cgroups.clear();
  if (spec.isolation != Isolation::kNone) {
    if (!spec.hostname.empty()) ::sethostname(spec.hostname.data(), spec.hostname.size());
    ready = EnterContainerRoot(spec, dir, files->user_namespace.get());
  }
  if (ready.ok()) ready = UseDevNull();
  if (!ready.ok()) Die(pipes.error, ready);
  WriteAll(release->write.get(), "g");
  release->read.Reset();
  release->write.Reset();
  for (int fd : {pipes.in, pipes.out, pipes.err, pipes.terminal, pipes.error}) {
    if (fd >= 0) ::close(fd);
  }
  // The shim's own streams are not the container's.
  ::dup2(STDIN_FILENO, STDOUT_FILENO);
  ::dup2(STDIN_FILENO, STDERR_FILENO);
  if (spec.confined) {
    ready = EnterUserNamespace(files->user_namespace);
    if (!ready.ok()) ::_exit(127);  // which ends the container
    files->user_namespace.Reset();
    KeepOnlyKill();
  }
  Init(main, pipes.report, own_pids).Run(all);
}

}  // namespace swell::process
