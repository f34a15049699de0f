#include "ops/cluster/detached.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::ops {
namespace {

// What the child writes, before the text.
constexpr std::string_view kReady = "ready ";
constexpr std::string_view kFailed = "error ";

bool LeaveTerminal(const std::string& log_file) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (null < 0 || log < 0) return false;
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  return true;
}

int RunChild(const std::string& log_file,
             const std::function<int(const StartReport&)>& run,
             UniqueFd pipe) {
  if (!LeaveTerminal(log_file)) return 1;
  return run([&pipe](const Result<std::string>& outcome) {
    if (!pipe.valid()) return;
    const std::string line =
        outcome.ok() ? StrCat(kReady, *outcome) : StrCat(kFailed, outcome.status().message());
    [[maybe_unused]] const ssize_t n = ::write(pipe.get(), line.data(), line.size());
    pipe.Reset();  // the parent reads up to here
  });
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

Result<std::string> RunDetached(const std::string& log_file,
                                const std::function<int(const StartReport&)>& run) {
  SWELL_ASSIGN_OR_RETURN(PipeEnds pipe, MakePipe());
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return ErrnoStatus(errno, "fork");
  if (child == 0) {
    pipe.read.Reset();
    ::_exit(RunChild(log_file, run, std::move(pipe.write)));
  }
  pipe.write.Reset();
  const std::string line = ReadAll(pipe.read.get());
  if (line.starts_with(kReady)) return line.substr(kReady.size());
  if (line.starts_with(kFailed)) return Status(Code::kInternal, line.substr(kFailed.size()));
  return Status(Code::kInternal, StrCat("the cluster ended before it was ready; see ", log_file));
}

}  // namespace swell::ops
