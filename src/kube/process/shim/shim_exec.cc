#include "kube/process/shim/shim_exec.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/shim/confine.h"
#include "kube/process/shim/shim_init.h"
#include "kube/process/shim/shim_spec.h"
#include "kube/process/shim/terminal.h"

namespace swell::process {
namespace {

constexpr int kTerminalSocket = 3;

int Fail(const Status& why) {
  const std::string text = why.message() + "\n";
  ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  (void)ignored;
  return StartFailureCode(why);
}

Status JoinContainer(const ShimSpec& spec, const ProcessId& init) {
  if (spec.isolation == Isolation::kNone) return Status::Ok();
  std::vector<std::pair<const char*, int>> kinds;
  if (spec.isolation == Isolation::kUser) kinds.emplace_back("user", CLONE_NEWUSER);
  if (!spec.netns.empty()) kinds.emplace_back("net", CLONE_NEWNET);
  kinds.emplace_back("uts", CLONE_NEWUTS);
  if (!spec.host_ipc) kinds.emplace_back("ipc", CLONE_NEWIPC);
  if (!spec.host_pid) kinds.emplace_back("pid", CLONE_NEWPID);
  kinds.emplace_back("mnt", CLONE_NEWNS);
  std::vector<UniqueFd> fds;
  for (const auto& [name, kind] : kinds) {
    UniqueFd fd(::open(StrCat("/proc/", init.pid, "/ns/", name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus(errno, StrCat("open namespace ", name));
    fds.push_back(std::move(fd));
  }
  // The number may be another process's by now, and so the namespaces another pod's.
  if (ProcessStartTime(init.pid) != init.start) {
    return Status(Code::kInvalid, "the container has ended");
  }
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (::setns(fds[i].get(), kinds[i].second) != 0) {
      return ErrnoStatus(errno, StrCat("join namespace ", kinds[i].first));
    }
  }
  return Status::Ok();
}

// Programs ask for it as soon as there is a terminal; clients do not send theirs.
void AddTerm(ShimSpec& spec) {
  for (const std::string& item : spec.env) {
    if (item.starts_with("TERM=")) return;
  }
  spec.env.push_back("TERM=xterm");
}

[[noreturn]] void RunChild(const ShimSpec& spec,
                           const std::vector<std::string>& argv,
                           const std::vector<UniqueFd>& cgroups,
                           const ConfineFiles& files,
                           const UniqueFd& slave) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  JoinCgroups(cgroups);
  EnterCgroupNamespace(spec);
  Status ready = slave.valid() ? UseTerminal(slave.get()) : Status::Ok();
  // Whatever this process was started with is not the container's.
  KeepStandardStreamsOnly();
  if (ready.ok()) ready = ExecCommand(spec, argv, files.filter);
  ::_exit(Fail(ready));
}

// Waits for the child; SIGTERM kills it.
int Await(pid_t child, const sigset_t& signals) {
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    siginfo_t info;
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal == SIGTERM && ::kill(-child, SIGKILL) != 0) ::kill(child, SIGKILL);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int ShimExecMain(const std::string& dir, bool terminal, const std::vector<std::string>& argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  auto spec = ReadShimSpec(dir);
  if (!spec.ok()) return Fail(spec.status());
  auto state = ReadShimState(dir);
  if (!state.ok()) return Fail(state.status());
  // As in RunInit.
  if (spec->isolation == Isolation::kFull) ::prctl(PR_SET_DUMPABLE, 0);
  SetOomScore(*spec);
  const std::vector<UniqueFd> cgroups = OpenCgroups(*spec);
  auto files = OpenConfineFiles(*spec);
  if (!files.ok()) return Fail(files.status());
  Status joined = JoinContainer(*spec, {state->init_pid, state->init_start});
  // Last: what the others belong to, the pod's root may not enter.
  if (joined.ok()) joined = EnterUserNamespace(files->user_namespace);
  if (!joined.ok()) return Fail(joined);
  UniqueFd slave;
  if (terminal) {
    AddTerm(*spec);
    auto made = MakeTerminal(spec->uid, kTerminalSocket);
    if (!made.ok()) return Fail(made.status());
    slave = std::move(*made);
    ::close(kTerminalSocket);
  }
  const pid_t child = ::fork();
  if (child < 0) return Fail(ErrnoStatus(errno, "fork"));
  if (child == 0) RunChild(*spec, argv, cgroups, *files, slave);
  // Readers must see the end when the command is gone, not when this process is.
  slave.Reset();
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  // Not exit(): what a sanitizer does then cannot work in another process namespace, and hangs.
  ::_exit(Await(child, signals));
}

}  // namespace swell::process
