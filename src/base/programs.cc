#include "base/programs.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "base/strings.h"

namespace swell {
namespace {

class FileActions {
 public:
  explicit FileActions(const std::vector<std::pair<int, int>>& files) {
    ::posix_spawn_file_actions_init(&value_);
    for (const auto& [from, to] : files) {
      if (from >= 0) {
        ::posix_spawn_file_actions_adddup2(&value_, from, to);
      } else {
        ::posix_spawn_file_actions_addopen(&value_, to, "/dev/null", O_RDWR, 0);
      }
    }
  }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&value_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &value_; }

 private:
  posix_spawn_file_actions_t value_;
};

class Attributes {
 public:
  explicit Attributes(bool own_group) {
    ::posix_spawnattr_init(&value_);
    if (!own_group) return;
    ::posix_spawnattr_setflags(
        &value_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&value_, 0);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&value_, &signals);
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&value_, &signals);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&value_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_;
};

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

bool IsProgram(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> FindPrograms(std::string_view name, std::string_view path) {
  std::vector<std::string> found;
  for (std::string_view dir : Split(path, ':')) {
    std::string program = StrCat(dir, "/", name);
    if (dir.starts_with('/') && IsProgram(program)) found.push_back(std::move(program));
  }
  return found;
}

Spawned Spawn(SpawnPlan plan) {
  const FileActions files(plan.files);
  const Attributes attributes(plan.own_group);
  const std::vector<char*> words = Pointers(plan.command);
  std::vector<char*> variables;
  if (plan.environment) variables = Pointers(*plan.environment);
  Spawned spawned;
  spawned.error = ::posix_spawnp(&spawned.pid, words[0], files.get(), attributes.get(),
                                 words.data(), plan.environment ? variables.data() : environ);
  if (spawned.error != 0) spawned.pid = -1;
  return spawned;
}

}  // namespace swell
