// Kubeflow's TrainJob (trainer.kubeflow.org/v1alpha1): a runtime says how jobs of a sort are made,
// the job what is special about it. Source: https://www.kubeflow.org/docs/components/trainer.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "jobs/kinds/runtime_patches.h"
#include "kube/api/crd/crds.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_env.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;
using controllers::WrongField;

constexpr std::string_view kGroup = "trainer.kubeflow.org";
constexpr std::string_view kVersion = "v1alpha1";
constexpr std::string_view kNode = "node";  // the job of a runtime that trains, and its container
constexpr int64_t kPort = 29400;
constexpr int64_t kBackoffUsual = 6;        // Kubernetes' default for the Jobs of a JobSet
constexpr int64_t kRetriesMax = 1'000'000;  // of each of two numbers that are multiplied

client::Resource Resource(std::string_view plural, bool namespaced) {
  return {std::string(kGroup), std::string(kVersion), std::string(plural), namespaced};
}

class TrainJobKind final : public JobKind {
 public:
  explicit TrainJobKind(const JobKindOptions& options) : options_(options) {}

  client::Resource resource() const override { return Resource("trainjobs", true); }
  std::string kind() const override { return "TrainJob"; }
  std::vector<client::Resource> References() const override {
    return {Resource("clustertrainingruntimes", false), Resource("trainingruntimes", true)};
  }
  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  bool Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  OnFailure ClassifyFailure(const ReplicaSpec& replica,
                            const ReplicaCount& count,
                            const json::Value& pod,
                            int64_t restarts) const override;
  void FillStatus(const json::Value& job,
                  const JobSpec& spec,
                  const std::vector<ReplicaCount>& counts,
                  WallTime now,
                  json::Value& status) const override;

 private:
  // The runtime's document. kNotFound while it does not exist.
  Result<json::Value> FindRuntime(const json::Value& job) const;

  const JobKindOptions options_;
};

Result<json::Value> TrainJobKind::FindRuntime(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  const std::string name(json::GetString(body, {"runtimeRef", "name"}));
  const std::string kind(json::GetString(body, {"runtimeRef", "kind"}, "ClusterTrainingRuntime"));
  if (name.empty()) return WrongField("spec.runtimeRef.name", "Required value");
  const std::string_view group = json::GetString(body, {"runtimeRef", "apiGroup"}, kGroup);
  const bool of_cluster = kind == "ClusterTrainingRuntime";
  if (group != kGroup || (!of_cluster && kind != "TrainingRuntime")) {
    return controllers::WrongText(
        "spec.runtimeRef.kind", kind,
        "must be ClusterTrainingRuntime or TrainingRuntime of trainer.kubeflow.org");
  }
  json::SharedValue found;
  if (options_.find) {
    found = of_cluster ? options_.find(Resource("clustertrainingruntimes", false), name)
                       : options_.find(Resource("trainingruntimes", true),
                                       StrCat(api::Namespace(job), "/", name));
  }
  if (found != nullptr) return *found;
  // A cluster without the object, such as one whose Kubeflow is not installed, has it all the same.
  json::Value torch = api::TorchTrainingRuntime();
  if (!options_.find || (of_cluster && name == api::Name(torch))) return torch;
  return Status(Code::kNotFound, StrCat("spec.runtimeRef: the ", kind, " ", Quote(name),
                                        " does not exist; the job waits for it"));
}

// Fields that people may set and that nothing here follows.
Status CheckForbidden(const json::Value& body) {
  if (json::GetObject(body, {"initializer"}).empty()) return Status::Ok();
  return WrongField("spec.initializer",
                    "Forbidden: fetch data and model in the training command, or from a volume");
}

bool HasPolicy(const json::Value& runtime, std::string_view name) {
  return json::Find(runtime, {"spec", "mlPolicy", name}) != nullptr;
}

// Nodes that are not told how to find each other would each train a model of their own.
Status CheckPolicy(const json::Value& runtime) {
  static constexpr std::array<std::string_view, 4> kKnown = {"numNodes", "torch", "jax", "xgboost"};
  for (const auto& policy : json::GetObject(runtime, {"spec", "mlPolicy"})) {
    const std::string_view name(policy.key().data(), policy.key().size());
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
    return WrongField("spec.runtimeRef",
                      StrCat("Forbidden: its mlPolicy is ", name, "; ",
                             name == "mpi" ? "use an MPIJob instead"
                                           : "supported policies: torch, jax, xgboost"));
  }
  return Status::Ok();
}

// The job of the runtime's JobSet that trains. A runtime with further steps cannot run here.
Result<json::Value> NodeJob(const json::Value& runtime) {
  SWELL_RETURN_IF_ERROR(CheckPolicy(runtime));
  const json::Value* node = nullptr;
  for (const json::Value& one :
       json::GetArray(runtime, {"spec", "template", "spec", "replicatedJobs"})) {
    if (json::GetString(one, {"name"}) != kNode) {
      return WrongField("spec.runtimeRef",
                        StrCat("Forbidden: the runtime has a further step, ",
                               Quote(json::GetString(one, {"name"})), "; only \"node\" is run"));
    }
    node = &one;
  }
  if (node == nullptr) {
    return WrongField("spec.runtimeRef",
                      "Invalid value: the runtime has no replicatedJob \"node\"");
  }
  return *node;
}

void SetVariable(json::Value& container, const json::Value& variable) {
  json::Value* env = json::FindMutable(container, {"env"});
  if (env == nullptr || !env->is_array()) env = &json::Set(container, {"env"}, json::Array{});
  for (json::Value& one : env->get_array()) {
    if (json::GetString(one, {"name"}) != json::GetString(variable, {"name"})) continue;
    one = variable;
    return;
  }
  env->get_array().push_back(variable);
}

// What the job says of its trainer, in the runtime's container for it.
void ApplyTrainer(const json::Value& trainer, json::Value& pod) {
  json::Value* containers = json::FindMutable(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return;
  for (json::Value& container : containers->get_array()) {
    if (api::ContainerName(container) != kNode) continue;
    for (std::string_view field : {"image", "command", "args"}) {
      const json::Value* value = json::Find(trainer, {field});
      if (value != nullptr) json::Set(container, {field}, *value);
    }
    if (const json::Value* resources = json::Find(trainer, {"resourcesPerNode"})) {
      json::Set(container, {"resources"}, *resources);
    }
    for (const json::Value& variable : json::GetArray(trainer, {"env"})) {
      SetVariable(container, variable);
    }
  }
}

// `of_its_runtime`: the template is that of the job's own runtime, not a stand-in.
Status Patch(const std::vector<RuntimePatch>& patches, bool of_its_runtime, json::Value& pod) {
  for (const RuntimePatch& patch : patches) {
    if (of_its_runtime) SWELL_RETURN_IF_ERROR(CheckContainersOf(patch, pod));
    SWELL_RETURN_IF_ERROR(ApplyRuntimePatch(patch, pod));
  }
  return Status::Ok();
}

// A runtime is a JobSet: its Job makes failed pods anew up to its backoffLimit; then the JobSet
// makes all pods anew, maxRestarts times.
void ReadRetries(const json::Value& runtime, const json::Value& node, JobSpec& spec) {
  auto read = [](const json::Value& in, std::initializer_list<std::string_view> path,
                 int64_t usual) {
    return std::clamp<int64_t>(json::GetInt(in, path, usual), 0, kRetriesMax);
  };
  const int64_t of_job = read(node, {"template", "spec", "backoffLimit"}, kBackoffUsual);
  const int64_t of_set =
      read(runtime, {"spec", "template", "spec", "failurePolicy", "maxRestarts"}, 0);
  spec.backoff_limit = of_job + of_set * (of_job + 1);
  if (of_set == 0) return;
  ReplicaSpec& nodes = spec.replicas.front();
  nodes.relaunches = of_job;
  nodes.on_failure.push_back({.action = OnFailure::kRestartJob});
}

Result<JobSpec> TrainJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  JobSpec spec;
  SWELL_RETURN_IF_ERROR(CheckForbidden(body));
  SWELL_ASSIGN_OR_RETURN(const std::vector<RuntimePatch> patches, ReadRuntimePatches(body, kNode));
  SWELL_ASSIGN_OR_RETURN(const json::Value runtime, FindRuntime(job));
  SWELL_ASSIGN_OR_RETURN(const json::Value node, NodeJob(runtime));
  const json::Value* pod = json::Find(node, {"template", "spec", "template"});
  json::Value role = json::Object{{"template", pod != nullptr ? *pod : json::Value()}};
  if (const json::Value* trainer = json::Find(body, {"trainer"})) {
    ApplyTrainer(*trainer, *json::FindMutable(role, {"template"}));
  }
  SWELL_RETURN_IF_ERROR(
      Patch(patches, options_.find != nullptr, *json::FindMutable(role, {"template"})));
  const int64_t of_runtime = json::GetInt(runtime, {"spec", "mlPolicy", "numNodes"}, 1);
  const int64_t nodes = json::GetInt(body, {"trainer", "numNodes"}, of_runtime);
  if (nodes < 1 || nodes > kReplicasMax) {
    return WrongField("spec.trainer.numNodes", nodes,
                      StrCat("must be between 1 and ", kReplicasMax));
  }
  json::Set(role, {"replicas"}, nodes);
  SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadReplicaSpec("spec.trainer", kNode, role, {}));
  replica.restart_policy = ParseRestartPolicy(
      json::GetString(role, {"template", "spec", "restartPolicy"}), RestartPolicy::kOnFailure);
  replica.pod_name = StrCat(api::Name(job), "-", kNode, "-0");
  spec.replicas.push_back(std::move(replica));
  ReadRunPolicy(body, spec);
  ReadRetries(runtime, node, spec);
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  return spec;
}

json::Object TrainJobKind::Labels(const JobMember& member) const {
  return {{"jobset.sigs.k8s.io/jobset-name", api::Name(member.job)},
          {"jobset.sigs.k8s.io/replicatedjob-name", kNode},
          {"jobset.sigs.k8s.io/job-index", "0"},
          {"batch.kubernetes.io/job-completion-index", std::to_string(member.index)},
          {"trainer.kubeflow.org/trainjob-ancestor-step", "trainer"}};
}

// Processes on each node, as the runtime's torch plugin counts them: what the job or its runtime
// says; of "auto" without GPUs one per CPU.
std::string ProcessesPerNode(const json::Value& job, const json::Value& runtime) {
  const json::Value* said = json::Find(job, {"spec", "trainer", "numProcPerNode"});
  if (said == nullptr) said = json::Find(runtime, {"spec", "mlPolicy", "torch", "numProcPerNode"});
  std::string text = "auto";
  if (said != nullptr) {
    text = said->is_string() ? std::string(json::View(said->get_string())) : json::Print(*said);
  }
  const json::Value* resources = json::Find(job, {"spec", "trainer", "resourcesPerNode"});
  if (resources == nullptr || (text != "auto" && text != "cpu")) return text;
  std::string cpus = "1";
  for (std::string_view side : {"requests", "limits"}) {
    for (const auto& [key, value] : json::GetObject(*resources, {side})) {
      const std::string name = ToLower(std::string_view(key.data(), key.size()));
      if (text == "auto" && name.find("gpu") != std::string::npos) return text;
      const auto amount = name == "cpu" ? api::Quantity::FromJson(value) : api::Quantity();
      if (name == "cpu" && amount.ok())
        cpus = std::to_string(std::max<int64_t>(1, amount->Value()));
    }
  }
  return cpus;
}

void SetJaxEnv(const RankEnv& env, json::Value& pod) {
  SetEnv(pod, "JAX_COORDINATOR_ADDRESS", StrCat(env.leader, ":", env.port));
  SetEnv(pod, "JAX_NUM_PROCESSES", std::to_string(env.world));
  SetEnv(pod, "JAX_PROCESS_ID", std::to_string(env.rank));
}

// The first node runs the tracker. A node has a worker for each of its GPUs.
void SetXgboostEnv(const RankEnv& env, json::Value& pod) {
  int64_t workers = 1;
  for (const json::Value& container : api::Containers(pod)) {
    if (api::ContainerName(container) != kNode) continue;
    const json::Value* gpus = json::Find(container, {"resources", "limits", api::kGpuResource});
    const auto amount = gpus != nullptr ? api::Quantity::FromJson(*gpus) : api::Quantity();
    if (amount.ok()) workers = std::max<int64_t>(1, amount->Value());
  }
  SetEnv(pod, "DMLC_TRACKER_URI", env.leader);
  SetEnv(pod, "DMLC_TRACKER_PORT", std::to_string(env.port));
  SetEnv(pod, "DMLC_NUM_WORKER", std::to_string(env.world * workers));
  SetEnv(pod, "DMLC_TASK_ID", std::to_string(env.rank));
}

void TrainJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const auto runtime = FindRuntime(member.job);
  const std::string name(api::Name(member.job));
  json::Set(pod, {"spec", "subdomain"}, name);
  AddContainerPort(pod, "trainer", kPort);
  SetEnv(pod, "PYTHONUNBUFFERED", "1");
  // As in the pods of an indexed Job, which a runtime's Jobs are.
  SetEnv(pod, "JOB_COMPLETION_INDEX", std::to_string(member.index));
  if (!runtime.ok()) return;
  const RankEnv env{.leader = StrCat(member.role.PodName(name, 0), ".", name),
                    .port = kPort,
                    .rank = member.index,
                    .world = member.spec.TotalReplicas()};
  if (HasPolicy(*runtime, "torch")) {
    SetEnv(pod, "PET_NPROC_PER_NODE", ProcessesPerNode(member.job, *runtime));
    SetNodeEnv(pod, env);
  }
  if (HasPolicy(*runtime, "jax")) SetJaxEnv(env, pod);
  if (HasPolicy(*runtime, "xgboost")) SetXgboostEnv(env, pod);
}

std::vector<json::Value> TrainJobKind::Services(const json::Value& job, const JobSpec&) const {
  return {LeaderService(api::Name(job), {{"jobset.sigs.k8s.io/jobset-name", api::Name(job)}},
                        "trainer", kPort)};
}

bool TrainJobKind::Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  return counts.front().succeeded == spec.TotalReplicas();
}

bool TrainJobKind::Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  const ReplicaCount& nodes = counts.front();
  return nodes.running > 0 && nodes.running + nodes.succeeded >= spec.TotalReplicas();
}

// Under OnFailure, containers restart in their pods. Under Never, a Job makes new pods.
OnFailure TrainJobKind::ClassifyFailure(const ReplicaSpec& replica,
                                        const ReplicaCount&,
                                        const json::Value& pod,
                                        int64_t restarts) const {
  if (replica.restart_policy != RestartPolicy::kNever || api::IsDeleting(pod) ||
      controllers::FailedByCluster(pod) || controllers::WasDisrupted(pod)) {
    return OnFailure::kAsUsual;
  }
  const bool used_up = (restarts + 1) % (replica.relaunches + 1) == 0;
  return used_up && !replica.on_failure.empty() ? replica.on_failure.front().action
                                                : OnFailure::kReplace;
}

// Kubeflow counts Jobs here, and a TrainJob's nodes are one Job.
void TrainJobKind::FillStatus(const json::Value&,
                              const JobSpec& spec,
                              const std::vector<ReplicaCount>& counts,
                              WallTime now,
                              json::Value& status) const {
  const ReplicaCount& nodes = counts.front();
  const bool complete = api::ConditionIsTrueIn(status, "Succeeded");
  const bool failed = api::ConditionIsTrueIn(status, "Failed");
  json::Set(status, {"jobsStatus"},
            json::Array{json::Object{{"name", kNode},
                                     {"ready", nodes.running == spec.TotalReplicas() ? 1 : 0},
                                     {"active", nodes.active > 0 ? 1 : 0},
                                     {"succeeded", complete ? 1 : 0},
                                     {"failed", failed ? 1 : 0},
                                     {"suspended", spec.suspend ? 1 : 0}}});
  if (!complete) return;
  json::Array& conditions = json::FindMutable(status, {"conditions"})->get_array();
  api::SetCondition(conditions, "Complete", "True", "JobsCompleted", "All nodes have succeeded.",
                    now);
}

}  // namespace

void AddTrainerJobs(const JobKindOptions& options, JobKindList& kinds) {
  kinds.push_back({std::make_unique<TrainJobKind>(options), nullptr, nullptr});
}

}  // namespace swell::jobs
