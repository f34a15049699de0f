#include "jobs/kinds/pytorch_job.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;

constexpr std::string_view kMaster = "Master";
constexpr std::string_view kWorker = "Worker";

class PyTorchJobKind final : public JobKind {
 public:
  explicit PyTorchJobKind(const JobKindOptions& options) : options_(options) {}

  client::Resource resource() const override { return client::resources::kPyTorchJobs; }
  std::string kind() const override { return "PyTorchJob"; }
  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  bool Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;

 private:
  JobKindOptions options_;
};

Result<JobSpec> PyTorchJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  JobSpec spec;
  SWELL_RETURN_IF_ERROR(ReadPyTorchRoles(body, spec));
  ReadRunPolicy(body, spec);  // older manifests have the fields directly in spec
  if (const json::Value* policy = json::Find(body, {"runPolicy"})) ReadRunPolicy(*policy, spec);
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  SWELL_RETURN_IF_ERROR(ReadElasticPolicy(body, spec));
  const api::ElasticPolicy policy(body);
  const bool own = policy.backend == "c10d" && policy.host.empty() && !policy.standalone;
  ReplicaSpec& chief = spec.replicas.front();
  if (spec.elastic && own && StartsLauncher(chief.pod_template)) chief.vital = 1;
  return spec;
}

json::Object PyTorchJobKind::Labels(const JobMember& member) const {
  std::string type = ToLower(member.role.type);
  std::string number = std::to_string(member.index);
  std::string_view name = api::Name(member.job);
  json::Object labels{{"group-name", "kubeflow.org"},
                      {"job-name", name},
                      {"pytorch-job-name", name},
                      {"controller-name", "pytorch-operator"},
                      {"pytorch-replica-type", type},
                      {"pytorch-replica-index", number},
                      {"training.kubeflow.org/job-name", name},
                      {"training.kubeflow.org/operator-name", "pytorchjob-controller"},
                      {"training.kubeflow.org/replica-type", type},
                      {"training.kubeflow.org/replica-index", number}};
  if (member.role.type == kMaster) {
    labels["job-role"] = "master";
    labels["training.kubeflow.org/job-role"] = "master";
  }
  return labels;
}

// torchrun reads its options from PET_*: a rendezvous instead of ranks.
void PrepareElastic(const json::Value& job,
                    const JobSpec& spec,
                    std::string_view leader,
                    json::Value& pod) {
  const api::ElasticPolicy policy(api::Spec(job));
  RendezvousEnv env;
  env.backend = policy.backend;
  env.endpoint =
      StrCat(policy.host.empty() ? leader : policy.host, ":", policy.port.value_or(kLaunchPort));
  env.id = policy.id.empty() ? api::Name(job) : policy.id;
  env.nodes_min = spec.min_available.value_or(1);
  env.nodes_max = std::max(policy.bounds.most.value_or(spec.TotalReplicas()), spec.TotalReplicas());
  env.max_restarts = policy.max_restarts;
  const int64_t of_job = json::GetInt(job, {"spec", "nprocPerNode"}, 1);
  env.nproc_per_node = std::to_string(policy.processes_per_node.value_or(of_job));
  for (const auto& [key, value] : policy.options) {
    env.conf += StrCat(env.conf.empty() ? "" : ",", key, "=", value);
  }
  env.standalone = policy.standalone;
  SetRendezvousEnv(pod, env);
}

void PyTorchJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const json::Value& job = member.job;
  const JobSpec& spec = member.spec;
  const std::string leader = ReplicaName(api::Name(job), spec.replicas.front().type, 0);
  const int64_t rank = member.rank();
  const bool leads = rank == 0;
  const int64_t port = PyTorchPort(job, spec, options_);
  if (leads) AddContainerPort(pod, kPyTorchPortName, port);
  SetEnv(pod, "PYTHONUNBUFFERED", "1");
  const RankEnv ranks{
      .leader = leader, .leads = leads, .port = port, .rank = rank, .world = spec.TotalReplicas()};
  SetRankEnv(pod, ranks);
  if (spec.elastic) return PrepareElastic(job, spec, leader, pod);
  const json::Value* per_node = json::Find(job, {"spec", "nprocPerNode"});
  if (per_node != nullptr) {
    std::string count = per_node->is_string() ? std::string(json::View(per_node->get_string()))
                                              : json::Print(*per_node);
    SetEnv(pod, "PET_NPROC_PER_NODE", count);
  }
  if (per_node != nullptr || spec.TotalReplicas() > 1) SetNodeEnv(pod, ranks);
}

std::vector<json::Value> PyTorchJobKind::Services(const json::Value& job,
                                                  const JobSpec& spec) const {
  // The leader's pods alone are looked up by name, as in Kubeflow's operator.
  const ReplicaSpec& chief = spec.replicas.front();
  std::string name = ReplicaName(api::Name(job), chief.type, 0);
  return {LeaderService(name, Labels({job, spec, chief, 0}), kPyTorchPortName,
                        PyTorchPort(job, spec, options_))};
}

bool PyTorchJobKind::Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  if (spec.replicas.front().type == kMaster) return counts.front().succeeded > 0;
  // Members that were preempted or found no place have missed the end; nobody waits for them.
  if (spec.elastic) return counts.front().succeeded > 0 && counts.front().running == 0;
  return counts.front().succeeded == spec.replicas.front().replicas;
}

bool PyTorchJobKind::Running(const JobSpec&, const std::vector<ReplicaCount>& counts) const {
  return counts.front().running > 0;
}

}  // namespace

Status ReadPyTorchRoles(const json::Value& body, JobSpec& spec) {
  return ReadRoles(body, "pytorchReplicaSpecs", {{kMaster, 1}, {kWorker}},
                   RestartPolicy::kOnFailure, spec);
}

namespace {

constexpr int64_t kPortMax = 65'535;

// Where members meet, how many processes each of them has, how often they may start anew.
Status CheckLaunch(const json::Value& policy) {
  struct Bound {
    std::string_view name;
    int64_t least, most;
  };
  constexpr Bound kBounds[] = {
      {"rdzvPort", 1, kPortMax}, {"nProcPerNode", 1, kReplicasMax}, {"maxRestarts", 0, INT32_MAX}};
  for (const auto& [name, least, most] : kBounds) {
    const int64_t number = json::GetInt(policy, {name}, least);
    if (number >= least && number <= most) continue;
    return controllers::WrongField(StrCat("spec.elasticPolicy.", name), number,
                                   StrCat("must be between ", least, " and ", most));
  }
  const std::string_view endpoint = json::GetString(policy, {"rdzvEndpoint"});
  const size_t colon = endpoint.rfind(':');
  if (colon != std::string_view::npos && !endpoint.ends_with(']')) {
    const auto port = ParseInt(endpoint.substr(colon + 1));
    if (!port || *port < 1 || *port > kPortMax) {
      return controllers::WrongText(
          "spec.elasticPolicy.rdzvEndpoint", endpoint,
          StrCat("must be HOST or HOST:PORT, the port between 1 and ", kPortMax));
    }
  }
  return Status::Ok();
}

}  // namespace

Status ReadElasticPolicy(const json::Value& body, JobSpec& spec) {
  const api::ElasticPolicy policy(body);
  if (!policy.given) return Status::Ok();
  const std::string_view backend = policy.backend;
  if (backend != "c10d" && backend != "etcd" && backend != "etcd-v2") {
    return controllers::WrongField("spec.elasticPolicy.rdzvBackend",
                                   StrCat("Unsupported value: ", Quote(backend),
                                          ": supported values: \"c10d\", \"etcd\", \"etcd-v2\""));
  }
  SWELL_RETURN_IF_ERROR(CheckLaunch(*json::Find(body, {"elasticPolicy"})));
  return ReadWorkerBounds(body, spec);
}

int64_t PyTorchPort(const json::Value& job, const JobSpec& spec, const JobKindOptions& options) {
  const int64_t given =
      api::NamedPort(spec.replicas.front().pod_template, kPyTorchPortName).value_or(0);
  return LaunchPort(job, given, options.host_network);
}

std::unique_ptr<JobKind> MakePyTorchJobKind(const JobKindOptions& options) {
  return std::make_unique<PyTorchJobKind>(options);
}

void AddPytorchJobs(const JobKindOptions& options, JobKindList& kinds) {
  kinds.push_back({MakePyTorchJobKind(options), nullptr, autoscaling::PyTorchTargetRole});
}

}  // namespace swell::jobs
