#include "kube/process/machine/script_checks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "base/file.h"
#include "base/programs.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/api/objects/node_health.h"

namespace swell::process {
namespace {

using node::HealthReport;
using node::Verdict;

constexpr size_t kOutputKept = 4096;
constexpr int kPollMs = 50;
constexpr std::array<std::string_view, 4> kBuiltIn = {"Gpu", "Disk", "Memory", "Clock"};

// Its first line, as text that conditions and terminals can take.
std::string FirstLineOf(std::string_view output) {
  std::string line(Trim(output.substr(0, output.find('\n'))));
  if (line.size() > ScriptChecks::kLineMax) line.resize(ScriptChecks::kLineMax);
  for (char& c : line) {
    if (c < ' ' || c > '~') c = '?';
  }
  return line;
}

// "gpu 3: too hot" names a GPU.
std::optional<node::GpuFault> GpuOf(std::string_view line) {
  constexpr std::string_view kWord = "gpu ";
  const std::string lower = ToLower(line);
  const size_t colon = line.find(':');
  if (!lower.starts_with(kWord) || colon == std::string_view::npos) return std::nullopt;
  const auto index = ParseInt(Trim(line.substr(kWord.size(), colon - kWord.size())));
  if (!index || *index < 0 || *index >= 1024) return std::nullopt;
  return node::GpuFault{static_cast<int>(*index), std::string(Trim(line.substr(colon + 1)))};
}

std::string Replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

HealthReport SharesType(const std::string& file, const std::string& type, const std::string& own) {
  return {.type = own,
          .verdict = Verdict::kUnknown,
          .reason = std::string(api::kCheckNotRun),
          .message = StrCat(file, " is not run: another file has the condition ", type,
                            " already; give one of them another name")};
}

// What a person does about a program that does not start.
std::string NoStart(const std::string& path, int error) {
  const std::string file = path.substr(path.rfind('/') + 1);
  if (error == ENOEXEC) {
    return StrCat(file, " is not run: it does not begin with the line of an interpreter, such as ",
                  "#!/bin/sh");
  }
  if (error == ENOENT) {
    return StrCat(file, " is not run: the interpreter that its first line names does not exist");
  }
  return StrCat(file, " is not run: ", ErrnoStatus(error, "start " + path).message());
}

// What arrived; false: no more comes.
bool ReadSome(int fd, std::string& output) {
  char buffer[4096];
  const ssize_t count = ::read(fd, buffer, sizeof buffer);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  const size_t room = kOutputKept - std::min(kOutputKept, output.size());
  output.append(buffer, std::min(room, static_cast<size_t>(count)));
  return count > 0;
}

}  // namespace

std::string ScriptChecks::TypeOf(std::string_view file) {
  std::string type;
  bool upper = true;
  for (const char c : file.substr(0, file.find('.'))) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) == 0) {
      upper = true;
      continue;
    }
    type += static_cast<char>(upper ? std::toupper(byte) : byte);
    upper = false;
  }
  if (type.empty()) return type;
  const bool taken = std::find(kBuiltIn.begin(), kBuiltIn.end(), type) != kBuiltIn.end();
  return StrCat(taken ? "Check" : "", type, "Healthy");
}

std::vector<HealthReport> ScriptChecks::Run(const std::string& node) {
  std::vector<HealthReport> reports;
  const auto names = ListDir(dir_);
  if (!names.ok()) return reports;
  for (const std::string& name : *names) {
    if (stopped_ || reports.size() == kScriptsMax) break;
    const std::string type = TypeOf(name);
    struct stat info;
    const bool program = ::stat(StrCat(dir_, "/", name).c_str(), &info) == 0 &&
                         S_ISREG(info.st_mode) && (info.st_mode & S_IXUSR) != 0;
    if (type.empty() || name.ends_with("~") || !program) continue;
    const auto is_taken = [&reports](const std::string& wanted) {
      return std::any_of(reports.begin(), reports.end(),
                         [&wanted](const HealthReport& one) { return one.type == wanted; });
    };
    // Two files of one name would share a condition: the first has it, the second is told so.
    if (is_taken(type)) {
      const std::string own = TypeOf(Replaced(name, '.', '-'));
      if (!is_taken(own)) reports.push_back(SharesType(name, type, own));
      continue;
    }
    if ((info.st_mode & S_IWOTH) != 0) {
      reports.push_back({.type = type,
                         .verdict = Verdict::kUnknown,
                         .reason = std::string(api::kCheckUnsafe),
                         .message = StrCat(name,
                                           " is not run: every user of the machine may write "
                                           "to it; take that away: chmod o-w ",
                                           name)});
      continue;
    }
    reports.push_back(RunOne(name, node));
  }
  return reports;
}

HealthReport ScriptChecks::RunOne(const std::string& file, const std::string& node) {
  const End end = Execute(StrCat(dir_, "/", file), node);
  HealthReport report{.type = TypeOf(file), .message = FirstLineOf(end.output)};
  if (end.exit_code == 0) {
    report.reason = "CheckPassed";
    if (report.message.empty()) report.message = StrCat(file, " finds no fault");
  } else if (end.exit_code == 1) {
    report.verdict = Verdict::kBad;
    report.reason = "CheckFailed";
    if (const auto gpu = GpuOf(report.message)) {
      report.gpus.push_back(*gpu);
      report.reason = api::kGpuUnhealthyReason;
    }
    if (report.message.empty()) report.message = StrCat(file, " exited with 1");
  } else {
    report.verdict = Verdict::kUnknown;
    report.reason = end.started ? "CheckUnknown" : api::kCheckNotRun;
    const std::string why =
        end.exit_code >= 0 ? StrCat(file, " exited with ", end.exit_code) : end.problem;
    report.message = report.message.empty() ? why : StrCat(why, ": ", report.message);
  }
  return report;
}

ScriptChecks::End ScriptChecks::Execute(const std::string& path, const std::string& node) {
  Result<PipeEnds> pipe = MakePipe();
  if (!pipe.ok()) return {.problem = pipe.status().message()};
  const char* search = std::getenv("PATH");
  std::vector<std::string> environment = {
      StrCat("PATH=", search != nullptr ? search : "/usr/local/bin:/usr/bin:/bin"), "LANG=C",
      StrCat("SWELL_DATA_DIR=", data_dir_), StrCat("NODE_NAME=", node)};
  const Spawned spawned =
      Spawn({.command = {path},
             .environment = std::move(environment),
             .files = {{-1, STDIN_FILENO}, {pipe->write.get(), STDOUT_FILENO}, {-1, STDERR_FILENO}},
             .own_group = true});
  if (spawned.error != 0) return {.problem = NoStart(path, spawned.error), .started = false};
  pipe->write.Reset();
  return Await(spawned.pid, pipe->read.get());
}

// Until the script has ended: what it started and left behind is not waited for.
ScriptChecks::End ScriptChecks::Await(int pid, int output) {
  ::fcntl(output, F_SETFL, O_NONBLOCK);
  RealClock clock;
  const SteadyTime until = clock.Steady() + limit_;
  End end;
  bool open = true;
  int status = 0;
  for (;;) {
    pollfd wait{.fd = open ? output : -1, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, kPollMs);
    if (wait.revents != 0) open = ReadSome(output, end.output);
    if (::waitpid(pid, &status, WNOHANG) == pid) break;
    if (clock.Steady() < until && !stopped_) continue;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    end.problem = StrCat("it did not end within ",
                         std::chrono::duration_cast<std::chrono::seconds>(limit_).count(), " s");
    return end;
  }
  ::kill(-pid, SIGKILL);
  if (open) ReadSome(output, end.output);
  if (WIFEXITED(status)) {
    end.exit_code = WEXITSTATUS(status);
  } else {
    end.problem = StrCat("it was ended by signal ", WTERMSIG(status));
  }
  return end;
}

}  // namespace swell::process
