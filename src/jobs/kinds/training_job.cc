#include "jobs/kinds/training_job.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_env.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;
using controllers::WrongField;

constexpr std::string_view kPortName = "rendezvous";

class TrainingJobKind final : public JobKind {
 public:
  explicit TrainingJobKind(const JobKindOptions& options) : options_(options) {}

  client::Resource resource() const override { return client::resources::kTrainingJobs; }
  std::string kind() const override { return "TrainingJob"; }
  bool has_phase() const override { return true; }
  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  bool Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;

 private:
  JobKindOptions options_;
};

// How many of the role must run together: all of them, unless it may shrink.
Status ReadElastic(const json::Value& role, const std::string& field, ReplicaSpec& replica) {
  replica.min_member = replica.replicas;
  replica.requested = replica.replicas;
  const json::Value* elastic = json::Find(role, {"elastic"});
  if (elastic == nullptr) return Status::Ok();
  const api::ReplicaBounds bounds(*elastic);
  const int64_t least = bounds.least;
  const int64_t most = bounds.most.value_or(std::max(replica.replicas, least));
  if (least < 0 || least > most) {
    return WrongField(field + ".elastic.minReplicas", least,
                      StrCat("must be between 0 and maxReplicas, ", most));
  }
  if (most > kReplicasMax) {
    return WrongField(field + ".elastic.maxReplicas", most,
                      StrCat("must be at most ", kReplicasMax));
  }
  replica.replicas = std::clamp(replica.replicas, least, most);
  replica.min_member = least;
  if (least < most) replica.max_member = most;
  return Status::Ok();
}

Result<ReplicaSpec> ReadRole(std::string_view name, const json::Value& role) {
  const std::string field = StrCat("spec.roles.", name);
  if (std::string wrong = api::CheckDnsLabel(name); !wrong.empty()) {
    return controllers::WrongText(field, name, wrong);
  }
  SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadReplicaSpec(field, name, role, {}));
  SWELL_RETURN_IF_ERROR(ReadElastic(role, field, replica));
  const std::string_view priority = json::GetString(role, {"priorityClassName"});
  if (!priority.empty()) {
    SWELL_ASSIGN_OR_RETURN(replica.priority,
                           ReadPriorityShare(field + ".priorityClassName", priority));
  }
  return replica;
}

void ReadPreemption(const json::Value& body, JobSpec& spec) {
  if (const json::Value* topology = json::Find(body, {"topology"})) {
    spec.group_fields["topology"] = *topology;
  }
  for (std::string_view field : {"preemptibility", "preemptUnit", "minRuntimeSeconds"}) {
    if (const json::Value* value = json::Find(body, {"preemption", field})) {
      spec.group_fields[field] = *value;
    }
  }
  if (json::GetString(body, {"preemption", "onPreemption"}) == "Fail") {
    spec.on_preemption = OnPreemption::kFail;
  }
}

Status CheckBatch(const json::Value& body) {
  const json::Value* batch = json::Find(body, {"batch"});
  if (batch == nullptr) return Status::Ok();
  const bool chosen = json::GetString(*batch, {"effective"}) == "Goodput";
  const bool bounded = json::Find(*batch, {"max"}) != nullptr;
  if (chosen && !bounded) {
    return WrongField("spec.batch.max",
                      "Required value: the largest batch that effective Goodput may choose");
  }
  if (bounded && !chosen) {
    return WrongField("spec.batch.max", "Forbidden: only effective Goodput chooses the batch");
  }
  return Status::Ok();
}

Result<JobSpec> TrainingJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  JobSpec spec;
  for (const auto& role : json::GetObject(body, {"roles"})) {
    SWELL_ASSIGN_OR_RETURN(
        ReplicaSpec replica,
        ReadRole(std::string_view(role.key().data(), role.key().size()), role.value()));
    spec.elastic = spec.elastic || replica.max_member;
    if (replica.replicas > 0) spec.replicas.push_back(std::move(replica));
  }
  if (spec.replicas.empty()) {
    return WrongField("spec.roles", "Invalid value: must have a role with replicas");
  }
  SWELL_RETURN_IF_ERROR(CheckBatch(body));
  std::sort(spec.replicas.begin(), spec.replicas.end(),
            [](const ReplicaSpec& a, const ReplicaSpec& b) {
              return std::tuple(!api::IsLeadingRole(a.type), a.type) <
                     std::tuple(!api::IsLeadingRole(b.type), b.type);
            });
  int64_t least = 0;
  for (const ReplicaSpec& replica : spec.replicas) least += *replica.min_member;
  spec.min_available = least;
  spec.project = json::GetString(body, {"project"});
  spec.priority_class = json::GetString(body, {"priorityClassName"});
  ReadRunPolicy(body, spec);
  ReadPreemption(body, spec);
  const bool own = json::GetString(body, {"rendezvous", "backend"}, "c10d") == "c10d" &&
                   json::Find(body, {"rendezvous", "endpoint"}) == nullptr;
  ReplicaSpec& chief = spec.replicas.front();
  if (spec.elastic && own && StartsLauncher(chief.pod_template)) chief.vital = 1;
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  SWELL_RETURN_IF_ERROR(spec.GangClass().status());
  return spec;
}

json::Object TrainingJobKind::Labels(const JobMember& member) const {
  json::Object labels{{api::keys::kJobName, api::Name(member.job)},
                      {api::keys::kJobRole, ToLower(member.role.type)},
                      {api::keys::kJobIndex, std::to_string(member.index)}};
  std::string_view workload = api::Label(member.job, api::keys::kWorkload);
  if (!workload.empty()) labels[api::keys::kWorkload] = workload;
  return labels;
}

// What the job says about its batch when its size changes, for the SDK.
void SetBatchEnv(const json::Value& job, json::Value& pod) {
  const json::Value* batch = json::Find(job, {"spec", "batch"});
  if (batch == nullptr) return;
  std::string_view effective = json::GetString(*batch, {"effective"}, "Constant");
  SetEnv(pod, "SWELL_BATCH_OF",
         effective == "PerReplica" ? "rank"
         : effective == "Goodput"  ? "goodput"
                                   : "job");
  if (effective == "Goodput") {
    SetEnv(pod, "SWELL_BATCH_MAX", std::to_string(json::GetInt(*batch, {"max"})));
  }
  SetEnv(pod, "SWELL_LEARNING_RATE", ToLower(json::GetString(*batch, {"learningRate"}, "None")));
}

// How the job saves itself: where and how often for the SDK, how long for the node agent.
void SetCheckpointPolicy(const json::Value& job, json::Value& pod) {
  const json::Value* policy = json::Find(job, {"spec", "checkpoint"});
  if (policy == nullptr) return;
  const std::string_view directory = json::GetString(*policy, {"directory"});
  if (!directory.empty()) SetEnv(pod, "SWELL_CHECKPOINT_DIR", directory);
  if (const int64_t seconds = json::GetInt(*policy, {"intervalSeconds"}); seconds > 0) {
    SetEnv(pod, "SWELL_CHECKPOINT_SECONDS", std::to_string(seconds));
  }
  const json::Value* grace = json::Find(*policy, {"graceSeconds"});
  if (grace != nullptr && !json::Find(pod, {"spec", "terminationGracePeriodSeconds"})) {
    json::Set(pod, {"spec", "terminationGracePeriodSeconds"}, *grace);
  }
}

// "4", 4 or nothing.
std::string NprocOf(const json::Value& job) {
  const json::Value* value = json::Find(job, {"spec", "rendezvous", "nprocPerNode"});
  if (value == nullptr) return "1";
  return value->is_string() ? std::string(json::View(value->get_string())) : json::Print(*value);
}

void TrainingJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const json::Value& job = member.job;
  const JobSpec& spec = member.spec;
  SetEnv(pod, "PYTHONUNBUFFERED", "1");
  SetBatchEnv(job, pod);
  SetCheckpointPolicy(job, pod);
  const json::Value* rendezvous = json::Find(job, {"spec", "rendezvous"});
  // One process alone has nobody to meet.
  if (!spec.elastic && spec.TotalReplicas() == 1 && rendezvous == nullptr) return;
  const ReplicaSpec& chief = spec.replicas.front();
  std::string leader = ReplicaName(api::Name(job), chief.type, 0);
  int64_t port = LaunchPort(job, 0, options_.host_network);
  const int64_t rank = member.rank();
  if (rank == 0) AddContainerPort(pod, kPortName, port);
  const RankEnv ranks{.leader = leader,
                      .leads = rank == 0,
                      .port = port,
                      .rank = rank,
                      .world = spec.TotalReplicas()};
  SetRankEnv(pod, ranks);
  if (!spec.elastic && rendezvous == nullptr) return SetNodeEnv(pod, ranks);
  RendezvousEnv env{.nodes_max = 0};
  env.endpoint = StrCat(leader, ":", port);
  env.id = api::Name(job);
  env.nodes_min = std::max<int64_t>(1, spec.min_available.value_or(1));
  // What it may grow to counts: a process that runs on is not told of a new number.
  for (const ReplicaSpec& one : spec.replicas)
    env.nodes_max += one.max_member.value_or(one.replicas);
  env.nproc_per_node = NprocOf(job);
  if (rendezvous != nullptr) {
    env.backend = json::GetString(*rendezvous, {"backend"}, "c10d");
    env.endpoint = json::GetString(*rendezvous, {"endpoint"}, env.endpoint);
    env.max_restarts = json::GetInt(*rendezvous, {"maxRestarts"}, env.max_restarts);
  }
  SetRendezvousEnv(pod, env);
}

std::vector<json::Value> TrainingJobKind::Services(const json::Value& job,
                                                   const JobSpec& spec) const {
  if (spec.TotalReplicas() == 1 && !spec.elastic) return {};
  const ReplicaSpec& chief = spec.replicas.front();
  return {LeaderService(ReplicaName(api::Name(job), chief.type, 0), Labels({job, spec, chief, 0}),
                        kPortName, LaunchPort(job, 0, options_.host_network))};
}

bool TrainingJobKind::Succeeded(const JobSpec& spec,
                                const std::vector<ReplicaCount>& counts) const {
  const ReplicaSpec& chief = spec.replicas.front();
  if (api::IsLeadingRole(chief.type)) return counts.front().succeeded > 0;
  if (spec.elastic) {
    // Members that found no place have missed the end; nobody waits for them.
    return counts.front().succeeded > 0 && counts.front().running == 0;
  }
  return std::equal(
      spec.replicas.begin(), spec.replicas.end(), counts.begin(), counts.end(),
      [](const ReplicaSpec& role, const ReplicaCount& n) { return n.succeeded == role.replicas; });
}

bool TrainingJobKind::Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  int64_t running = 0, succeeded = 0;
  for (const ReplicaCount& count : counts) {
    running += count.running;
    succeeded += count.succeeded;
  }
  return running > 0 && running + succeeded >= spec.min_available.value_or(1);
}

}  // namespace

std::unique_ptr<JobKind> MakeTrainingJobKind(const JobKindOptions& options) {
  return std::make_unique<TrainingJobKind>(options);
}

void AddTrainingJobs(const JobKindOptions& options, JobKindList& kinds) {
  kinds.push_back({MakeTrainingJobKind(options), autoscaling::TrainingScaleTarget,
                   autoscaling::TrainingTargetRole, autoscaling::TrainingGoodputRole});
}

}  // namespace swell::jobs
