#include "kube/controllers/workloads/active_jobs.h"

#include <string>
#include <utility>
#include <vector>

namespace swell::controllers {

void SetActive(const json::Value& known, json::Array active, json::Value& status) {
  const auto uids = [](const json::Array& list) {
    std::vector<std::string> all;
    for (const json::Value& one : list) all.emplace_back(json::GetString(one, {"uid"}));
    return all;
  };
  if (uids(active) != uids(json::GetArray(known, {"active"}))) {
    json::Set(status, {"active"}, std::move(active));
  }
}

}  // namespace swell::controllers
