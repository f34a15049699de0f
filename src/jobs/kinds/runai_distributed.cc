#include "jobs/kinds/runai_distributed.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "jobs/kinds/pytorch_job.h"
#include "jobs/kinds/role_job.h"
#include "jobs/kinds/runai_kind.h"
#include "jobs/kinds/workload_pod.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/runai_workload.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {
namespace {

using controllers::WrongField;
using controllers::WrongText;

constexpr std::string_view kWorker = "Worker";

struct Framework {
  std::string_view job_type;     // the kind of Kubeflow's job
  std::string_view roles_field;  // of that job
  std::string_view leader;       // its role; empty: the first worker leads
  std::string_view container;    // where that kind looks for ports
  std::string_view part;         // the field of the spec that only this framework has
  bool launches = false;         // the leader alone runs the command, and starts it in the workers
};

constexpr std::array<Framework, 5> kFrameworks = {
    {{"PyTorchJob", "pytorchReplicaSpecs", "Master", "pytorch", "pyTorchJob"},
     {"TFJob", "tfReplicaSpecs", "Chief", "tensorflow", ""},
     {"MPIJob", "mpiReplicaSpecs", "Launcher", "mpi", "mpiJob", true},
     {"XGBoostJob", "xgbReplicaSpecs", "Master", "xgboost", ""},
     {"JAXJob", "jaxReplicaSpecs", "", "jax", ""}}};

// Null: no such framework.
const Framework* FrameworkOf(const json::Value& workload) {
  const std::string_view type = json::GetString(workload, {"spec", "jobType"});
  const auto* found = std::find_if(kFrameworks.begin(), kFrameworks.end(),
                                   [&](const Framework& one) { return one.job_type == type; });
  return found == kFrameworks.end() ? nullptr : found;
}

// A number of a part that only one framework has; empty: the part does not say it.
std::optional<int64_t> PartNumber(const json::Value& body,
                                  std::string_view part,
                                  std::string_view field) {
  const json::Value* value = json::Find(body, {part, "values", field, "value"});
  if (value == nullptr) return {};
  return json::GetInt(body, {part, "values", field, "value"});
}

// Kubeflow's job of the workload, without templates.
json::Value KubeflowJob(const json::Value& workload, const Framework& framework) {
  const json::Value& body = api::Spec(workload);
  json::Value job = json::Object{{"apiVersion", "kubeflow.org/v1"},
                                 {"kind", framework.job_type},
                                 {"metadata", *json::Find(workload, {"metadata"})}};
  const int64_t workers = api::WorkloadWorkers(body);
  json::Object roles;
  if (!framework.leader.empty()) roles[framework.leader] = json::Object{{"replicas", 1}};
  roles[kWorker] = json::Object{{"replicas", workers}};
  for (auto& role : roles) role.value().get_object()["restartPolicy"] = "OnFailure";
  json::Set(job, {"spec", framework.roles_field}, std::move(roles));
  if (framework.launches) {
    const auto slots = PartNumber(body, framework.part, "slotsPerWorker");
    json::Set(job, {"spec", "slotsPerWorker"}, slots.value_or(1));
  } else if (!framework.part.empty()) {
    const auto least = PartNumber(body, framework.part, "minReplicas");
    const auto most = PartNumber(body, framework.part, "maxReplicas");
    if (least || most) {
      json::Set(job, {"spec", "elasticPolicy"},
                json::Object{{"minReplicas", least.value_or(workers)},
                             {"maxReplicas", most.value_or(workers)}});
    }
  }
  return job;
}

class RunaiDistributedKind final : public RunaiKind {
 public:
  RunaiDistributedKind(api::Definition definition, const JobKindOptions& options)
      : RunaiKind(std::move(definition), options) {
    inner_.push_back(MakePyTorchJobKind(options));
    for (auto& kind : MakeRoleJobKinds(options)) {
      if (kind->resource().group == "kubeflow.org") inner_.push_back(std::move(kind));
    }
  }

  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  Result<std::vector<json::Value>> Dependents(const json::Value& job,
                                              const JobSpec& spec) const override {
    const Framework& framework = *FrameworkOf(job);
    return KindOf(framework).Dependents(KubeflowJob(job, framework), spec);
  }
  // The workload ends with its leader.
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().succeeded == spec.replicas.front().replicas;
  }
  bool Running(const JobSpec&, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().running > 0;
  }

 private:
  const JobKind& KindOf(const Framework& framework) const {
    return **std::find_if(inner_.begin(), inner_.end(),
                          [&](const auto& one) { return one->kind() == framework.job_type; });
  }
  Status SetTemplates(const json::Value& workload,
                      const Framework& framework,
                      json::Value& job) const;

  std::vector<std::unique_ptr<JobKind>> inner_;
};

// A part of another framework would have no effect.
Status CheckParts(const json::Value& workload, const Framework& framework) {
  for (const Framework& other : kFrameworks) {
    if (other.part.empty() || other.part == framework.part) continue;
    if (json::GetObject(workload, {"spec", other.part, "values"}).empty()) continue;
    return WrongField(StrCat("spec.", other.part),
                      StrCat("Forbidden: spec.jobType is ", framework.job_type));
  }
  if (framework.leader.empty() && json::Find(workload, {"masterSpec"}) != nullptr) {
    return WrongField("masterSpec", StrCat("Forbidden: a ", framework.job_type, " has no master"));
  }
  return Status::Ok();
}

Status CheckWorkers(const json::Value& body, const Framework& framework) {
  const int64_t workers = api::WorkloadWorkers(body);
  const int64_t least = framework.leader.empty() || framework.launches ? 1 : 0;
  if (workers < least || workers > kReplicasMax) {
    return WrongField("spec.workers.value", workers,
                      StrCat("must be between ", least, " and ", kReplicasMax));
  }
  const auto min = PartNumber(body, "pyTorchJob", "minReplicas");
  const auto max = PartNumber(body, "pyTorchJob", "maxReplicas");
  if (min && *min < 1) {
    return WrongField("spec.pyTorchJob.values.minReplicas.value", *min, "must be at least 1");
  }
  if (max && *max < min.value_or(workers)) {
    return WrongField("spec.pyTorchJob.values.maxReplicas.value", *max,
                      StrCat("must be at least ", min.value_or(workers)));
  }
  return Status::Ok();
}

void DropFields(json::Value& body, std::initializer_list<std::string_view> fields) {
  for (std::string_view field : fields) json::Remove(body, {field});
}

Status RunaiDistributedKind::SetTemplates(const json::Value& workload,
                                          const Framework& framework,
                                          json::Value& job) const {
  json::Value worker = api::Spec(workload);
  json::Value leader = worker;
  // Workers wait for what the launcher starts in them, and the launcher itself needs no GPU.
  if (framework.launches) {
    DropFields(worker, {"command", "arguments"});
    DropFields(leader, {"gpu", "gpuDevices", "gpuMemory", "extendedResources"});
  }
  auto set = [&](std::string_view role, const WorkloadPart& part) {
    SWELL_ASSIGN_OR_RETURN(json::Value pod, MakeWorkloadPod(part, options_));
    json::Set(job, {"spec", framework.roles_field, role, "template"}, std::move(pod));
    return Status::Ok();
  };
  SWELL_RETURN_IF_ERROR(set(kWorker, {worker, "spec", framework.container}));
  if (framework.leader.empty()) return Status::Ok();
  const json::Value* own = json::Find(workload, {"masterSpec"});
  if (own != nullptr) {
    leader = api::WithMasterSpec(leader, *own);
    SWELL_RETURN_IF_ERROR(CheckWorkload(workload, {leader, "masterSpec", framework.container}));
  }
  return set(framework.leader,
             {leader, own != nullptr ? "masterSpec" : "spec", framework.container});
}

// runPolicy.values, as Kubeflow's jobs say it.
json::Value RunPolicyOf(const json::Value& body, const Framework& framework) {
  json::Object policy{{"cleanPodPolicy", framework.launches ? "Running" : "None"},
                      {"backoffLimit", kWorkloadBackoff}};
  for (const auto& field : json::GetObject(body, {"runPolicy", "values"})) {
    if (const json::Value* value = json::Find(field.value(), {"value"})) {
      policy[field.key()] = *value;
    }
  }
  return policy;
}

Status CheckCleanup(const json::Value& policy) {
  const std::string_view clean = json::GetString(policy, {"cleanPodPolicy"});
  if (clean == "None" || clean == "Running" || clean == "All") return Status::Ok();
  return WrongText("spec.runPolicy.values.cleanPodPolicy.value", clean,
                   "must be None, Running or All");
}

Result<JobSpec> RunaiDistributedKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  const Framework* framework = FrameworkOf(job);
  if (framework == nullptr) {
    return WrongText("spec.jobType", json::GetString(body, {"jobType"}),
                     "must be PyTorchJob, TFJob, MPIJob, XGBoostJob or JAXJob");
  }
  SWELL_RETURN_IF_ERROR(CheckWorkload(job, {body, "spec", framework->container}));
  SWELL_RETURN_IF_ERROR(CheckParts(job, *framework));
  SWELL_RETURN_IF_ERROR(CheckWorkers(body, *framework));
  json::Value policy = RunPolicyOf(body, *framework);
  SWELL_RETURN_IF_ERROR(CheckCleanup(policy));
  json::Value inner = KubeflowJob(job, *framework);
  json::Set(inner, {"spec", "runPolicy"}, std::move(policy));
  SWELL_RETURN_IF_ERROR(SetTemplates(job, *framework, inner));
  SWELL_ASSIGN_OR_RETURN(JobSpec spec, KindOf(*framework).Parse(inner));
  spec.priority_class = definition_.workload;
  ReadWorkloadPolicy(body, spec);
  return spec;
}

json::Object RunaiDistributedKind::Labels(const JobMember& member) const {
  const Framework& framework = *FrameworkOf(member.job);
  const json::Value job = KubeflowJob(member.job, framework);
  json::Object labels = KindOf(framework).Labels({job, member.spec, member.role, member.index});
  labels[api::keys::kWorkload] = definition_.workload;
  return labels;
}

void RunaiDistributedKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const Framework& framework = *FrameworkOf(member.job);
  const json::Value job = KubeflowJob(member.job, framework);
  KindOf(framework).PreparePod({job, member.spec, member.role, member.index}, pod);
  SetWorkloadEnv(member, ProjectOf(member), pod);
  if (framework.launches) {
    const int64_t workers = api::WorkloadWorkers(api::Spec(member.job));
    controllers::SetEnv(pod, "RUNAI_MPI_NUM_WORKERS", std::to_string(workers));
  }
}

// Those by which members find each other, and that of the ports, which leads to the first member.
std::vector<json::Value> RunaiDistributedKind::Services(const json::Value& job,
                                                        const JobSpec& spec) const {
  const Framework& framework = *FrameworkOf(job);
  std::vector<json::Value> all = KindOf(framework).Services(KubeflowJob(job, framework), spec);
  std::string name(api::Name(job));
  // MPI's members have the job's name for their domain.
  const bool taken = std::any_of(all.begin(), all.end(),
                                 [&](const json::Value& one) { return api::Name(one) == name; });
  if (taken) name += "-ports";
  json::Value body = api::Spec(job);
  if (const json::Value* own = json::Find(job, {"masterSpec"})) {
    body = api::WithMasterSpec(body, *own);
  }
  for (json::Value& service :
       WorkloadServices(body, name, Labels({job, spec, spec.replicas.front(), 0}))) {
    all.push_back(std::move(service));
  }
  return all;
}

}  // namespace

std::unique_ptr<JobKind> MakeRunaiDistributedKind(const api::Definition& definition,
                                                  const JobKindOptions& options) {
  return std::make_unique<RunaiDistributedKind>(definition, options);
}

}  // namespace swell::jobs
