#include "ops/install/cluster_survey.h"

#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "ops/install/install_objects.h"

namespace swell::ops {

Status CheckInstalled(RemoteProcess& process) {
  SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> missing, MissingCrds(process));
  if (missing.empty()) return Status::Ok();
  return Status(Code::kNotFound, StrCat(process.access().server, " lacks these definitions: ",
                                        Join(missing, ", "), "; run: swell install"));
}

Result<std::vector<client::Resource>> FindMissing(RemoteProcess& process) {
  using namespace client::resources;
  std::vector<client::Resource> missing;
  for (const client::Resource& resource : {kResourceClaims, kResourceSlices, kDeviceClasses,
                                           kDeviceTaintRules, kGangs, kCompositeGangs}) {
    SWELL_ASSIGN_OR_RETURN(const bool served, process.Serves(resource));
    if (!served) missing.push_back(resource);
  }
  return missing;
}

FindDefinition DefinitionsOf(RemoteProcess& process) {
  return [&process](const std::string& name) {
    return process.Await([&](client::ObjectCallback done) {
      process.client().Get(client::resources::kCrds, "", name, std::move(done));
    });
  };
}

Result<std::set<std::string>> FindOthersJobs(const FindDefinition& find,
                                             const std::string& kubeflow) {
  std::set<std::string> others;
  if (kubeflow == "swell") return others;
  for (const api::Definition& own : api::Definitions()) {
    const std::string name = own.GroupResource();
    if (!own.is_job() && name != client::resources::kCrons.GroupResource()) continue;
    if (kubeflow == "operator") {
      if (own.group.ends_with("kubeflow.org")) others.insert(name);
      continue;
    }
    if (own.group == "swell.dev" || own.group == "elasticdl.org") continue;
    const auto definition = find(name);
    if (!definition.ok()) return definition.status().WithContext(name);
    if (api::Label(**definition, kPartOfLabel) != kPartOf) others.insert(name);
  }
  return others;
}

Result<ClusterFacts> SurveyCluster(RemoteProcess& process, const std::string& kubeflow) {
  ClusterFacts facts;
  SWELL_ASSIGN_OR_RETURN(facts.policy_v1, process.Serves("policy", "v1"));
  SWELL_ASSIGN_OR_RETURN(facts.missing, FindMissing(process));
  SWELL_ASSIGN_OR_RETURN(facts.others_jobs, FindOthersJobs(DefinitionsOf(process), kubeflow));
  return facts;
}

}  // namespace swell::ops
