#include "ops/nodes/python_choice.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/programs.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/files/image_catalogue.h"
#include "ops/flags.h"
#include "ops/nodes/pod_runtime.h"

namespace swell::ops {
namespace {

constexpr size_t kFileBytesMax = 4096;
constexpr char kPath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// -I: without the user's variables and the packages in the home, which pods lack, too.
constexpr char kFindsTorch[] =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";

std::string KeptFile(const DataDir& dir) { return dir.path + "/python"; }

std::string Absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// pyenv's shims are scripts, which need files that pods do not see.
bool IsScript(const std::string& path) {
  char begin[2] = {};
  std::ifstream(path, std::ios::binary).read(begin, sizeof begin);
  return begin[0] == '#' && begin[1] == '!';
}

// Ok, or why the file is not the Python of pods.
Status CheckInterpreter(const std::string& file) {
  if (!IsProgram(file)) {
    return Status(Code::kInvalid,
                  StrCat(file,
                         " is not an executable file; expected an interpreter, such as "
                         "/opt/venv/bin/python3"));
  }
  if (!IsScript(file)) return Status::Ok();
  return Status(Code::kInvalid, StrCat(file,
                                       " is a script, not an interpreter; this prints the one that "
                                       "it starts: ",
                                       file, " -c 'import sys; print(sys.executable)'"));
}

// Whether it exits with 0 in time.
bool Succeeds(std::vector<std::string> command, Duration limit) {
  const Spawned spawned =
      Spawn({.command = std::move(command),
             .environment = std::vector<std::string>{kPath},
             .files = {{-1, STDIN_FILENO}, {-1, STDOUT_FILENO}, {-1, STDERR_FILENO}},
             .own_group = true});
  if (spawned.error != 0) return false;
  const pid_t child = spawned.pid;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd wait{.fd = process.get(), .events = POLLIN, .revents = 0};
  const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  const bool ended = process.valid() && ::poll(&wait, 1, static_cast<int>(limit_ms)) > 0;
  if (!ended) ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string InPath(const std::string& path) {
  for (const std::string& python : FindPrograms("python3", path)) {
    if (!IsScript(python)) return python;
  }
  return "";
}

}  // namespace

void AddPythonFlag(cli::Flags& flags, std::string& file) {
  flags.Text(
      "--python", &file, "FILE",
      "Python that the catalogue's images run, with the packages of its environment (default: the "
      "one that --python named last; without one, the first that has torch among "
      "$VIRTUAL_ENV/bin/python3, $CONDA_PREFIX/bin/python3 and the python3 beside this program; if "
      "none has torch, /usr/bin/python3, or the first python3 of PATH that is not a script)");
}

Status CheckPython(std::string& file) {
  if (file.empty()) return Status::Ok();
  file = Absolute(file);
  const Status checked = CheckInterpreter(file);
  return checked.ok() ? checked : cli::Misuse(StrCat("--python ", checked.message()));
}

PythonPlaces PythonPlacesHere() {
  PythonPlaces places;
  places.fallback = process::kDefaultPython;
  places.programs = Environment("PATH");
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::string& dir :
       {Environment("VIRTUAL_ENV") + "/bin", Environment("CONDA_PREFIX") + "/bin",
        self.parent_path().string()}) {
    // "/bin": the variable is not set.
    if (dir.empty() || dir == "/bin" || dir == "/usr/bin") continue;
    places.environments.push_back(Absolute(dir + "/python3"));
  }
  return places;
}

std::string FindPython(const PythonPlaces& places) {
  for (const std::string& python : places.environments) {
    if (IsProgram(python) && Succeeds({python, "-I", "-c", kFindsTorch}, places.limit)) {
      return python;
    }
  }
  if (IsProgram(places.fallback)) return places.fallback;
  const std::string found = InPath(places.programs);
  return found.empty() ? places.fallback : found;
}

Result<std::string> TakePython(const DataDir& dir, const std::string& flag) {
  if (!flag.empty()) {
    SWELL_RETURN_IF_ERROR(WriteFileAtomically(KeptFile(dir), flag + "\n"));
    return flag;
  }
  const auto kept = ReadFile(KeptFile(dir), kFileBytesMax);
  if (!kept.ok()) return FindPython(PythonPlacesHere());
  std::string file(Trim(*kept));
  const Status checked = CheckInterpreter(file);
  if (checked.ok()) return file;
  return Status(checked.code(),
                StrCat(KeptFile(dir), ": ", checked.message(),
                       "; name one with --python, or remove the file ", KeptFile(dir)));
}

std::string PythonIfNotDefault(const DataDir& dir, const std::string& runtime) {
  const auto kind = ParseRuntimeKind(runtime);
  if (!kind.ok() || !kind->processes()) return "";
  const std::string python = process::PythonOfTools(dir.path + "/catalogue");
  return python == process::kDefaultPython ? "" : python;
}

}  // namespace swell::ops
