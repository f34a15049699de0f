// HealthChecks: what /healthz, /livez and /readyz say, in the words of Kubernetes' components.
// - Threads: the thread that made it.
// - Ownership: what the checks read outlives them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swell {

class HealthChecks {
 public:
  // "" is healthy; else what is wrong, for the log: callers over the network may be anybody.
  using Check = std::function<std::string()>;

  // Checks that are only for readyz do not make a process worth a restart.
  void Add(std::string name, Check check) {
    checks_.push_back({std::move(name), std::move(check), false});
  }
  void AddReady(std::string name, Check check) {
    checks_.push_back({std::move(name), std::move(check), true});
  }

  struct Answer {
    int status = 200;
    std::string text;
  };
  // "/readyz", "/readyz/store"; `verbose` and `exclude` as the query has them. Status 404: there is
  // no such path.
  Answer Ask(std::string_view path, bool verbose, const std::vector<std::string>& exclude) const;
  // The same for a query string as it is: "verbose&exclude=store".
  Answer Ask(std::string_view path, std::string_view query) const;

 private:
  struct Named {
    std::string name;
    Check check;
    bool ready_only = false;
  };
  std::vector<Named> checks_{{"ping", [] { return std::string(); }, false}};
};

}  // namespace swell
