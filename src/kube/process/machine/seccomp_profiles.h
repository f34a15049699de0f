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
#include <utility>

#include "base/result.h"
#include "kube/node/runtime/security.h"

namespace swell::process {

// Whether the container can open ports. kClosed: neither bind nor listen.
enum class Ports { kMayOpen, kClosed };
// The programs of a sock_fprog.
Result<std::string> CompileDefaultFilter(node::CapabilitySet capabilities,
                                         Ports ports = Ports::kMayOpen);
// kInvalid names the field that is wrong.
Result<std::string> CompileOciFilter(std::string_view profile_json);

class SeccompProfiles {
 public:
  explicit SeccompProfiles(std::string data_dir) : data_dir_(std::move(data_dir)) {}

  // The file of a container's filter; empty: it has none. A container whose ports are closed gets
  // the default one without these calls, also where it names a file.
  Result<std::string> FileFor(const node::ContainerSecurity& security, Ports ports);

 private:
  Result<std::string> Localhost(const std::string& name);
  Result<std::string> Keep(const std::string& filter);

  std::string data_dir_;
  // By the capabilities that matter, and by whether it may open ports.
  std::map<std::pair<node::CapabilitySet, Ports>, std::string> defaults_;
  std::map<std::string, std::string> localhost_;  // by the profile's text
};

}  // namespace swell::process
