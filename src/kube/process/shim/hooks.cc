#include "kube/process/shim/hooks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/shim/container_system.h"
#include "kube/process/shim/mounts.h"

namespace swell::process {
namespace {

constexpr size_t kSaidBytesMax = 4096;
constexpr int64_t kSecondsMax = 120;

// What hooks read: where the container's files are, as in a bundle.
Status WriteBundle(const std::string& dir) {
  const json::Value config =
      json::Object{{"ociVersion", "1.0.2"},
                   {"root", json::Object{{"path", dir + "/root"}}},
                   {"process", json::Object{{"cwd", "/"}, {"args", json::Array{"sh"}}}}};
  return ReplaceFile(StrCat(kOldRoot, dir, "/config.json"), json::Print(config), 0600);
}

Result<UniqueFd> StateFile(const std::string& dir) {
  const json::Value state = json::Object{{"ociVersion", "1.0.2"},
                                         {"id", "container"},
                                         {"status", "creating"},
                                         {"pid", static_cast<int64_t>(::getpid())},
                                         {"bundle", dir}};
  UniqueFd file(static_cast<int>(::memfd_create("state", MFD_CLOEXEC)));
  const std::string text = json::Print(state);
  if (!file.valid() ||
      ::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus(errno, "state for hooks");
  }
  return file;
}

[[noreturn]] void ExecHook(const ShimHook& hook, int in, int out) {
  ::setpgid(0, 0);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> arguments, environment;
  for (const std::string& item : hook.args) arguments.push_back(const_cast<char*>(item.c_str()));
  for (const std::string& item : hook.env) environment.push_back(const_cast<char*>(item.c_str()));
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  if (::chroot(std::string(kOldRoot).c_str()) == 0 && ::chdir("/") == 0) {
    ::execve(hook.path.c_str(), arguments.data(), environment.data());
  }
  ::dprintf(STDERR_FILENO, "%s", std::strerror(errno));
  ::_exit(127);
}

// What it said until it ended; false: it took too long.
bool Listen(int out, int64_t seconds, std::string& said) {
  const RealClock clock;
  const auto end = clock.Steady() + std::chrono::seconds(seconds);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock.Steady());
    if (left.count() <= 0) return false;
    pollfd wait{out, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[1024];
    const ssize_t n = ::read(out, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    const size_t room = kSaidBytesMax - std::min(kSaidBytesMax, said.size());
    said.append(buffer, std::min(room, static_cast<size_t>(n)));
  }
}

Status RunHook(const ShimHook& hook, const std::string& dir) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd state, StateFile(dir));
  SWELL_ASSIGN_OR_RETURN(PipeEnds out, MakePipe());
  const pid_t child = ::fork();
  if (child < 0) return ErrnoStatus(errno, "fork");
  if (child == 0) ExecHook(hook, state.get(), out.write.get());
  out.write.Reset();
  std::string said;
  const bool in_time =
      Listen(out.read.get(), std::clamp<int64_t>(hook.timeout_s, 1, kSecondsMax), said);
  if (!in_time) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::Ok();
  return Status(Code::kInvalid, StrCat("hook ", hook.path, " of the machine's CDI files ",
                                       in_time ? "failed" : "took too long", ": ", Trim(said)));
}

}  // namespace

Status RunHooks(const ShimSpec& spec, const std::string& dir) {
  if (spec.hooks.empty()) return Status::Ok();
  SWELL_RETURN_IF_ERROR(WriteBundle(dir));
  const std::string seen = StrCat(kOldRoot, dir, "/root");
  SWELL_RETURN_IF_ERROR(Mount("/", seen, nullptr, MS_BIND | MS_REC));
  for (const ShimHook& hook : spec.hooks) SWELL_RETURN_IF_ERROR(RunHook(hook, dir));
  if (::umount2(seen.c_str(), MNT_DETACH) == 0) return Status::Ok();
  return ErrnoStatus(errno, "unmount " + seen);
}

}  // namespace swell::process
