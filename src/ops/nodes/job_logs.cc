#include "ops/nodes/job_logs.h"

#include <set>
#include <string>
#include <vector>

#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"

namespace swell::ops {
namespace {

std::vector<client::Informer*> KindsOfJobs(const controllers::Informers& informers) {
  std::vector<client::Informer*> kinds;
  for (const api::Definition& one : api::JobDefinitions()) {
    client::Informer* jobs = informers.Find({one.group, one.version, one.plural, true});
    if (jobs != nullptr) kinds.push_back(jobs);
  }
  return kinds;
}

std::set<std::string, std::less<>> UidsOf(const std::vector<client::Informer*>& kinds) {
  std::set<std::string, std::less<>> uids;
  for (const client::Informer* jobs : kinds) {
    for (const auto& [key, job] : jobs->objects()) uids.emplace(api::Uid(*job));
  }
  return uids;
}

}  // namespace

void ForgetLogsWithTheirJobs(controllers::Informers& informers, node::Runtime& runtime) {
  const std::vector<client::Informer*> kinds = KindsOfJobs(informers);
  for (client::Informer* jobs : kinds) {
    controllers::Follow(
        *jobs, [](const json::SharedValue&) {},
        [&runtime](const json::SharedValue& job) {
          runtime.ForgetJob(std::string(api::Uid(*job)));
        });
  }
  informers.WhenSynced([&runtime, kinds] {
    runtime.KeptJobs([&runtime, kinds](const std::vector<std::string>& kept) {
      const auto there = UidsOf(kinds);
      for (const std::string& uid : kept) {
        if (!there.contains(uid)) runtime.ForgetJob(uid);
      }
    });
  });
}

}  // namespace swell::ops
