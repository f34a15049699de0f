// Programs of this machine: where they are, and how they are started.
// - Threads: any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swell {

// Whether the path leads to a file that this user may execute.
bool IsProgram(const std::string& path);
// The programs of that name in the directories of `path`, which is written as PATH, in their order.
// Directories that are not absolute are left out.
std::vector<std::string> FindPrograms(std::string_view name, std::string_view path);

struct SpawnPlan {
  std::vector<std::string> command;  // begins with a path, or with a name that PATH leads to
  std::optional<std::vector<std::string>> environment;  // "A=1"; nullopt: this process's
  // The program's descriptors: {one of this process, its number there}. -1 stands for /dev/null.
  std::vector<std::pair<int, int>> files;
  // The program gets a process group of its own, so that what it starts can be ended with it. Its
  // signals are set as in a login shell.
  bool own_group = false;
};
struct Spawned {
  pid_t pid = -1;
  int error = 0;  // as errno; 0: it was started
};
Spawned Spawn(SpawnPlan plan);

}  // namespace swell
