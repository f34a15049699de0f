// The containers' half of ProcessHost: starting shims, watching them, running commands and probes.
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/process/files/volumes.h"
#include "kube/process/process_host.h"
#include "kube/process/shim/pod_shim.h"

namespace swell::edge {
namespace {

using node::ContainerExit;
using node::ContainerRef;
using node::ContainerSpec;
using node::ContainerStarted;

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr int kExitUnknown = 137;
constexpr size_t kTerminationBytes = 4096;
constexpr size_t kLogTailBytes = 2048;
constexpr int64_t kLogTailLines = 80;
constexpr std::string_view kOwnDir = "/run/swell";

int PidFdOpen(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

void SetEnv(std::vector<std::pair<std::string, std::string>>& env,
            const std::string& name,
            const std::string& value) {
  for (auto& item : env) {
    if (item.first == name) {
      item.second = value;
      return;
    }
  }
  env.emplace_back(name, value);
}

std::string_view GetEnv(const std::vector<std::pair<std::string, std::string>>& env,
                        std::string_view name) {
  for (const auto& item : env) {
    if (item.first == name) return item.second;
  }
  return {};
}

}  // namespace

ProcessHost::Launch::~Launch() {
  watch.reset();
  if (fd >= 0) ::close(fd);
}

struct ProcessHost::ExecJob {
  pid_t pid = -1;
  int pid_fd = -1;
  int out_fd = -1;
  std::string output;
  size_t output_max = 0;
  bool timed_out = false;
  TimerId timer = kNoTimer;
  std::unique_ptr<net::FdWatch> pid_watch, out_watch;
  std::function<void(Result<node::ExecResult>)> done;
  ~ExecJob() {
    pid_watch.reset();
    out_watch.reset();
    if (pid_fd >= 0) ::close(pid_fd);
    if (out_fd >= 0) ::close(out_fd);
  }
  void ReadOutput() {
    char buffer[16384];
    ssize_t n;
    while ((n = ::read(out_fd, buffer, sizeof buffer)) > 0) {
      size_t room = output_max - std::min(output_max, output.size());
      output.append(buffer, std::min(room, static_cast<size_t>(n)));
    }
    if (n == 0 || errno != EAGAIN) out_watch.reset();
  }
};

// ---- what the shim is told ----

std::vector<std::string> ProcessHost::MakeEnv(const Pod& pod,
                                              const ContainerSpec& spec,
                                              const ImageEntry& image,
                                              const std::string& dir) const {
  std::vector<std::pair<std::string, std::string>> env;
  std::string path = Join(image.path, ":");
  if (!path.empty()) path += ":";
  SetEnv(env, "PATH", path + std::string(kDefaultPath));
  SetEnv(env, "HOME", "/root");
  SetEnv(env, "HOSTNAME", pod.spec.hostname);
  if (spec.tty) SetEnv(env, "TERM", "xterm");
  for (const auto& [name, value] : image.env) SetEnv(env, name, value);
  std::string sdk(GetEnv(env, "PYTHONPATH"));
  for (const auto& [name, value] : spec.env) {
    bool both = name == "PYTHONPATH" && !sdk.empty() && !value.empty();
    SetEnv(env, name, both ? StrCat(value, ":", sdk) : value);
  }
  bool mounted = support_.isolation != Isolation::kNone;
  std::string own = mounted ? std::string(kOwnDir) : pod.dir + "/run";
  SetEnv(env, "SWELL_NOTICE_FILE", own + "/notice/notice.json");
  SetEnv(env, "SWELL_REPORT_FILE", own + "/report/report.json");
  if (GetEnv(env, "SWELL_CHECKPOINT_DIR").empty()) {
    SetEnv(env, "SWELL_CHECKPOINT_DIR",
           mounted ? StrCat(kOwnDir, "/checkpoints")
                   : StrCat(options_.data_dir, "/checkpoints/", pod.spec.checkpoint_key));
  }
  SetEnv(env, "SWELL_TERMINATION_LOG", mounted ? spec.termination_path : dir + "/termination-log");
  std::vector<std::string> out;
  out.reserve(env.size());
  for (const auto& [name, value] : env) out.push_back(StrCat(name, "=", value));
  return out;
}

Status ProcessHost::AddMounts(Pod& pod,
                              const ContainerSpec& spec,
                              const ImageEntry& image,
                              const std::string& dir,
                              ShimSpec& out) const {
  auto bind = [&out](std::string source, std::string target, bool read_only) {
    out.mounts.push_back(
        {ShimMount::Kind::kBind, std::move(source), std::move(target), read_only, 0});
  };
  std::string checkpoints = options_.data_dir + "/checkpoints";
  for (std::string_view step : Split(pod.spec.checkpoint_key, '/')) {
    if (!IsPlainName(step)) {
      return Status(Code::kInvalid,
                    StrCat("checkpoint key ", Quote(pod.spec.checkpoint_key), " is not usable"));
    }
    // Nobody who comes by sees whose there are; below, it is the pods' own business.
    SWELL_RETURN_IF_ERROR(MakeDirs(checkpoints, 0711));
    checkpoints += StrCat("/", step);
  }
  SWELL_RETURN_IF_ERROR(MakeDirs(checkpoints));
  if (spec.run_as_user) ::chmod(checkpoints.c_str(), 0777);
  if (support_.isolation == Isolation::kNone) {
    for (const node::MountSpec& mount : spec.mounts) {
      // Credentials that every pod gets are no reason to refuse one.
      if (mount.container_path.starts_with("/var/run/secrets/")) continue;
      return Status(Code::kInvalid, StrCat("volume ", Quote(mount.volume), " cannot be mounted at ",
                                           mount.container_path, ": ", support_.Limits()));
    }
    return Status::Ok();
  }
  for (const char* file : {"hosts", "hostname", "resolv.conf"}) {
    bind(StrCat(pod.dir, "/etc/", file), StrCat("/etc/", file), false);
  }
  std::string shm = MemoryDir(pod.spec.pod_uid) + "/.shm";
  if (MakeDirs(shm).ok()) {
    ::chmod(shm.c_str(), 01777);
    bind(shm, "/dev/shm", false);
  }
  bind(pod.dir + "/run/notice", StrCat(kOwnDir, "/notice"), true);
  bind(pod.dir + "/run/report", StrCat(kOwnDir, "/report"), false);
  bind(checkpoints, StrCat(kOwnDir, "/checkpoints"), false);
  bind(dir + "/termination-log", spec.termination_path, false);
  for (const ImageFile& file : image.files) {
    // What a default entry names may not be installed; its absence shows when it is used.
    if (FileExists(file.host)) bind(file.host, file.path, file.read_only);
  }
  std::vector<node::MountSpec> mounts = spec.mounts;
  // Outer paths first, so that a volume inside another is not covered by it.
  std::stable_sort(mounts.begin(), mounts.end(), [](const auto& a, const auto& b) {
    return std::count(a.container_path.begin(), a.container_path.end(), '/') <
           std::count(b.container_path.begin(), b.container_path.end(), '/');
  });
  for (const node::MountSpec& mount : mounts) {
    auto volume = pod.volumes.find(mount.volume);
    if (volume == pod.volumes.end()) {
      return Status(Code::kInvalid,
                    StrCat("volumeMounts: the pod has no volume ", Quote(mount.volume)));
    }
    std::string target = mount.container_path;
    if (!target.starts_with('/')) target.insert(0, "/");
    bind(volume->second, std::move(target), mount.read_only);
    out.mounts.back().sub_path = mount.sub_path;
  }
  return Status::Ok();
}

namespace {

// Only the own user is mapped, or there is no right to be anybody else.
Status CheckNobodyElse(const ContainerSpec& spec) {
  auto check = [](std::string_view field, std::optional<int64_t> wanted, int64_t own) {
    if (!wanted || *wanted == 0 || *wanted == own) return Status::Ok();
    return Status(Code::kInvalid, StrCat("securityContext.", field, ": ", *wanted,
                                         ": this node was not started by root: its pods run as ",
                                         own, ", and nobody else"));
  };
  SWELL_RETURN_IF_ERROR(check("runAsUser", spec.run_as_user, static_cast<int64_t>(::geteuid())));
  return check("runAsGroup", spec.run_as_group, static_cast<int64_t>(::getegid()));
}

}  // namespace

Result<ShimSpec> ProcessHost::MakeShimSpec(Pod& pod,
                                           const ContainerSpec& spec,
                                           const std::string& dir,
                                           const std::string& log_path) {
  SWELL_ASSIGN_OR_RETURN(ImageEntry image,
                         catalogue_.Find(spec.image, !spec.command.empty() || !spec.args.empty()));
  ShimSpec out;
  out.argv = spec.command.empty() ? image.entrypoint : spec.command;
  const std::vector<std::string>& args =
      spec.args.empty() && spec.command.empty() ? image.args : spec.args;
  out.argv.insert(out.argv.end(), args.begin(), args.end());
  if (out.argv.empty()) {
    return Status(Code::kInvalid, StrCat("image ", Quote(spec.image),
                                         ": the container has no command, and neither has the "
                                         "catalogue's entry"));
  }
  out.env = MakeEnv(pod, spec, image, dir);
  out.cwd = spec.working_dir.empty() ? image.working_dir : spec.working_dir;
  out.uid = spec.run_as_user;
  out.gid = spec.run_as_group ? spec.run_as_group : spec.run_as_user;
  out.groups = spec.supplemental_groups;
  if (pod.spec.fs_group) out.groups.push_back(*pod.spec.fs_group);
  out.isolation = support_.isolation;
  const bool anybody = support_.isolation == Isolation::kFull ||
                       (support_.isolation == Isolation::kNone && ::geteuid() == 0);
  if (!anybody) {
    SWELL_RETURN_IF_ERROR(CheckNobodyElse(spec));
    out.uid.reset();
    out.gid.reset();
    out.groups.clear();
  }
  if (spec.run_as_non_root && out.uid.value_or(static_cast<int64_t>(::geteuid())) == 0) {
    return Status(Code::kForbidden,
                  StrCat(spec.run_as_user ? "container's runAsUser breaks non-root policy"
                                          : "container has runAsNonRoot and image will run as root",
                         " (pod: ",
                         Quote(StrCat(pod.spec.name, "_", pod.spec.ns, "(", pod.spec.pod_uid, ")")),
                         ", container: ", spec.ref.name, ")"));
  }
  if (!spec.target.empty() && out.isolation == Isolation::kFull) {
    const auto target = pod.containers.find(spec.target);
    if (target == pod.containers.end() || !target->second->running) {
      return Status(Code::kInvalid,
                    StrCat("the target container ", Quote(spec.target), " does not run"));
    }
    out.beside = {target->second->state.init_pid, target->second->state.init_start};
  }
  out.hostname = pod.spec.hostname;
  if (pod.slot > 0 && !image.host_network) out.netns = network_->LeaseOf(pod.slot).path;
  out.mask_dir = options_.data_dir;
  out.host_tmp = image.host_tmp;
  out.read_only_root = spec.read_only_root;
  SWELL_RETURN_IF_ERROR(AddMounts(pod, spec, image, dir, out));
  FillCgroups(support_.cgroups, GroupName(spec.ref), spec.cpu_request_milli, spec.cpu_limit_milli,
              spec.memory_limit_bytes, out);
  out.log_path = log_path;
  out.log_bytes_max = options_.log_bytes_max;
  out.log_files_max = options_.log_files_max;
  out.open_stdin = spec.open_stdin;
  out.stdin_once = spec.stdin_once;
  out.tty = spec.tty;
  return out;
}

// ---- starting ----

Result<pid_t> ProcessHost::Spawn(const std::vector<std::string>& arguments,
                                 const SpawnFds& fds) const {
  std::vector<std::string> command = options_.shim_command;
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  auto stream = [&actions](int fd, int to) {
    if (fd >= 0) {
      posix_spawn_file_actions_adddup2(&actions, fd, to);
    } else {
      posix_spawn_file_actions_addopen(&actions, to, "/dev/null", O_RDWR, 0);
    }
  };
  stream(fds.in, STDIN_FILENO);
  stream(fds.out, STDOUT_FILENO);
  stream(fds.err, STDERR_FILENO);
  if (fds.status >= 0) posix_spawn_file_actions_adddup2(&actions, fds.status, 3);
  pid_t pid = -1;
  int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(error, "start " + command[0]);
  return pid;
}

Result<ProcessHost::ReadyShim> ProcessHost::SpawnShim() const {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return ErrnoStatus(errno, "socketpair");
  }
  auto pid = Spawn({}, {.status = pair[1]});
  ::close(pair[1]);
  if (pid.ok()) {
    ::fcntl(pair[0], F_SETFL, O_NONBLOCK);
    return ReadyShim{*pid, pair[0]};
  }
  ::close(pair[0]);
  return pid.status();
}

// Loading the program takes most of a shim's start, so some have done it before they are needed.
void ProcessHost::ReadyShims() {
  readying_ = false;
  while (ready_shims_.size() < options_.ready_shims) {
    auto shim = SpawnShim();
    if (!shim.ok()) return;  // a start will say why
    ready_shims_.push_back(*shim);
  }
}

void ProcessHost::EndReadyShims() {
  for (const ReadyShim& shim : std::exchange(ready_shims_, {})) {
    ::kill(shim.pid, SIGKILL);
    ::waitpid(shim.pid, nullptr, 0);
    ::close(shim.fd);
  }
}

Status ProcessHost::LaunchShim(const std::string& dir, Launch& launch) {
  const std::string line = dir + "\n";
  while (true) {
    bool fresh = ready_shims_.empty();
    if (fresh) {
      SWELL_ASSIGN_OR_RETURN(ReadyShim shim, SpawnShim());
      ready_shims_.push_back(shim);
    }
    const ReadyShim shim = ready_shims_.front();
    ready_shims_.pop_front();
    ssize_t sent = ::send(shim.fd, line.data(), line.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(line.size())) {
      launch.pid = shim.pid;
      launch.fd = shim.fd;
      return Status::Ok();
    }
    // Somebody killed it while it waited.
    Status failed = ErrnoStatus(errno, "tell the pod shim what to start");
    ::kill(shim.pid, SIGKILL);
    ::waitpid(shim.pid, nullptr, 0);
    ::close(shim.fd);
    if (fresh) return failed;
  }
}

void ProcessHost::StartContainer(const ContainerSpec& spec,
                                 std::function<void(Result<ContainerStarted>)> done) {
  auto it = pods_.find(spec.ref.pod_uid);
  if (it == pods_.end()) return done(Status(Code::kInternal, "the pod has no sandbox"));
  Pod& pod = *it->second;
  if (!IsPlainName(spec.ref.name)) {
    return done(Status(Code::kInvalid, StrCat("container ", Quote(spec.ref.name), ": bad name")));
  }
  std::string dir = StrCat(pod.dir, "/containers/", spec.ref.name, "/", spec.ref.attempt);
  std::string logs = StrCat(pod.dir, "/logs/", spec.ref.name);
  auto launch = std::make_shared<Launch>();
  launch->ref = spec.ref;
  Status ready = [&]() -> Status {
    SWELL_RETURN_IF_ERROR(MakeDirs(StrCat(pod.dir, "/containers/", spec.ref.name)));
    SWELL_RETURN_IF_ERROR(container_dirs_->Take(dir));
    SWELL_RETURN_IF_ERROR(MakeDirs(logs));
    if (spec.ref.attempt > 0) {
      // The scratch space of the attempt before is nobody's any more; its log stays.
      DiscardScratch(StrCat(pod.dir, "/containers/", spec.ref.name, "/", spec.ref.attempt - 1));
    }
    ::unlink((pod.dir + "/run/notice/notice.json").c_str());
    SWELL_ASSIGN_OR_RETURN(
        ShimSpec shim, MakeShimSpec(pod, spec, dir, StrCat(logs, "/", spec.ref.attempt, ".log")));
    SWELL_RETURN_IF_ERROR(ReplaceFile(dir + "/spec.json", json::Print(shim.ToJson()), 0600));
    SWELL_RETURN_IF_ERROR(LaunchShim(dir, *launch));
    auto watch = reactor_.WatchFd(launch->fd, [this, weak = std::weak_ptr<Launch>(launch)] {
      if (auto alive = weak.lock()) OnShimSaid(alive);
    });
    if (!watch.ok()) return watch.status();
    launch->watch = std::move(*watch);
    return Status::Ok();
  }();
  if (!ready.ok()) return done(ready);
  launch->done = std::move(done);
  launches_.insert(launch);
}

void ProcessHost::OnShimSaid(const std::shared_ptr<Launch>& launch) {
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(launch->fd, buffer, sizeof buffer)) > 0) {
    launch->said.append(buffer, static_cast<size_t>(n));
    if (launch->said.size() > (256 << 10)) break;
  }
  size_t end = launch->said.find('\n');
  if (end == std::string::npos && n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  launch->watch.reset();
  std::string said = launch->said.substr(0, end);
  Status status;
  if (said.starts_with("error ")) {
    status = Status(Code::kInvalid, said.substr(6));
  } else if (said != "started") {
    status = Status(Code::kInternal, "the pod shim died before it started the container");
  }
  OnLaunched(launch, status);
}

void ProcessHost::OnLaunched(const std::shared_ptr<Launch>& launch, const Status& status) {
  launches_.erase(launch);
  if (!std::exchange(readying_, true)) {
    // After this container's start has been told.
    reactor_.Post(scope_.Wrap([this] { ReadyShims(); }));
  }
  const ContainerRef& ref = launch->ref;
  auto it = pods_.find(ref.pod_uid);
  if (!status.ok() || it == pods_.end()) {
    // It ends by itself at once; only its exit status is to be collected.
    ::waitpid(launch->pid, nullptr, 0);
    launch->done(status.ok() ? Status(Code::kInternal, "the pod was removed") : status);
    if (it != pods_.end() && it->second->removing) RemoveNow(ref.pod_uid);
    return;
  }
  Pod& pod = *it->second;
  auto container = std::make_unique<Container>();
  container->ref = ref;
  container->dir = StrCat(pod.dir, "/containers/", ref.name, "/", ref.attempt);
  container->log_path = StrCat(pod.dir, "/logs/", ref.name, "/", ref.attempt, ".log");
  auto text = ReadFile(container->dir + "/state.json", 65536);
  auto value = text.ok() ? json::Parse(*text) : Result<json::Value>(text.status());
  auto state = value.ok() ? ShimState::FromJson(*value) : Result<ShimState>(value.status());
  Status watched = state.ok() ? Status::Ok() : state.status();
  if (watched.ok()) {
    container->state = *state;
    watched = WatchContainer(*container);
  }
  if (!watched.ok()) {
    ::kill(launch->pid, SIGKILL);
    ::waitpid(launch->pid, nullptr, 0);
    return launch->done(watched);
  }
  container->running = true;
  container->started = {
      StrCat("process://", ref.pod_uid, "-", ref.name, "-", ref.attempt), "", {state->started_ns}};
  ContainerStarted started = container->started;
  pod.containers[ref.name] = std::move(container);
  launch->done(started);
  if (pod.removing) Signal(ref, SIGKILL);
}

Status ProcessHost::WatchContainer(Container& container) {
  container.shim_fd = PidFdOpen(container.state.shim_pid);
  if (container.shim_fd < 0) return ErrnoStatus(errno, "watch the pod shim");
  // May fail when the container has ended already: then the shim ends too, which is watched.
  container.init_fd = PidFdOpen(container.state.init_pid);
  if (container.init_fd >= 0 &&
      ProcessStartTime(container.state.init_pid) != container.state.init_start) {
    ::close(container.init_fd);
    container.init_fd = -1;
  }
  auto watch =
      reactor_.WatchFd(container.shim_fd, [this, ref = container.ref] { OnShimGone(ref); });
  if (!watch.ok()) return watch.status();
  container.shim_watch = std::move(*watch);
  return Status::Ok();
}

void ProcessHost::Signal(const ContainerRef& ref, int signal) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running || container->init_fd < 0) return;
  // The first process of a namespace takes all others along.
  if (signal == SIGKILL && !container->state.own_pids) signal = KillAllSignal();
  ::syscall(SYS_pidfd_send_signal, container->init_fd, signal, nullptr, 0);
}

// ---- exits ----

ContainerExit ProcessHost::ReadExit(const Container& container) const {
  ContainerExit exit;
  exit.started = container.started.started;
  exit.container_id = container.started.container_id;
  auto text = ReadFile(container.dir + "/exit.json", 65536);
  auto value = text.ok() ? json::Parse(*text) : Result<json::Value>(text.status());
  auto known = value.ok() ? ShimExit::FromJson(*value) : Result<ShimExit>(value.status());
  if (known.ok()) {
    exit.code = known->code;
    exit.signal = known->signal;
    exit.oom_killed = known->oom;
    exit.started = {known->started_ns};
    exit.finished = {known->finished_ns};
  } else {
    // The shim was killed, or the machine went down: the container went with it.
    exit.code = kExitUnknown;
    exit.signal = SIGKILL;
    exit.reason = "ContainerStatusUnknown";
    exit.finished = clock_.Now();
  }
  int fd = ::open((container.dir + "/termination-log").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    std::string message(kTerminationBytes, '\0');
    ssize_t n = ::read(fd, message.data(), message.size());
    message.resize(n > 0 ? static_cast<size_t>(n) : 0);
    exit.termination_message = std::move(message);
    ::close(fd);
  }
  if (exit.code != 0) exit.log_tail = LogTail(container.log_path, kLogTailLines, kLogTailBytes);
  return exit;
}

void ProcessHost::OnShimGone(const ContainerRef& ref) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running) return;
  siginfo_t info;
  // Not our child when an earlier run of swell started it: then somebody else collects it.
  ::waitid(P_PIDFD, static_cast<id_t>(container->shim_fd), &info, WEXITED | WNOHANG);
  container->running = false;
  container->exit = ReadExit(*container);
  events_.on_exit(ref, *container->exit);
  std::vector<std::function<void()>> followers = std::move(container->when_ended);
  container->shim_watch.reset();  // the watch's own callback is running; it allows this
  for (auto& fn : followers) fn();
  auto it = pods_.find(ref.pod_uid);
  if (it == pods_.end() || !it->second->removing) return;
  bool running = std::any_of(it->second->containers.begin(), it->second->containers.end(),
                             [](const auto& entry) { return entry.second->running; });
  if (running) return;
  reactor_.Post(scope_.Wrap([this, uid = ref.pod_uid] { RemoveNow(uid); }));
}

// ---- commands and probes ----

void ProcessHost::Exec(const ContainerRef& ref,
                       const node::ExecSpec& spec,
                       std::function<void(Result<node::ExecResult>)> done) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running) {
    return done(Status(Code::kInternal, StrCat("container ", Quote(ref.name), " is not running")));
  }
  if (spec.argv.empty()) return done(Status(Code::kInvalid, "command: must not be empty"));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return done(ErrnoStatus(errno, "pipe"));
  auto job = std::make_shared<ExecJob>();
  job->out_fd = pipe[0];
  job->output_max = spec.output_bytes_max;
  std::vector<std::string> arguments{"exec", container->dir, "pipes"};
  arguments.insert(arguments.end(), spec.argv.begin(), spec.argv.end());
  auto pid = Spawn(arguments, {.out = pipe[1], .err = pipe[1]});
  ::close(pipe[1]);
  if (!pid.ok()) return done(pid.status());
  job->pid = *pid;
  job->pid_fd = PidFdOpen(job->pid);
  std::weak_ptr<ExecJob> weak = job;
  auto pid_watch = reactor_.WatchFd(job->pid_fd, [this, weak] {
    if (auto alive = weak.lock()) FinishExec(alive);
  });
  auto out_watch = reactor_.WatchFd(job->out_fd, [weak] {
    if (auto alive = weak.lock()) alive->ReadOutput();
  });
  if (!pid_watch.ok() || !out_watch.ok()) {
    ::kill(job->pid, SIGKILL);
    ::waitpid(job->pid, nullptr, 0);
    return done(pid_watch.ok() ? out_watch.status() : pid_watch.status());
  }
  job->pid_watch = std::move(*pid_watch);
  job->out_watch = std::move(*out_watch);
  job->done = std::move(done);
  job->timer = reactor_.After(spec.timeout, [weak] {
    auto late = weak.lock();
    if (!late) return;
    late->timed_out = true;
    late->timer = kNoTimer;
    ::kill(late->pid, SIGTERM);  // takes the command along
  });
  execs_.insert(job);
}

void ProcessHost::FinishExec(const std::shared_ptr<ExecJob>& job) {
  reactor_.Cancel(job->timer);
  job->ReadOutput();
  int status = 0;
  ::waitpid(job->pid, &status, 0);
  node::ExecResult result;
  result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.output = std::move(job->output);
  result.timed_out = job->timed_out;
  job->pid_watch.reset();
  job->out_watch.reset();
  execs_.erase(job);
  job->done(std::move(result));
}

void ProcessHost::Probe(const std::string& uid,
                        const node::ProbeSpec& spec,
                        std::function<void(node::ProbeResult)> done) {
  auto it = pods_.find(uid);
  std::string address = spec.host;
  if (address.empty() && it != pods_.end()) address = it->second->info.ip;
  if (address == "localhost") address = "127.0.0.1";
  uint64_t id = next_probe_++;
  probes_[id] = std::make_unique<NetProbe>(
      reactor_, address, spec, [this, id, done = std::move(done)](node::ProbeResult result) {
        auto probe = probes_.extract(id);
        done(std::move(result));
      });
}

}  // namespace swell::edge
