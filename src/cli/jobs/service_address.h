// The addresses where people reach a job's Service, for commands to print.
// - Threads: the loop's thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"
#include "json/value.h"

namespace swell::cli {

// "192.0.2.7:30080" or "[2001:db8::7]:30080", one for each port. A load balancer's address is
// waited for, some seconds. Empty: only pods reach the Service, or the load balancer has no address
// yet.
std::vector<std::string> AddressesOf(Api& api, const json::Value& service);

// The same of the Services that jobs own, for lists of jobs: the Services are read once, and so are
// the nodes. Nothing is waited for.
class JobAddresses {
 public:
  // `ns` empty: all namespaces. Services that the user may not read count as none.
  JobAddresses(Api& api, std::string_view ns);

  // `uid`: of the job.
  std::vector<std::string> Of(std::string_view uid);

 private:
  Api& api_;
  std::map<std::string, std::vector<json::SharedValue>, std::less<>> by_owner_;
  std::optional<std::string> node_;  // its address
};

}  // namespace swell::cli
