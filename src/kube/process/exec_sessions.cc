#include "kube/process/exec_sessions.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "base/timer.h"
#include "kube/process/shim/shim_stdio.h"
#include "kube/process/shim/terminal.h"

namespace swell::process {
namespace {

std::vector<std::string> ExecArguments(const ProcessContainer& container,
                                       const char* kind,
                                       const std::vector<std::string>& argv) {
  std::vector<std::string> arguments{"exec", container.dir, kind};
  arguments.insert(arguments.end(), argv.begin(), argv.end());
  return arguments;
}

// Each command has a helper process on the machine, which the pod's limits do not count.
constexpr std::ptrdiff_t kOfContainerMax = 200;
constexpr size_t kOfAllMax = 4000;

// An argument ends at its first zero byte: the rest would be lost.
Status CheckWhole(const std::vector<std::string>& argv) {
  for (size_t i = 0; i < argv.size(); ++i) {
    if (argv[i].find('\0') == std::string::npos) continue;
    return Status(Code::kInvalid, StrCat("command[", i, "]: has a zero byte"));
  }
  return Status::Ok();
}

// A connection to the container's shim, as shim_stdio.h describes them.
Result<UniqueFd> ConnectToShim(const ProcessContainer& container, char role) {
  auto fd = ConnectTo(container.dir, kStdioSocket);
  if (!fd.ok()) return fd.status().WithContext("attach");
  if (::send(fd->get(), &role, 1, MSG_NOSIGNAL) != 1) return ErrnoStatus(errno, "attach");
  return fd;
}

}  // namespace

// ---- commands whose output is collected ----

struct ExecSessions::Command {
  explicit Command(net::Reactor& reactor) : timer(reactor) {}

  // No more than a pipe holds: a command may write faster than this reads, and its timeout is on
  // this thread.
  void ReadOutput() {
    char buffer[16384];
    for (int round = 0; round < 4; ++round) {
      const ssize_t n = ::read(out_fd.get(), buffer, sizeof buffer);
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return out_watch.reset();
      size_t room = output_max - std::min(output_max, output.size());
      output.append(buffer, std::min(room, static_cast<size_t>(n)));
    }
  }

  pid_t pid = -1;
  UniqueFd pid_fd, out_fd;
  std::string output;
  size_t output_max = 0;
  bool timed_out = false;
  Timer timer;
  std::unique_ptr<net::FdWatch> pid_watch, out_watch;  // end before their descriptors
  std::function<void(Result<node::ExecResult>)> done;
};

ExecSessions::ExecSessions(net::Reactor& reactor, const ShimLauncher& launcher, FdStreams& streams)
    : reactor_(reactor), launcher_(launcher), streams_(streams) {}

ExecSessions::~ExecSessions() {
  for (const auto& session : sessions_) HangUp(*session);
}

void ExecSessions::Run(const ProcessContainer& container,
                       const node::ExecSpec& spec,
                       std::function<void(Result<node::ExecResult>)> done) {
  if (spec.argv.empty()) return done(Status(Code::kInvalid, "command: must not be empty"));
  if (const Status whole = CheckWhole(spec.argv); !whole.ok()) return done(whole);
  auto pipe = MakePipe();
  if (!pipe.ok()) return done(pipe.status());
  ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  auto command = std::make_shared<Command>(reactor_);
  const int out = pipe->write.get();
  auto pid =
      launcher_.Spawn(ExecArguments(container, "pipes", spec.argv), {.out = out, .err = out});
  if (!pid.ok()) return done(pid.status());
  command->pid = *pid;
  command->pid_fd = OpenPidFd(*pid);
  command->out_fd = std::move(pipe->read);
  command->output_max = spec.output_bytes_max;
  std::weak_ptr<Command> weak = command;
  auto pid_watch = reactor_.WatchFd(command->pid_fd.get(), [this, weak] {
    if (auto alive = weak.lock()) OnCommandDone(alive);
  });
  auto out_watch = reactor_.WatchFd(command->out_fd.get(), [weak] {
    if (auto alive = weak.lock()) alive->ReadOutput();
  });
  if (!pid_watch.ok() || !out_watch.ok()) {
    KillAndReap(*pid);
    return done(pid_watch.ok() ? out_watch.status() : pid_watch.status());
  }
  command->pid_watch = std::move(*pid_watch);
  command->out_watch = std::move(*out_watch);
  command->done = std::move(done);
  command->timer.Start(spec.timeout, [late = command.get()] {
    late->timed_out = true;
    ::kill(late->pid, SIGTERM);  // the shim kills the command
  });
  commands_.insert(std::move(command));
}

void ExecSessions::OnCommandDone(const std::shared_ptr<Command>& command) {
  command->timer.Cancel();
  command->ReadOutput();
  node::ExecResult result;
  result.code = Reap(command->pid);
  result.output = std::move(command->output);
  result.timed_out = command->timed_out;
  command->pid_watch.reset();
  command->out_watch.reset();
  commands_.erase(command);
  command->done(std::move(result));
}

// ---- live streams ----

struct ExecSessions::Session {
  // The streams are the receiver's from here on.
  void Deliver(const std::shared_ptr<Session>& self) {
    std::exchange(done, nullptr)(Opened{std::move(io.stream), std::move(error.stream), self});
  }

  std::string container_dir;  // of a command's container
  pid_t pid = -1;             // of the command's shim; -1: attached
  UniqueFd pid_fd;
  UniqueFd terminal;                                      // a copy of the master, for resizing
  UniqueFd terminal_socket;                               // where the master arrives
  UniqueFd resize;                                        // attached: where new sizes are sent
  std::unique_ptr<net::FdWatch> pid_watch, socket_watch;  // end before their descriptors
  FdStream io, error;
  std::function<void(Result<Opened>)> done;
  std::function<void(Result<int>)> exited;
};

void ExecSessions::Open(ProcessContainer& container,
                        const node::StdioSpec& spec,
                        std::function<void(Result<Opened>)> done,
                        std::function<void(Result<int>)> exited) {
  auto session = std::make_shared<Session>();
  session->done = std::move(done);
  session->exited = std::move(exited);
  const Status status =
      spec.argv.empty() ? Attach(container, spec, session) : StartCommand(container, spec, session);
  if (!status.ok()) return session->done(status);
  // A terminal's streams wait until it has arrived.
  if (session->io.io) session->Deliver(session);
}

Status ExecSessions::StartCommand(const ProcessContainer& container,
                                  const node::StdioSpec& spec,
                                  const std::shared_ptr<Session>& session) {
  SWELL_RETURN_IF_ERROR(CheckWhole(spec.argv));
  const auto of_container =
      std::count_if(sessions_.begin(), sessions_.end(),
                    [&container](const auto& one) { return one->container_dir == container.dir; });
  if (of_container >= kOfContainerMax || sessions_.size() >= kOfAllMax) {
    return Status(Code::kTooManyRequests,
                  StrCat("too many commands run there: at most ", kOfContainerMax,
                         " in a container, ", kOfAllMax, " on a machine"));
  }
  session->container_dir = container.dir;
  PipeEnds in, out, err;
  UniqueFd their_socket;
  if (spec.tty) {
    SWELL_ASSIGN_OR_RETURN(auto pair, MakeSocketPair());
    session->terminal_socket = std::move(pair.first);
    their_socket = std::move(pair.second);
    ::fcntl(session->terminal_socket.get(), F_SETFL, O_NONBLOCK);
  } else {
    for (auto& [wanted, pipe] :
         {std::pair(spec.input, &in), std::pair(spec.output, &out), std::pair(spec.error, &err)}) {
      if (!wanted) continue;
      SWELL_ASSIGN_OR_RETURN(*pipe, MakePipe());
    }
  }
  SWELL_ASSIGN_OR_RETURN(
      session->pid,
      launcher_.Spawn(ExecArguments(container, spec.tty ? "terminal" : "pipes", spec.argv),
                      {in.read.get(), out.write.get(), err.write.get(), their_socket.get()}));
  session->pid_fd = OpenPidFd(session->pid);
  std::weak_ptr<Session> weak = session;
  auto watch = reactor_.WatchFd(session->pid_fd.get(), [this, weak] {
    if (auto alive = weak.lock()) OnExit(alive);
  });
  if (!watch.ok()) {
    KillAndReap(session->pid);
    return watch.status();
  }
  session->pid_watch = std::move(*watch);
  sessions_.insert(session);
  if (!spec.tty) {
    const auto kind = FdStreams::Kind::kPipes;
    session->io = streams_.Make(kind, out.read.Release(), in.write.Release());
    if (spec.error) session->error = streams_.Make(kind, err.read.Release(), -1);
    return Status::Ok();
  }
  auto socket_watch = reactor_.WatchFd(session->terminal_socket.get(), [this, weak] {
    if (auto alive = weak.lock()) OnTerminal(alive);
  });
  // Without a watch the terminal is taken when the command has ended.
  if (socket_watch.ok()) session->socket_watch = std::move(*socket_watch);
  return Status::Ok();
}

void ExecSessions::OnTerminal(const std::shared_ptr<Session>& session) {
  if (!session->terminal_socket.valid()) return;
  auto master = ReceiveFd(session->terminal_socket.get());
  session->socket_watch.reset();
  session->terminal_socket.Reset();
  if (!master.ok()) return;
  session->terminal = UniqueFd(::fcntl(master->get(), F_DUPFD_CLOEXEC, 0));
  const int fd = master->Release();
  session->io = streams_.Make(FdStreams::Kind::kTerminal, fd, fd);
  session->Deliver(session);
}

void ExecSessions::OnExit(const std::shared_ptr<Session>& session) {
  OnTerminal(session);  // a short command may end before its terminal was received
  const int code = Reap(std::exchange(session->pid, -1));
  session->pid_watch.reset();
  sessions_.erase(session);
  if (!session->io.io) {
    return session->done(Status(Code::kInternal, "the command's terminal could not be made"));
  }
  // Processes that the command left behind may hold its output open for ever.
  for (const FdStream* stream : {&session->io, &session->error}) {
    if (stream->io) FdStreams::EndWhenEmpty(stream->io);
  }
  session->exited(code);
}

Status ExecSessions::Attach(ProcessContainer& container,
                            const node::StdioSpec& spec,
                            const std::shared_ptr<Session>& session) {
  UniqueFd input, output, error;
  // Input comes last: the output that it causes must be seen.
  if (spec.output) {
    SWELL_ASSIGN_OR_RETURN(output, ConnectToShim(container, 'O'));
  }
  if (spec.error) {
    SWELL_ASSIGN_OR_RETURN(error, ConnectToShim(container, 'E'));
  }
  SWELL_ASSIGN_OR_RETURN(session->resize, ConnectToShim(container, 'R'));
  if (spec.input) {
    SWELL_ASSIGN_OR_RETURN(input, ConnectToShim(container, 'I'));
  }
  const auto kind = FdStreams::Kind::kPipes;
  session->io = streams_.Make(kind, output.Release(), input.Release());
  if (error.valid()) session->error = streams_.Make(kind, error.Release(), -1);
  container.when_ended.push_back([weak = std::weak_ptr(session)] {
    if (auto alive = weak.lock()) alive->exited(0);
  });
  return Status::Ok();
}

void ExecSessions::Resize(Session& session, node::TerminalSize size) {
  if (session.terminal.valid()) ResizeTerminal(session.terminal.get(), size.columns, size.rows);
  if (!session.resize.valid()) return;
  const unsigned char record[] = {
      static_cast<unsigned char>(size.columns & 255), static_cast<unsigned char>(size.columns >> 8),
      static_cast<unsigned char>(size.rows & 255), static_cast<unsigned char>(size.rows >> 8)};
  // A full socket means that sizes come faster than anybody can see them.
  ssize_t ignored =
      ::send(session.resize.get(), record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)ignored;
}

void ExecSessions::HangUp(const Session& session) {
  if (session.pid > 0) ::kill(session.pid, SIGTERM);
}

}  // namespace swell::process
