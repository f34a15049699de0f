// Run:ai's workloads of pods that are all alike (run.ai/v2alpha1): training and workspaces of one
// pod, as `runai submit` makes them, and servers.
#include <string>
#include <vector>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/runai_distributed.h"
#include "jobs/kinds/runai_kind.h"
#include "jobs/kinds/workload_pod.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/runai_workload.h"

namespace swell::jobs {
namespace {

using api::WorkloadValue;
using controllers::WrongField;

constexpr std::string_view kTrain = "train";
constexpr std::string_view kInference = "inference";

class RunaiJobKind final : public RunaiKind {
 public:
  using RunaiKind::RunaiKind;

  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override {
    SetWorkloadEnv(member, ProjectOf(member), pod);
  }
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().succeeded == spec.TotalReplicas();
  }
  bool Running(const JobSpec&, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().running > 0;
  }

 private:
  bool trains() const { return definition_.workload == kTrain; }
  bool serves() const { return definition_.workload == kInference; }
  std::string_view Role() const { return trains() ? "worker" : serves() ? "server" : "workspace"; }
  Status ReadServers(const json::Value& body, JobSpec& spec) const;
};

// A workspace without a command is its image's shell or Python, which ends at once if it has no
// input.
void KeepTerminal(json::Value& pod) {
  json::Value& container = json::FindMutable(pod, {"spec", "containers"})->get_array().front();
  if (json::Find(container, {"command"}) || json::Find(container, {"args"})) return;
  for (std::string_view field : {"stdin", "tty"}) {
    if (json::Find(container, {field}) == nullptr) json::Set(container, {field}, true);
  }
}

// Each server serves by itself: the first that finds a place starts, and others may come and go.
Status RunaiJobKind::ReadServers(const json::Value& body, JobSpec& spec) const {
  const int64_t least = api::WorkloadMembers(body);
  if (least < 1 || least > kReplicasMax) {
    return WrongField("spec.minScale.value", least,
                      StrCat("must be between 1 and ", kReplicasMax,
                             ": servers are not scaled by their load, so nothing would start one"));
  }
  const int64_t most = json::GetInt(body, {"maxScale", "value"}, least);
  if (most < least) {
    return WrongField("spec.maxScale.value", most, StrCat("must be at least minScale, ", least));
  }
  if (api::WorkloadPorts(body).empty()) {
    return WrongField("spec.ports", "Required value: where the servers listen");
  }
  ReplicaSpec& servers = spec.replicas.front();
  servers.replicas = servers.requested = least;
  servers.restart_policy = RestartPolicy::kAlways;
  servers.min_member = 1;
  servers.max_member = least;
  spec.min_available = 1;
  spec.elastic = true;
  return Status::Ok();
}

Result<JobSpec> RunaiJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  const WorkloadPart part{body, "spec", Role()};
  SWELL_RETURN_IF_ERROR(CheckWorkload(job, part));
  SWELL_ASSIGN_OR_RETURN(json::Value pod, MakeWorkloadPod(part, options_));
  if (!trains() && !serves()) KeepTerminal(pod);
  const json::Value role = json::Object{{"template", std::move(pod)}};
  JobSpec spec;
  SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadReplicaSpec("spec", Role(), role, {}));
  spec.replicas.push_back(std::move(replica));
  spec.priority_class = definition_.workload;
  if (serves()) SWELL_RETURN_IF_ERROR(ReadServers(body, spec));
  if (WorkloadValue(body, "backoffLimit") != nullptr) {
    spec.backoff_limit = json::GetInt(body, {"backoffLimit", "value"});
  } else if (trains()) {
    // A workspace comes back however often it ends, and so do servers.
    spec.backoff_limit = kWorkloadBackoff;
  }
  ReadWorkloadPolicy(body, spec);
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  return spec;
}

json::Object RunaiJobKind::Labels(const JobMember& member) const {
  return {{api::keys::kJobName, api::Name(member.job)},
          {api::keys::kJobRole, member.role.type},
          {api::keys::kJobIndex, std::to_string(member.index)},
          {api::keys::kWorkload, definition_.workload}};
}

std::vector<json::Value> RunaiJobKind::Services(const json::Value& job, const JobSpec&) const {
  return WorkloadServices(api::Spec(job), std::string(api::Name(job)),
                          {{api::keys::kJobName, api::Name(job)}, {api::keys::kJobRole, Role()}});
}

}  // namespace

void AddRunaiJobs(const JobKindOptions& options, JobKindList& kinds) {
  for (const api::Definition& one : api::JobDefinitions()) {
    if (one.group != "run.ai") continue;
    std::unique_ptr<JobKind> kind;
    if (one.kind == "DistributedWorkload") {
      kind = MakeRunaiDistributedKind(one, options);
    } else {
      kind = std::make_unique<RunaiJobKind>(one, options);
    }
    kinds.push_back({std::move(kind), nullptr, nullptr});
  }
}

}  // namespace swell::jobs
