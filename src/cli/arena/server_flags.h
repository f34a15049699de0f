// ServerFlags: the flags that start a server of arena, and that change one.
// - Threads: one thread.
// - Ownership: the spec outlives them.
#pragma once

#include <string>
#include <vector>

#include "cli/arena/instance_flags.h"

namespace swell::cli::arena {

class ServerFlags {
 public:
  // `spec`: of one replica.
  explicit ServerFlags(PyTorchSpec& spec) : spec_(spec) {}

  void DeclareServer(Flags& flags);
  void DeclareAmounts(Flags& flags);
  // `words`: the command, where --command does not say it.
  Status Fill(const std::vector<std::string>& words);

  // Empty: none was given.
  std::vector<std::string> Command() const;

  int64_t replicas = 1;

 private:
  Status FillShare();

  PyTorchSpec& spec_;
  InstanceFlags instances_;
  std::string command_, shell_ = "sh";
  int64_t gpu_memory_gib_ = 0, gpu_percent_ = 0;
};

}  // namespace swell::cli::arena
