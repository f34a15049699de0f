#include "ops/nodes/python_choice.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/files/image_catalogue.h"
#include "ops/flags.h"
#include "ops/nodes/pod_runtime.h"

namespace swell::ops {
namespace {

constexpr size_t kFileBytesMax = 4096;
// -I: without the user's variables and the packages in the home, which pods lack, too.
constexpr char kFindsTorch[] =
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";

std::string KeptFile(const DataDir& dir) { return dir.path + "/python"; }

std::string Absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

bool IsProgram(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
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

// A process group of its own, so that what it starts ends with it.
struct Attributes {
  Attributes() {
    ::posix_spawnattr_init(&value);
    ::posix_spawnattr_setflags(&value, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&value, 0);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&value); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  posix_spawnattr_t value;
};

// Reads nothing and writes nowhere.
struct NullStdio {
  NullStdio() {
    ::posix_spawn_file_actions_init(&value);
    ::posix_spawn_file_actions_addopen(&value, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&value, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&value, STDOUT_FILENO, STDERR_FILENO);
  }
  ~NullStdio() { ::posix_spawn_file_actions_destroy(&value); }
  NullStdio(const NullStdio&) = delete;
  NullStdio& operator=(const NullStdio&) = delete;
  posix_spawn_file_actions_t value;
};

// Whether it exits with 0 in time.
bool Succeeds(std::vector<std::string> command, Duration limit) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  char* const variables[] = {path.data(), nullptr};
  const NullStdio stdio;
  const Attributes attributes;
  pid_t child = -1;
  if (::posix_spawn(&child, words[0], &stdio.value, &attributes.value, words.data(), variables) !=
      0) {
    return false;
  }
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd wait{.fd = process.get(), .events = POLLIN, .revents = 0};
  const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  const bool ended = process.valid() && ::poll(&wait, 1, static_cast<int>(limit_ms)) > 0;
  if (!ended) ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string InPath(const std::string& programs) {
  for (std::string_view dir : Split(programs, ':')) {
    std::string python = StrCat(dir, "/python3");
    if (dir.starts_with('/') && IsProgram(python) && !IsScript(python)) return python;
  }
  return "";
}

}  // namespace

void AddPythonFlag(cli::Flags& flags, std::string& file) {
  flags.Text(
      "--python", &file, "FILE",
      "Python that the catalogue's images run, with the packages of its environment "
      "(default: the one of the last --python, else the first that has torch of "
      "$VIRTUAL_ENV/bin/python3, $CONDA_PREFIX/bin/python3 and the python3 beside this "
      "program, else /usr/bin/python3, else the first python3 of PATH that is not a script)");
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
