// SimHistory: the writes that became durable, in order, and the rules that they break.
//
// It hangs on the disk, below everything that could lie: answers, watches and restarts are held to
// what it says.
//
// - Threads: one thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/sim_executor.h"
#include "kube/api/rest/rest.h"
#include "kube/store/backend.h"

namespace swell::sim {

class SimHistory {
 public:
  explicit SimHistory(SimExecutor& executor) : executor_(executor) {}

  void Add(const std::vector<store::Change>& batch);
  // Runs for every change, after it is counted here.
  void OnChange(std::function<void(const store::Change&)> hear) {
    hear_.push_back(std::move(hear));
  }

  // Runs for every request that the server has answered; `number`: in the order of asking.
  using Listener = std::function<void(uint64_t number, const api::RestRequest&, int http_status)>;
  void OnAnswer(Listener hear) { hear_answers_.push_back(std::move(hear)); }

  // An answer leaves the server: what it acknowledges must be durable by now.
  void CheckAnswer(uint64_t number,
                   const api::RestRequest& request,
                   const api::RestResponse& response);
  // Something holds that must not. The first hundred are kept.
  void Violation(const std::string& what);

  uint64_t version() const { return version_; }
  // Changes of a resource, oldest first.
  const std::vector<store::Change>& Of(const std::string& resource) { return changes_[resource]; }
  // FNV-1a over versions, keys and bytes of all changes.
  uint64_t hash() const { return hash_; }
  const std::vector<std::string>& violations() const { return violations_; }
  size_t answers_checked() const { return answers_checked_; }
  size_t conflicts() const { return conflicts_; }  // answers with 409

 private:
  SimExecutor& executor_;
  uint64_t version_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::map<std::string, std::vector<store::Change>> changes_;
  std::set<std::string> live_;  // uids
  std::vector<std::function<void(const store::Change&)>> hear_;
  std::vector<Listener> hear_answers_;
  std::vector<std::string> violations_;
  size_t answers_checked_ = 0;
  size_t conflicts_ = 0;
};

}  // namespace swell::sim
