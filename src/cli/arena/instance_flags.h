// InstanceFlags: the flags of arena that describe an instance, of a job and of a server alike.
// - Threads: one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "cli/jobs/pytorch_spec.h"

namespace swell::cli::arena {

class InstanceFlags {
 public:
  // --env, --annotation, --label.
  void DeclareNames(Flags& flags);
  void DeclareUser(Flags& flags);
  // `of`: what has them, in the help.
  void DeclareDevices(Flags& flags, std::string_view of);
  // --selector, --toleration.
  void DeclareNodes(Flags& flags);
  // Into the spec. kBadRequest (misuse) naming the flag.
  Status Fill(PyTorchSpec& spec) const;

 private:
  std::vector<std::string> env_, devices_, labels_, annotations_, selectors_, tolerations_;
  std::string run_as_user_;
};

}  // namespace swell::cli::arena
