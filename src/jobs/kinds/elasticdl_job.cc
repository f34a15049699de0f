#include "jobs/kinds/elasticdl_job.h"

#include <array>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_env.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;

constexpr std::string_view kMaster = "Master";
constexpr std::string_view kWorker = "Worker";
constexpr std::string_view kPs = "PS";
constexpr std::string_view kPortName = "job-master";
constexpr std::string_view kField = "spec.elasticdlReplicaSpecs.";
constexpr int64_t kMasterPort = 50001;
constexpr int64_t kKilled = 137;

class ElasticdlJobKind final : public JobKind {
 public:
  explicit ElasticdlJobKind(const JobKindOptions& options) : options_(options) {}

  client::Resource resource() const override {
    return {"elasticdl.org", "v1alpha1", "elasticdljobs", true};
  }
  std::string kind() const override { return "ElasticDLJob"; }
  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  bool Succeeded(const JobSpec&, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().succeeded > 0;
  }
  bool Running(const JobSpec&, const std::vector<ReplicaCount>& counts) const override {
    return counts.front().running > 0;
  }
  OnFailure ClassifyFailure(const ReplicaSpec& replica,
                            const ReplicaCount& count,
                            const json::Value& pod,
                            int64_t restarts) const override;

 private:
  int64_t Port(const json::Value& job) const {
    return LaunchPort(job, options_.host_network ? 0 : kMasterPort, options_.host_network);
  }

  JobKindOptions options_;
};

// A class, CLASS=PART, or a part alone: that of the class high. A class may be called 42.
Status ReadPriority(std::string_view field, std::string_view text, PriorityShare& share) {
  if (text.empty()) return Status::Ok();
  if (const auto part = ParsePart(text)) {
    share = {"high", *part};
    return Status::Ok();
  }
  SWELL_ASSIGN_OR_RETURN(share, ReadPriorityShare(field, text));
  return Status::Ok();
}

Result<ReplicaSpec> ReadRole(const json::Value& job,
                             std::string_view type,
                             const json::Value& role) {
  const std::string field = StrCat(kField, type);
  RoleRules rules{.restart_policy = RestartPolicy::kNever};
  if (type == kMaster) rules.least = rules.most = 1;
  SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadReplicaSpec(field, type, role, rules));
  replica.min_member = type == kMaster ? 1 : 0;
  replica.requested = replica.replicas;
  if (type == kWorker) replica.max_member = replica.replicas;
  replica.numbered = type != kMaster;
  replica.pod_name = StrCat("elasticdl-", ToLower(type), "-", api::Name(job));
  SWELL_RETURN_IF_ERROR(ReadPriority(field + ".priorityClassName",
                                     json::GetString(role, {"priorityClassName"}),
                                     replica.priority));
  return replica;
}

Result<JobSpec> ElasticdlJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  JobSpec spec;
  spec.elastic = true;
  spec.grouped = false;
  spec.min_available = 0;
  spec.clean_pod_policy = CleanPodPolicy::kRunning;
  for (std::string_view type : {kMaster, kPs, kWorker}) {
    const json::Value* role = json::Find(body, {"elasticdlReplicaSpecs", type});
    if (role == nullptr) continue;
    SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadRole(job, type, *role));
    replica.relaunches = json::GetInt(body, {"relaunchOnWorkerFailure"}, 1);
    if (replica.replicas > 0) spec.replicas.push_back(std::move(replica));
  }
  if (spec.Find(kMaster) == nullptr)
    return controllers::WrongField(StrCat(kField, kMaster), "Required value");
  ReadRunPolicy(body, spec);
  if (const json::Value* policy = json::Find(body, {"runPolicy"})) ReadRunPolicy(*policy, spec);
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  spec.priority_class.clear();  // each role has its own
  return spec;
}

json::Object ElasticdlJobKind::Labels(const JobMember& member) const {
  const json::Value& job = member.job;
  const std::string type = ToLower(member.role.type);
  const std::string number = std::to_string(member.index);
  return {{"app", "elasticdl"},
          {"elasticdl_job_name", api::Name(job)},
          {"elasticdl-job-name", api::Name(job)},
          {"elasticdl-replica-type", type},
          {"elasticdl-replica-index", number},
          {api::keys::kJobName, api::Name(job)},
          {api::keys::kJobRole, type},
          {api::keys::kJobIndex, number}};
}

// With 5 workers, 3 of them high, these are 0, 4 and 1.
bool IsHigh(int64_t index, int64_t replicas, int64_t high) {
  const int64_t front = (high + 1) / 2, back = high / 2;
  return index < front || index >= replicas - back;
}

// The class that `name` says.
std::string NamedClass(const json::Value& job, std::string_view name) {
  if (name == "high") {
    return std::string(json::GetString(job, {"spec", "highPriorityClassName"}, name));
  }
  if (name == "low") {
    return std::string(json::GetString(job, {"spec", "lowPriorityClassName"}, name));
  }
  return std::string(name);
}

std::string PriorityClass(const JobMember& member) {
  const PriorityShare& share = member.role.priority;
  const int64_t members = member.role.replicas;
  const bool high = IsHigh(member.index, members, ShareOf(share.part, members));
  return NamedClass(member.job, high ? std::string_view(share.priority_class) : "low");
}

void ElasticdlJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const json::Value& job = member.job;
  if (!member.role.priority.priority_class.empty()) {
    json::Set(pod, {"spec", "priorityClassName"}, PriorityClass(member));
  }
  const std::string master = member.spec.Find(kMaster)->PodName(api::Name(job), 0);
  const bool leads = member.role.type == kMaster;
  const int64_t port = Port(job);
  if (leads) AddContainerPort(pod, kPortName, port);
  SetEnv(pod, "PYTHONUNBUFFERED", "1");
  SetEnv(pod, "JOB_NAME", api::Name(job));
  SetEnv(pod, "SWELL_JOB_UID", api::Uid(job));
  SetEnv(pod, "MASTER_ADDR", StrCat(master, ":", port));
  SetEnv(pod, "ELASTICDL_PORT", std::to_string(port));
  SetEnv(pod, "POD_NAME", member.pod_name());
  const ReplicaSpec* workers = member.spec.Find(kWorker);
  SetEnv(pod, "WORKER_NUM", std::to_string(workers ? workers->replicas : 0));
  if (!leads) SetEnv(pod, "WORKER_ID", std::to_string(member.index));
}

std::vector<json::Value> ElasticdlJobKind::Services(const json::Value& job,
                                                    const JobSpec& spec) const {
  const ReplicaSpec& master = *spec.Find(kMaster);
  return {LeaderService(master.PodName(api::Name(job), 0), Labels({job, spec, master, 0}),
                        kPortName, Port(job))};
}

bool OutOfMemory(const json::Value& pod) {
  const std::vector<api::ContainerStatus> statuses = api::ContainerStatuses(pod);
  return std::any_of(statuses.begin(), statuses.end(), [](const api::ContainerStatus& status) {
    return status.reason == "OOMKilled";
  });
}

OnFailure ElasticdlJobKind::ClassifyFailure(const ReplicaSpec& replica,
                                            const ReplicaCount& count,
                                            const json::Value& pod,
                                            int64_t restarts) const {
  if (controllers::ExitCode(pod) == kKilled && !OutOfMemory(pod)) return OnFailure::kReplaceFree;
  if (controllers::FailedByCluster(pod) || controllers::WasDisrupted(pod) || api::IsDeleting(pod))
    return OnFailure::kAsUsual;
  if (replica.type == kMaster) return OnFailure::kAsUsual;
  if (restarts < replica.relaunches) return OnFailure::kReplace;
  return count.failed < replica.replicas ? OnFailure::kIgnore : OnFailure::kAsUsual;
}

}  // namespace

std::unique_ptr<JobKind> MakeElasticdlJobKind(const JobKindOptions& options) {
  return std::make_unique<ElasticdlJobKind>(options);
}

void AddElasticdlJobs(const JobKindOptions& options, JobKindList& kinds) {
  kinds.push_back({MakeElasticdlJobKind(options), nullptr, nullptr});
}

}  // namespace swell::jobs
