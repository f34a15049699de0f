#include "kube/process/shim_launcher.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/file.h"
#include "base/programs.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr size_t kOutputMax = 256 << 10;

}  // namespace

void KillAndReap(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

int Reap(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

UniqueFd OpenPidFd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

ShimLauncher::ShimLauncher(net::Reactor& reactor,
                           std::vector<std::string> command,
                           size_t ready,
                           std::string group)
    : reactor_(reactor),
      command_(std::move(command)),
      group_(std::move(group)),
      ready_wanted_(ready) {}

ShimLauncher::~ShimLauncher() { EndReady(); }

void ShimLauncher::EndReady() {
  ready_wanted_ = 0;
  for (const Ready& shim : ready_) KillAndReap(shim.pid);
  ready_.clear();
}

Result<pid_t> ShimLauncher::Spawn(const std::vector<std::string>& arguments, const Fds& fds) const {
  SpawnPlan plan{
      .command = command_,
      .files = {{fds.in, STDIN_FILENO}, {fds.out, STDOUT_FILENO}, {fds.err, STDERR_FILENO}}};
  plan.command.insert(plan.command.end(), arguments.begin(), arguments.end());
  if (fds.status >= 0) plan.files.emplace_back(fds.status, 3);
  const Spawned spawned = swell::Spawn(std::move(plan));
  if (spawned.error != 0) return ErrnoStatus(spawned.error, "start " + command_[0]);
  return spawned.pid;
}

Result<ShimLauncher::Ready> ShimLauncher::SpawnReady() const {
  SWELL_ASSIGN_OR_RETURN(auto pair, MakeSocketPair());
  std::vector<std::string> arguments;
  if (!group_.empty()) arguments = {"in", group_};
  SWELL_ASSIGN_OR_RETURN(const pid_t pid, Spawn(arguments, {.status = pair.second.get()}));
  ::fcntl(pair.first.get(), F_SETFL, O_NONBLOCK);
  return Ready{pid, std::move(pair.first)};
}

void ShimLauncher::Refill() {
  refill_posted_ = false;
  while (ready_.size() < ready_wanted_) {
    auto shim = SpawnReady();
    if (!shim.ok()) return;  // the next launch reports why
    ready_.push_back(std::move(*shim));
  }
}

Result<ShimLauncher::Ready> ShimLauncher::SendDir(const std::string& dir) {
  const std::string line = dir + "\n";
  while (true) {
    const bool fresh = ready_.empty();
    if (fresh) {
      SWELL_ASSIGN_OR_RETURN(Ready shim, SpawnReady());
      ready_.push_back(std::move(shim));
    }
    Ready shim = std::move(ready_.front());
    ready_.pop_front();
    ssize_t sent = ::send(shim.socket.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(line.size())) return shim;
    // It was killed while it waited.
    Status failed = ErrnoStatus(errno, "send the container's directory to the pod shim");
    KillAndReap(shim.pid);
    if (fresh) return failed;
  }
}

Status ShimLauncher::Launch(const std::string& pod_uid, const std::string& dir, Done done) {
  auto launch = std::make_shared<Pending>();
  launch->pod_uid = pod_uid;
  SWELL_ASSIGN_OR_RETURN(launch->shim, SendDir(dir));
  auto watch =
      reactor_.WatchFd(launch->shim.socket.get(), [this, weak = std::weak_ptr<Pending>(launch)] {
        if (auto alive = weak.lock()) OnOutput(alive);
      });
  if (!watch.ok()) return watch.status();
  launch->watch = std::move(*watch);
  launch->done = std::move(done);
  pending_.insert(std::move(launch));
  return Status::Ok();
}

bool ShimLauncher::IsLaunching(const std::string& pod_uid) const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](const auto& launch) { return launch->pod_uid == pod_uid; });
}

void ShimLauncher::OnOutput(const std::shared_ptr<Pending>& launch) {
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(launch->shim.socket.get(), buffer, sizeof buffer)) > 0) {
    launch->output.append(buffer, static_cast<size_t>(n));
    if (launch->output.size() > kOutputMax) break;
  }
  const size_t end = launch->output.find('\n');
  if (end == std::string::npos && n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  launch->watch.reset();
  pending_.erase(launch);
  if (!std::exchange(refill_posted_, true)) {
    // After `done`: the container that starts now comes first.
    reactor_.Post(scope_.Wrap([this] { Refill(); }));
  }
  const std::string line = launch->output.substr(0, end);
  if (line == "started") return launch->done(launch->shim.pid);
  Reap(launch->shim.pid);  // it ends by itself at once
  launch->done(line.starts_with("error ")
                   ? Status(Code::kInvalid, line.substr(6))
                   : Status(Code::kInternal, "the pod shim died before it started the container"));
}

}  // namespace swell::process
