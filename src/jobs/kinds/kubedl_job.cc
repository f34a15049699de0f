#include "jobs/kinds/kubedl_job.h"

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kMaster = "Master";
constexpr std::string_view kWorker = "Worker";

class KubedlJobKind final : public JobKind {
 public:
  explicit KubedlJobKind(const JobKindOptions& options) : options_(options) {}

  client::Resource resource() const override { return kKubedlPyTorchJobs; }
  std::string kind() const override { return "PyTorchJob"; }
  std::string Reason(std::string_view what) const override { return StrCat("Job", what); }
  bool kubedl_style_status() const override { return true; }
  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  bool Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;

 private:
  JobKindOptions options_;
};

Result<JobSpec> KubedlJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  JobSpec spec;
  spec.clean_pod_policy = CleanPodPolicy::kRunning;
  SWELL_RETURN_IF_ERROR(ReadPyTorchRoles(body, spec));
  ReadRunPolicy(body, spec);
  spec.priority_class =
      json::GetString(body, {"schedulingPolicy", "priorityClassName"}, spec.priority_class);
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  SWELL_RETURN_IF_ERROR(ReadElasticPolicy(body, spec));
  const api::ElasticPolicy policy(body);
  for (ReplicaSpec& replica : spec.replicas) {
    const bool holds = replica.type == kWorker && policy.backend == "c10d";
    if (spec.elastic && holds && policy.endpoint.empty()) replica.vital = 1;
  }
  return spec;
}

json::Object KubedlJobKind::Labels(const JobMember& member) const {
  json::Object labels{{"group-name", "training.kubedl.io"},
                      {"job-name", api::Name(member.job)},
                      {"replica-type", ToLower(member.role.type)},
                      {"replica-index", std::to_string(member.index)}};
  if (member.role.type == kMaster) labels["job-role"] = "master";
  return labels;
}

// The launcher's options come first: the image's entry point is a launcher, and the first argument
// that is not an option of its own begins the user's command line.
void PrependLauncherOptions(const json::Value& job,
                            const JobSpec& spec,
                            int64_t port,
                            json::Value& pod) {
  const api::ElasticPolicy policy(api::Spec(job));
  const ReplicaSpec* workers = spec.Find(kWorker);
  const int64_t least = policy.bounds.least;
  const int64_t most = policy.bounds.most.value_or(workers ? workers->replicas : least);
  std::string_view name = api::Name(job);
  std::string endpoint(policy.endpoint);
  if (endpoint.empty()) endpoint = StrCat(ReplicaName(name, kWorker, 0), ":", port);
  const json::Array options{
      json::Value(StrCat("--rdzv_backend=", policy.backend)),
      json::Value(StrCat("--rdzv_endpoint=", endpoint)), json::Value(StrCat("--rdzv_id=", name)),
      json::Value(StrCat("--nproc_per_node=", policy.processes_per_node.value_or(1))),
      json::Value(StrCat("--nnodes=", least, ":", most))};
  json::Value* containers = json::FindMutable(pod, {"spec", "containers"});
  for (json::Value& container : containers->get_array()) {
    json::Array args = options;
    for (const json::Value& own : json::GetArray(container, {"args"})) args.push_back(own);
    json::Set(container, {"args"}, std::move(args));
  }
}

void KubedlJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const json::Value& job = member.job;
  const JobSpec& spec = member.spec;
  const int64_t rank = member.rank();
  const int64_t port = PyTorchPort(job, spec, options_);
  if (rank == 0 || spec.elastic) AddContainerPort(pod, kPyTorchPortName, port);
  controllers::SetEnv(pod, "PYTHONUNBUFFERED", "1");
  if (spec.elastic) {
    // Members join and leave, and each new rendezvous counts as a restart.
    controllers::SetEnv(pod, "PET_MAX_RESTARTS", "100");
    // A rendezvous outlives its job; the next job of this name is to find none.
    controllers::SetEnv(pod, "SWELL_RUN_ID", api::Uid(job));
    return PrependLauncherOptions(job, spec, port, pod);
  }
  SetRankEnv(pod, {.leader = ReplicaName(api::Name(job), spec.replicas.front().type, 0),
                   .leads = rank == 0,
                   .port = port,
                   .rank = rank,
                   .world = spec.TotalReplicas()});
}

std::vector<json::Value> KubedlJobKind::Services(const json::Value& job,
                                                 const JobSpec& spec) const {
  const int64_t port = PyTorchPort(job, spec, options_);
  std::vector<json::Value> services;
  for (const ReplicaSpec& replica : spec.replicas) {
    for (int64_t index = 0; index < replica.replicas; ++index) {
      services.push_back(LeaderService(ReplicaName(api::Name(job), replica.type, index),
                                       Labels({job, spec, replica, index}), kPyTorchPortName,
                                       port));
      if (!spec.elastic) return services;
    }
  }
  return services;
}

bool KubedlJobKind::Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  for (size_t i = 0; i < counts.size() && spec.elastic; ++i) {
    // Members that found no place have missed the end; nobody waits for them.
    if (spec.replicas[i].type == kWorker) return counts[i].succeeded > 0 && counts[i].running == 0;
  }
  if (spec.replicas.front().type == kMaster) return counts.front().succeeded > 0;
  return counts.front().succeeded == spec.replicas.front().replicas;
}

bool KubedlJobKind::Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  return spec.elastic ? counts.back().running > 0 : counts.front().running > 0;
}

}  // namespace

std::unique_ptr<JobKind> MakeKubedlJobKind(const JobKindOptions& options) {
  return std::make_unique<KubedlJobKind>(options);
}

void AddKubedlJobs(const JobKindOptions& options, JobKindList& kinds) {
  kinds.push_back({MakeKubedlJobKind(options), autoscaling::KubedlScaleTarget, nullptr});
}

}  // namespace swell::jobs
