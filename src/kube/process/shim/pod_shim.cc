#include "kube/process/shim/pod_shim.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "kube/process/shim/log_pump.h"
#include "kube/process/shim/shim_exec.h"
#include "kube/process/shim/shim_init.h"
#include "kube/process/shim/shim_spec.h"
#include "kube/process/shim/shim_stdio.h"
#include "kube/process/shim/terminal.h"

namespace swell::edge {
namespace {

constexpr int kStatusFd = 3;
constexpr unsigned kNamespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;

void Tell(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(kStatusFd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// The container's directory, a line on the status socket; empty when none comes.
std::string AwaitDir() {
  std::string line;
  char buffer[4096];
  while (line.size() < sizeof buffer) {
    ssize_t n = ::read(kStatusFd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    line.append(buffer, static_cast<size_t>(n));
    if (line.back() == '\n') return line.substr(0, line.size() - 1);
  }
  return {};
}

int Refuse(const Status& why) {
  Tell(StrCat("error ", why.message(), "\n"));
  return 1;
}

Status WriteText(const std::string& path, std::string_view text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  ssize_t n = ::write(fd, text.data(), text.size());
  int error = n < 0 ? errno : 0;
  ::close(fd);
  return error == 0 ? Status::Ok() : ErrnoStatus(error, "write " + path);
}

// fork with namespaces. The process has one thread, so the child may use everything.
pid_t Clone(unsigned flags) {
  return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, 0));
}

Status MapIds(pid_t child, uid_t uid, gid_t gid) {
  std::string proc = StrCat("/proc/", child);
  SWELL_RETURN_IF_ERROR(WriteText(proc + "/setgroups", "deny"));
  SWELL_RETURN_IF_ERROR(WriteText(proc + "/uid_map", StrCat("0 ", uid, " 1")));
  return WriteText(proc + "/gid_map", StrCat("0 ", gid, " 1"));
}

// Children are born into the process namespace of that process from now on.
Status EnterProcesses(const ProcessId& of) {
  const int fd = ::open(StrCat("/proc/", of.pid, "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ProcessStartTime(of.pid) != of.start) {
    if (fd >= 0) ::close(fd);
    return Status(Code::kInvalid, "the target container has ended");
  }
  Status entered;
  if (::setns(fd, CLONE_NEWPID) != 0) entered = ErrnoStatus(errno, "enter its process namespace");
  ::close(fd);
  return entered;
}

class Shim {
 public:
  Shim(ShimSpec spec, std::string dir)
      : spec_(std::move(spec)),
        dir_(std::move(dir)),
        log_(spec_.log_path, spec_.log_bytes_max, spec_.log_files_max) {}

  int Run() {
    sigset_t signals;
    sigfillset(&signals);
    ::sigprocmask(SIG_SETMASK, &signals, nullptr);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    signal_fd_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    MakeCgroups();
    Status started = StartInit();
    if (!started.ok()) {
      RemoveCgroups();
      return Refuse(started);
    }
    state_.shim_pid = ::getpid();
    state_.shim_start = ProcessStartTime(::getpid());
    state_.init_pid = init_;
    state_.init_start = ProcessStartTime(init_);
    state_.started_ns = clock_.Now().unix_ns;
    state_.own_pids = spec_.own_pids();
    Status written = ReplaceFile(dir_ + "/state.json", json::Print(state_.ToJson()), 0600);
    if (!written.ok()) {
      ::kill(init_, SIGKILL);
      return Refuse(written);
    }
    Tell("started\n");
    ::close(kStatusFd);
    Pump();
    Finish();
    return 0;
  }

 private:
  // A limit that cannot be set is not worth failing a job for; the node says which ones hold.
  void MakeCgroups() {
    for (const CgroupDir& group : spec_.cgroups) {
      if (!MakeDirs(group.path).ok()) continue;
      for (const auto& [file, value] : group.values) {
        Status written = WriteText(group.path + "/" + file, value);
        (void)written;
      }
    }
  }

  void RemoveCgroups() {
    for (const CgroupDir& group : spec_.cgroups) ::rmdir(group.path.c_str());
  }

  Status StartInit() {
    int out[2] = {-1, -1}, err[2] = {-1, -1}, error[2] = {-1, -1}, report[2] = {-1, -1};
    int in[2] = {-1, -1}, go[2] = {-1, -1}, terminal[2] = {-1, -1};
    for (int* pair : {out, err, error, report}) {
      if (::pipe2(pair, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
    }
    if (spec_.tty && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, terminal) != 0) {
      return ErrnoStatus(errno, "socketpair");
    }
    if (spec_.open_stdin && !spec_.tty && ::pipe2(in, O_CLOEXEC) != 0) {
      return ErrnoStatus(errno, "pipe");
    }
    unsigned flags = 0;
    if (spec_.isolation != Isolation::kNone) flags = kNamespaces;
    if (spec_.beside) {
      SWELL_RETURN_IF_ERROR(EnterProcesses(*spec_.beside));
      flags &= ~static_cast<unsigned>(CLONE_NEWPID);
    }
    if (spec_.isolation == Isolation::kUser) {
      flags |= CLONE_NEWUSER;
      if (::pipe2(go, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
    }
    uid_t uid = ::geteuid();
    gid_t gid = ::getegid();
    init_ = Clone(flags);
    if (init_ < 0) return ErrnoStatus(errno, "start the container's first process");
    if (init_ == 0) {
      ::close(kStatusFd);
      for (int fd : {in[1], out[0], err[0], terminal[0], error[0], report[0], go[1], signal_fd_}) {
        if (fd >= 0) ::close(fd);
      }
      RunInit(spec_, dir_, {in[0], out[1], err[1], terminal[1], error[1], report[1], go[0]});
    }
    for (int fd : {in[0], out[1], err[1], terminal[1], error[1], report[1], go[0]}) {
      if (fd >= 0) ::close(fd);
    }
    if (go[1] >= 0) {
      Status mapped = MapIds(init_, uid, gid);
      if (!mapped.ok()) {
        ::kill(init_, SIGKILL);
        return mapped;
      }
      if (::write(go[1], "g", 1) != 1) return ErrnoStatus(errno, "release the first process");
      ::close(go[1]);
    }
    streams_[0] = {out[0], "stdout", 'O'};
    streams_[1] = {err[0], "stderr", 'E'};
    report_ = report[0];
    int input = in[1];
    if (spec_.tty) input = TakeTerminal(terminal[0]);
    for (const Stream& stream : streams_) {
      if (stream.fd >= 0) ::fcntl(stream.fd, F_SETFL, O_NONBLOCK);
    }
    SWELL_RETURN_IF_ERROR(AwaitCommand(error[0]));
    stdio_ = std::make_unique<ShimStdio>(
        dir_, ShimStdio::Options{spec_.open_stdin || spec_.tty ? input : -1, spec_.tty,
                                 spec_.stdin_once});
    return Status::Ok();
  }

  // One stream for everything: the terminal's master. Without one the error pipe says why.
  int TakeTerminal(int socket) {
    auto master = ReceiveFd(socket);
    ::close(socket);
    if (!master.ok()) return -1;
    for (Stream& stream : streams_) ::close(std::exchange(stream.fd, -1));
    streams_[0].fd = *master;
    return *master;
  }

  // The error pipe closes without a word when the command has been executed.
  Status AwaitCommand(int error) {
    std::string text;
    char buffer[4096];
    while (text.size() < 65536) {
      ssize_t n = ::read(error, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    ::close(error);
    if (text.empty()) return Status::Ok();
    ::kill(init_, SIGKILL);
    ::waitpid(init_, nullptr, 0);
    return Status(Code::kInvalid, text);
  }

  void Pump() {
    while (true) {
      std::vector<pollfd> fds{{signal_fd_, POLLIN, 0}};
      for (const Stream& stream : streams_) {
        fds.push_back({stdio_->Congested(stream.letter) ? -1 : stream.fd, POLLIN, 0});
      }
      stdio_->AddTo(fds);
      if (::poll(fds.data(), fds.size(), -1) < 0) {
        if (errno == EINTR) continue;
        break;
      }
      for (int i = 0; i < 2; ++i) {
        if (fds[i + 1].revents != 0) Drain(streams_[i]);
      }
      log_.Flush();
      stdio_->OnPolled(fds.data() + 3);
      if (fds[0].revents != 0 && InitEnded()) break;
    }
    for (Stream& stream : streams_) {
      DrainAll(stream);
      log_.End(stream.name, clock_.Now());
    }
    log_.Flush();
    stdio_->Finish();
  }

  struct Stream {
    int fd = -1;
    const char* name = "";
    char letter = 0;  // ShimStdio's
  };

  // What an ended container has left in its pipes; readers who attached must keep up.
  void DrainAll(Stream& stream) {
    Drain(stream);
    // As much as a pipe can hold.
    for (int round = 0; stdio_->Congested(stream.letter) && round < 16; ++round) {
      stdio_->Finish();
      Drain(stream);
    }
  }

  void Drain(Stream& stream) {
    char buffer[65536];
    // Bounded, so that a loud stream does not keep the other one waiting.
    for (int round = 0; stream.fd >= 0 && round < 16; ++round) {
      if (stdio_->Congested(stream.letter)) return;
      ssize_t n = ::read(stream.fd, buffer, sizeof buffer);
      if (n > 0) {
        const std::string_view bytes(buffer, static_cast<size_t>(n));
        log_.Feed(stream.name, bytes, clock_.Now());
        stdio_->Feed(stream.letter, bytes);
        if (n < static_cast<ssize_t>(sizeof buffer) && !spec_.tty) return;
        log_.Flush();
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        ::close(stream.fd);
        stream.fd = -1;
      } else {
        return;
      }
    }
  }

  bool InitEnded() {
    struct signalfd_siginfo info;
    while (::read(signal_fd_, &info, sizeof info) > 0) {
    }
    int status = 0;
    return ::waitpid(init_, &status, WNOHANG) != 0;
  }

  bool OomKilled() const {
    if (spec_.oom_file.empty()) return false;
    auto text = ReadFile(spec_.oom_file, 65536);
    if (!text.ok()) return false;
    for (std::string_view line : Split(*text, '\n')) {
      if (line.starts_with("oom_kill ")) return ParseInt(line.substr(9)).value_or(0) > 0;
    }
    return false;
  }

  void Finish() {
    int status = SIGKILL;  // no report: the first process was killed, and all with it
    ssize_t n = ::read(report_, &status, sizeof status);
    if (n != static_cast<ssize_t>(sizeof status)) status = SIGKILL;
    ShimExit exit;
    exit.started_ns = state_.started_ns;
    exit.finished_ns = clock_.Now().unix_ns;
    if (WIFSIGNALED(status)) {
      exit.signal = WTERMSIG(status);
      exit.code = 128 + exit.signal;
    } else {
      exit.code = WEXITSTATUS(status);
    }
    exit.oom = exit.code != 0 && OomKilled();
    Status written = ReplaceFile(dir_ + "/exit.json", json::Print(exit.ToJson()), 0600);
    (void)written;  // nobody is left to tell; the runtime takes a missing file for a kill
    RemoveCgroups();
  }

  ShimSpec spec_;
  std::string dir_;
  RealClock clock_;
  LogPump log_;
  ShimState state_;
  pid_t init_ = -1;
  int signal_fd_ = -1;
  int report_ = -1;
  Stream streams_[2];
  std::unique_ptr<ShimStdio> stdio_;
};

}  // namespace

int KillAllSignal() { return SIGRTMIN + 1; }

int PodShimMain(int argc, char** argv) {
  if (argc >= 5 && std::string_view(argv[1]) == "exec") {
    return ShimExecMain(argv[2], std::string_view(argv[3]) == "terminal",
                        std::vector<std::string>(argv + 4, argv + argc));
  }
  if (argc != 1) {
    Tell("error usage: pod-shim\n");
    return 2;
  }
  ::setsid();
  ::umask(022);
  ::syscall(SYS_close_range, kStatusFd + 1U, ~0U, 0U);
  std::string dir = AwaitDir();
  if (dir.empty()) return 0;  // whoever kept us ready is gone
  auto spec = ReadShimSpec(dir);
  if (!spec.ok()) return Refuse(spec.status());
  const bool beside = spec->beside.has_value();
  const int code = Shim(std::move(*spec), dir).Run();
  // Not exit(): a leak checker looks at us from a process that it starts then, which would be born
  // in the other's process namespace and wait for us there for ever.
  if (beside) ::_exit(code);
  return code;
}

}  // namespace swell::edge
