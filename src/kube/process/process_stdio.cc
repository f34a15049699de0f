// The live streams of ProcessHost: commands run in containers, attaching to them, connections to
// pods' ports.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/strings.h"
#include "kube/process/process_host.h"
#include "kube/process/shim/shim_stdio.h"
#include "kube/process/shim/terminal.h"

namespace swell::edge {
namespace {

using node::ContainerRef;
using node::StdioSpec;
using node::TerminalSize;

constexpr Duration kDialTimeout = std::chrono::seconds(5);

// Closes what it still holds.
struct Fd {
  explicit Fd(int fd_in = -1) : fd(fd_in) {}
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
  Fd(Fd&& other) noexcept : fd(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  int Release() { return std::exchange(fd, -1); }
  int fd;
};

struct PipeEnds {
  Fd read, write;
};

Result<PipeEnds> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  return PipeEnds{Fd(ends[0]), Fd(ends[1])};
}

// A socket belongs to the network it is made in, whatever its thread joins later.
Result<int> SocketIn(const std::string& netns, int family) {
  constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  if (netns.empty()) {
    const int fd = ::socket(family, kType, 0);
    return fd >= 0 ? Result<int>(fd) : ErrnoStatus(errno, "socket");
  }
  const Fd there(::open(netns.c_str(), O_RDONLY | O_CLOEXEC));
  const Fd here(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (there.fd < 0 || here.fd < 0 || ::setns(there.fd, CLONE_NEWNET) != 0) {
    return ErrnoStatus(errno, "enter the pod's network");
  }
  const int fd = ::socket(family, kType, 0);
  const int error = errno;
  SWELL_CHECK_MSG(::setns(here.fd, CLONE_NEWNET) == 0, "cannot leave a pod's network");
  return fd >= 0 ? Result<int>(fd) : ErrnoStatus(error, "socket");
}

// "host", as an address that connect takes, with its length; 0: not an address.
socklen_t ToSockaddr(const std::string& host, uint16_t port, sockaddr_storage* out) {
  auto* four = reinterpret_cast<sockaddr_in*>(out);
  auto* six = reinterpret_cast<sockaddr_in6*>(out);
  *out = {};
  if (::inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return sizeof *four;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    return sizeof *six;
  }
  return 0;
}

std::string Shown(const std::string& host) {
  return host.find(':') == std::string::npos ? host : StrCat("[", host, "]");
}

}  // namespace

struct ProcessHost::StdioJob {
  pid_t pid = -1;  // of the command's shim; -1: attached
  Fd pid_fd;
  Fd terminal;         // a copy of the master, for sizes
  Fd terminal_socket;  // until the master has come
  Fd resize;           // attached: where sizes are told
  std::unique_ptr<net::FdWatch> pid_watch, socket_watch;
  FdStream io, error;
  std::function<void(Result<OpenedStdio>)> done;
  std::function<void(Result<int>)> exited;
};

void ProcessHost::OpenStdio(const ContainerRef& ref,
                            const StdioSpec& spec,
                            std::function<void(Result<OpenedStdio>)> done,
                            std::function<void(Result<int>)> exited) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running) {
    return done(Status(Code::kInternal, StrCat("container ", Quote(ref.name), " is not running")));
  }
  auto job = std::make_shared<StdioJob>();
  job->done = std::move(done);
  job->exited = std::move(exited);
  const Status status =
      spec.argv.empty() ? AttachTo(*container, spec, job) : StartCommand(*container, spec, job);
  if (!status.ok()) return job->done(status);
  // A terminal comes over its socket first.
  if (job->io.io) Opened(job);
}

// The streams are the receiver's from here on.
void ProcessHost::Opened(const std::shared_ptr<StdioJob>& job) {
  std::exchange(job->done,
                nullptr)(OpenedStdio{std::move(job->io.stream), std::move(job->error.stream), job});
}

Status ProcessHost::StartCommand(const Container& container,
                                 const StdioSpec& spec,
                                 const std::shared_ptr<StdioJob>& job) {
  std::vector<std::string> arguments{"exec", container.dir, spec.tty ? "terminal" : "pipes"};
  arguments.insert(arguments.end(), spec.argv.begin(), spec.argv.end());
  PipeEnds in, out, err;
  Fd theirs;
  if (spec.tty) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoStatus(errno, "socketpair");
    }
    job->terminal_socket = Fd(ends[0]);
    theirs = Fd(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  } else {
    if (spec.input) {
      SWELL_ASSIGN_OR_RETURN(in, MakePipe());
    }
    if (spec.output) {
      SWELL_ASSIGN_OR_RETURN(out, MakePipe());
    }
    if (spec.error) {
      SWELL_ASSIGN_OR_RETURN(err, MakePipe());
    }
  }
  SWELL_ASSIGN_OR_RETURN(job->pid,
                         Spawn(arguments, {in.read.fd, out.write.fd, err.write.fd, theirs.fd}));
  job->pid_fd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, job->pid, 0)));
  std::weak_ptr<StdioJob> weak = job;
  auto watch = reactor_.WatchFd(job->pid_fd.fd, [this, weak] {
    if (auto alive = weak.lock()) OnCommandExit(alive);
  });
  if (!watch.ok()) {
    ::kill(job->pid, SIGKILL);
    ::waitpid(job->pid, nullptr, 0);
    return watch.status();
  }
  job->pid_watch = std::move(*watch);
  stdio_jobs_.insert(job);
  if (!spec.tty) {
    const auto kind = FdStreams::Kind::kPipes;
    job->io = streams_.Make(kind, out.read.Release(), in.write.Release());
    if (spec.error) job->error = streams_.Make(kind, err.read.Release(), -1);
    return Status::Ok();
  }
  auto socket_watch = reactor_.WatchFd(job->terminal_socket.fd, [this, weak] {
    if (auto alive = weak.lock()) TakeTerminal(alive);
  });
  // Without it the terminal is taken when the command has ended.
  if (socket_watch.ok()) job->socket_watch = std::move(*socket_watch);
  return Status::Ok();
}

void ProcessHost::TakeTerminal(const std::shared_ptr<StdioJob>& job) {
  if (job->terminal_socket.fd < 0) return;
  auto master = ReceiveFd(job->terminal_socket.fd);
  job->socket_watch.reset();
  ::close(job->terminal_socket.Release());
  if (!master.ok()) return;
  job->terminal = Fd(::fcntl(*master, F_DUPFD_CLOEXEC, 0));
  job->io = streams_.Make(FdStreams::Kind::kTerminal, *master, *master);
  Opened(job);
}

void ProcessHost::OnCommandExit(const std::shared_ptr<StdioJob>& job) {
  TakeTerminal(job);  // a short command may end before we heard of its terminal
  int status = 0;
  ::waitpid(job->pid, &status, 0);
  job->pid = -1;
  job->pid_watch.reset();
  stdio_jobs_.erase(job);
  if (!job->io.io) {
    return job->done(Status(Code::kInternal, "the command's terminal could not be made"));
  }
  // What it started and left behind may hold its output open for ever.
  for (const FdStream* stream : {&job->io, &job->error}) {
    if (stream->io) FdStreams::EndWhenEmpty(stream->io);
  }
  job->exited(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

Status ProcessHost::AttachTo(const Container& container,
                             const StdioSpec& spec,
                             const std::shared_ptr<StdioJob>& job) {
  auto join = [&](char role) -> Result<Fd> {
    auto fd = ConnectTo(container.dir, kStdioSocket);
    if (!fd.ok()) return fd.status().WithContext("attach");
    Fd owned(*fd);
    if (::send(*fd, &role, 1, MSG_NOSIGNAL) != 1) return ErrnoStatus(errno, "attach");
    return owned;
  };
  Fd input, output, error;
  // Input last: what it causes to be printed must be seen.
  if (spec.output) {
    SWELL_ASSIGN_OR_RETURN(output, join('O'));
  }
  if (spec.error) {
    SWELL_ASSIGN_OR_RETURN(error, join('E'));
  }
  SWELL_ASSIGN_OR_RETURN(job->resize, join('R'));
  if (spec.input) {
    SWELL_ASSIGN_OR_RETURN(input, join('I'));
  }
  const auto kind = FdStreams::Kind::kPipes;
  job->io = streams_.Make(kind, output.Release(), input.Release());
  if (error.fd >= 0) job->error = streams_.Make(kind, error.Release(), -1);
  WhenEnded(container.ref, [weak = std::weak_ptr(job)] {
    if (auto alive = weak.lock()) alive->exited(0);
  });
  return Status::Ok();
}

void ProcessHost::Resize(StdioJob& job, TerminalSize size) {
  if (job.terminal.fd >= 0) ResizeTerminal(job.terminal.fd, size.columns, size.rows);
  if (job.resize.fd < 0) return;
  const unsigned char record[] = {
      static_cast<unsigned char>(size.columns & 255), static_cast<unsigned char>(size.columns >> 8),
      static_cast<unsigned char>(size.rows & 255), static_cast<unsigned char>(size.rows >> 8)};
  // A full socket means that sizes come faster than anybody can look.
  ssize_t ignored = ::send(job.resize.fd, record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)ignored;
}

void ProcessHost::HangUp(const std::shared_ptr<StdioJob>& job) {
  if (job->pid > 0) ::kill(job->pid, SIGTERM);
}

// ---- connections ----

struct ProcessHost::DialJob {
  struct Target {
    std::string netns;  // empty: the host's
    std::string host;
  };
  std::vector<Target> targets;
  size_t next = 0;
  uint16_t port = 0;
  Fd fd;
  std::unique_ptr<net::FdWatch> watch;
  TimerId timer = kNoTimer;
  std::vector<std::string> failures;
  std::function<void(Result<api::DuplexPtr>)> done;
};

void ProcessHost::Dial(const std::string& uid,
                       uint16_t port,
                       std::function<void(Result<api::DuplexPtr>)> done) {
  auto it = pods_.find(uid);
  if (it == pods_.end()) return done(Status(Code::kNotFound, "the pod has no sandbox"));
  const Pod& pod = *it->second;
  const std::string netns = pod.slot > 0 ? network_->LeaseOf(pod.slot).path : "";
  auto job = std::make_shared<DialJob>();
  job->port = port;
  job->done = std::move(done);
  // A server may listen on the loopback alone, or on the pod's address alone.
  for (const std::string& host : {std::string("127.0.0.1"), std::string("::1"), pod.info.ip}) {
    if (!host.empty()) job->targets.push_back({netns, host});
  }
  dials_.insert(job);
  DialNext(job);
}

void ProcessHost::DialNext(const std::shared_ptr<DialJob>& job) {
  reactor_.Cancel(std::exchange(job->timer, kNoTimer));
  job->watch.reset();
  while (job->next < job->targets.size()) {
    const DialJob::Target& target = job->targets[job->next++];
    sockaddr_storage address;
    const socklen_t size = ToSockaddr(target.host, job->port, &address);
    if (size == 0) continue;
    auto fd = SocketIn(target.netns, address.ss_family);
    if (!fd.ok()) {
      job->failures.push_back(fd.status().message());
      continue;
    }
    job->fd = Fd(*fd);
    if (::connect(*fd, reinterpret_cast<sockaddr*>(&address), size) != 0 && errno != EINPROGRESS) {
      job->failures.push_back(StrCat("dial tcp ", Shown(target.host), ":", job->port,
                                     ": connect: ", ToLower(std::strerror(errno))));
      continue;
    }
    std::weak_ptr<DialJob> weak = job;
    auto watch = reactor_.Watch(*fd, [this, weak](bool, bool) {
      if (auto alive = weak.lock()) OnDialed(alive);
    });
    if (!watch.ok()) continue;
    job->watch = std::move(*watch);
    job->watch->SetInterest(false, true);
    job->timer = reactor_.After(kDialTimeout, [this, weak] {
      auto late = weak.lock();
      if (!late) return;
      late->timer = kNoTimer;
      late->failures.push_back(StrCat("dial tcp port ", late->port, ": i/o timeout"));
      DialNext(late);
    });
    return;
  }
  dials_.erase(job);
  job->done(Status(Code::kUnavailable, StrCat("failed to connect to localhost:", job->port,
                                              " inside the pod: ", Join(job->failures, "; "))));
}

void ProcessHost::OnDialed(const std::shared_ptr<DialJob>& job) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(job->fd.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    const std::string& host = job->targets[job->next - 1].host;
    job->failures.push_back(StrCat("dial tcp ", Shown(host), ":", job->port,
                                   ": connect: ", ToLower(std::strerror(error))));
    return DialNext(job);
  }
  reactor_.Cancel(std::exchange(job->timer, kNoTimer));
  job->watch.reset();
  dials_.erase(job);
  const int fd = job->fd.Release();
  job->done(streams_.Make(FdStreams::Kind::kSocket, fd, fd).stream);
}

}  // namespace swell::edge
