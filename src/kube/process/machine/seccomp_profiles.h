// SeccompProfiles: filters of system calls, compiled once and kept as files that shims load.
//
// RuntimeDefault allows what ordinary programs use and leaves out what only administrators of a
// machine need; a call that needs a capability is allowed with that capability. A call that this
// list does not know, since it is newer, answers ENOSYS, so that libraries take their older way.
// Localhost profiles are files of the Open Container Initiative's JSON form in DATA/seccomp.
//
// - Threads: one. Compiling takes milliseconds; the default is compiled by the first call.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "kube/node/security.h"

namespace swell::edge {

// The programs of a sock_fprog.
Result<std::string> CompileDefaultFilter(node::CapabilitySet capabilities);
// kInvalid names the field that is wrong.
Result<std::string> CompileOciFilter(std::string_view profile_json);

class SeccompProfiles {
 public:
  explicit SeccompProfiles(std::string data_dir) : data_dir_(std::move(data_dir)) {}

  // The file of a container's filter; empty: it has none.
  Result<std::string> FileFor(const node::ContainerSecurity& security);

 private:
  Result<std::string> Localhost(const std::string& name);
  Result<std::string> Keep(const std::string& filter);

  std::string data_dir_;
  std::map<node::CapabilitySet, std::string> defaults_;  // by the capabilities that matter
  std::map<std::string, std::string> localhost_;         // by the profile's text
};

}  // namespace swell::edge
