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
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/shim/device_filter.h"
#include "kube/process/shim/log_pump.h"
#include "kube/process/shim/shim_exec.h"
#include "kube/process/shim/shim_init.h"
#include "kube/process/shim/shim_spec.h"
#include "kube/process/shim/shim_stdio.h"
#include "kube/process/shim/terminal.h"

namespace swell::process {
namespace {

constexpr int kStatusFd = 3;
constexpr unsigned kNamespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;

void WriteStatus(std::string_view text) {
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

int Fail(const Status& why) {
  WriteStatus(StrCat("error ", why.message(), "\n"));
  return 1;
}

Status WriteText(const std::string& path, std::string_view text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  return n >= 0 ? Status::Ok() : ErrnoStatus(errno, "write " + path);
}

// Where this fails, the process stays where it is, and its pod runs all the same.
void JoinGroup(const std::string& group) {
  if (!MakeDirs(group).ok()) return;
  Status joined = WriteText(group + "/cgroup.procs", "0");
  (void)joined;
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

// Children started from now on are in the process namespace of that process.
Status EnterPidNamespace(const ProcessId& of) {
  const UniqueFd fd(::open(StrCat("/proc/", of.pid, "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || ProcessStartTime(of.pid) != of.start) {
    return Status(Code::kInvalid, "the target container has ended");
  }
  if (::setns(fd.get(), CLONE_NEWPID) == 0) return Status::Ok();
  return ErrnoStatus(errno, "enter its process namespace");
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
    signal_fd_ = UniqueFd(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    MakeCgroups();
    Status started = StartInit();
    if (!started.ok()) {
      RemoveCgroups();
      return Fail(started);
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
      return Fail(written);
    }
    WriteStatus("started\n");
    ::close(kStatusFd);
    Pump();
    Finish();
    return 0;
  }

 private:
  // A limit that cannot be set is not worth failing a job for; the node says which ones hold.
  void MakeCgroups() {
    for (const CgroupDir& group : spec_.pod_cgroups) MakeCgroup(group);
    for (const CgroupDir& group : spec_.cgroups) MakeCgroup(group);
  }

  static void MakeCgroup(const CgroupDir& group) {
    if (!MakeDirs(group.path).ok()) return;
    for (const auto& [file, value] : group.values) {
      Status written = WriteText(group.path + "/" + file, value);
      (void)written;
    }
    if (group.devices.empty()) return;
    Status filtered = AllowDevices(group.path, group.devices);
    (void)filtered;
  }

  void RemoveCgroups() {
    for (const CgroupDir& group : spec_.cgroups) ::rmdir(group.path.c_str());
  }

  // What the shim and the container's first process share.
  struct Channels {
    PipeEnds in, out, err, error, report, mapped;
    std::pair<UniqueFd, UniqueFd> terminal;  // the shim's end, the first process's
  };

  Result<Channels> MakeChannels() const {
    Channels made;
    for (PipeEnds* pipe : {&made.out, &made.err, &made.error, &made.report}) {
      SWELL_ASSIGN_OR_RETURN(*pipe, MakePipe());
    }
    if (spec_.tty) {
      SWELL_ASSIGN_OR_RETURN(made.terminal, MakeSocketPair());
    } else if (spec_.open_stdin) {
      SWELL_ASSIGN_OR_RETURN(made.in, MakePipe());
    }
    if (spec_.isolation == Isolation::kUser) {
      SWELL_ASSIGN_OR_RETURN(made.mapped, MakePipe());
    }
    return made;
  }

  Result<unsigned> NamespaceFlags() const {
    unsigned flags = spec_.isolation == Isolation::kNone ? 0 : kNamespaces;
    if (spec_.beside) {
      SWELL_RETURN_IF_ERROR(EnterPidNamespace(*spec_.beside));
      flags &= ~static_cast<unsigned>(CLONE_NEWPID);
    }
    if (spec_.host_pid) flags &= ~static_cast<unsigned>(CLONE_NEWPID);
    if (spec_.host_ipc) flags &= ~static_cast<unsigned>(CLONE_NEWIPC);
    if (spec_.isolation == Isolation::kUser) flags |= CLONE_NEWUSER;
    return flags;
  }

  Status StartInit() {
    SWELL_ASSIGN_OR_RETURN(Channels channels, MakeChannels());
    SWELL_ASSIGN_OR_RETURN(const unsigned flags, NamespaceFlags());
    auto& [in, out, err, error, report, mapped, terminal] = channels;
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    init_ = Clone(flags);
    if (init_ < 0) return ErrnoStatus(errno, "start the container's first process");
    if (init_ == 0) {
      ::close(kStatusFd);
      for (UniqueFd* fd : {&in.write, &out.read, &err.read, &terminal.first, &error.read,
                           &report.read, &mapped.write, &signal_fd_}) {
        fd->Reset();
      }
      RunInit(spec_, dir_,
              {in.read.get(), out.write.get(), err.write.get(), terminal.second.get(),
               error.write.get(), report.write.get(), mapped.read.get()});
    }
    for (UniqueFd* fd : {&in.read, &out.write, &err.write, &terminal.second, &error.write,
                         &report.write, &mapped.read}) {
      fd->Reset();
    }
    if (mapped.write.valid()) {
      Status status = MapIds(init_, uid, gid);
      if (status.ok() && ::write(mapped.write.get(), "g", 1) != 1) {
        status = ErrnoStatus(errno, "release the first process");
      }
      if (!status.ok()) {
        ::kill(init_, SIGKILL);
        return status;
      }
    }
    report_ = std::move(report.read);
    if (spec_.tty) {
      // Without a terminal the error pipe says why.
      if (auto master = ReceiveFd(terminal.first.get()); master.ok()) {
        in.write = UniqueFd(::fcntl(master->get(), F_DUPFD_CLOEXEC, 0));
        streams_[0].fd = std::move(*master);  // all output comes from the terminal
      }
    } else {
      streams_[0].fd = std::move(out.read);
      streams_[1].fd = std::move(err.read);
    }
    for (const Stream& stream : streams_) {
      if (stream.fd.valid()) ::fcntl(stream.fd.get(), F_SETFL, O_NONBLOCK);
    }
    SWELL_RETURN_IF_ERROR(AwaitCommand(error.read));
    stdio_ = std::make_unique<ShimStdio>(
        dir_, ShimStdio::Options{std::move(in.write), spec_.tty, spec_.stdin_once});
    return Status::Ok();
  }

  // The error pipe is closed empty when the command has been executed.
  Status AwaitCommand(const UniqueFd& error) {
    std::string text;
    char buffer[4096];
    while (text.size() < 65536) {
      ssize_t n = ::read(error.get(), buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    if (text.empty()) return Status::Ok();
    ::kill(init_, SIGKILL);
    ::waitpid(init_, nullptr, 0);
    return Status(Code::kInvalid, text);
  }

  void Pump() {
    while (true) {
      std::vector<pollfd> fds{{signal_fd_.get(), POLLIN, 0}};
      for (const Stream& stream : streams_) {
        fds.push_back({stdio_->Congested(stream.letter) ? -1 : stream.fd.get(), POLLIN, 0});
      }
      stdio_->AddTo(fds);
      if (::poll(fds.data(), fds.size(), WriteLog()) < 0) {
        if (errno == EINTR) continue;
        break;
      }
      for (int i = 0; i < 2; ++i) {
        if (fds[i + 1].revents != 0) Drain(streams_[i]);
      }
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

  // Answers for how many milliseconds there is nothing more to write.
  int WriteLog() {
    const std::optional<Duration> wait = log_.TakeBars(clock_.Now());
    log_.Flush();
    if (!wait) return -1;
    return 1 +
           static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(*wait).count());
  }

  struct Stream {
    UniqueFd fd;
    const char* name;
    char letter;  // ShimStdio's
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
    for (int round = 0; stream.fd.valid() && round < 16; ++round) {
      if (stdio_->Congested(stream.letter)) return;
      ssize_t n = ::read(stream.fd.get(), buffer, sizeof buffer);
      if (n > 0) {
        const std::string_view bytes(buffer, static_cast<size_t>(n));
        log_.Feed(stream.name, bytes, clock_.Now());
        stdio_->Feed(stream.letter, bytes);
        if (n < static_cast<ssize_t>(sizeof buffer) && !spec_.tty) return;
        log_.Flush();
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        stream.fd.Reset();
      } else {
        return;
      }
    }
  }

  bool InitEnded() {
    struct signalfd_siginfo info;
    while (::read(signal_fd_.get(), &info, sizeof info) > 0) {
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
    ssize_t n = ::read(report_.get(), &status, sizeof status);
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
    (void)written;  // the runtime takes a missing file for a kill
    RemoveCgroups();
  }

  ShimSpec spec_;
  std::string dir_;
  RealClock clock_;
  LogPump log_;
  ShimState state_;
  pid_t init_ = -1;
  UniqueFd signal_fd_, report_;
  Stream streams_[2] = {{{}, "stdout", 'O'}, {{}, "stderr", 'E'}};
  std::unique_ptr<ShimStdio> stdio_;
};

}  // namespace

int KillAllSignal() { return SIGRTMIN + 1; }

int PodShimMain(int argc, char** argv) {
  if (argc >= 5 && std::string_view(argv[1]) == "exec") {
    return ShimExecMain(argv[2], std::string_view(argv[3]) == "terminal",
                        std::vector<std::string>(argv + 4, argv + argc));
  }
  const bool in_group = argc == 3 && std::string_view(argv[1]) == "in";
  if (argc != 1 && !in_group) {
    WriteStatus("error usage: pod-shim [in GROUP]\n");
    return 2;
  }
  if (in_group) JoinGroup(argv[2]);
  ::setsid();
  ::umask(022);
  ::syscall(SYS_close_range, kStatusFd + 1U, ~0U, 0U);
  std::string dir = AwaitDir();
  if (dir.empty()) return 0;  // the process that started this shim has ended
  auto spec = ReadShimSpec(dir);
  if (!spec.ok()) return Fail(spec.status());
  const bool beside = spec->beside.has_value();
  const int code = Shim(std::move(*spec), dir).Run();
  // Not exit(): a leak checker looks at us from a process that it starts then, which would be born
  // in the other's process namespace and wait for us there for ever.
  if (beside) ::_exit(code);
  return code;
}

}  // namespace swell::process
