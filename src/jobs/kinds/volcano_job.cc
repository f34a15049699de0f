// Volcano's Job (batch.volcano.sh/v1alpha1): tasks that run as a gang, with policies that say what
// follows when a pod fails or a task completes. Source: https://volcano.sh/en/docs/vcjob.
#include <algorithm>
#include <string>

#include "base/strings.h"
#include "jobs/kinds/job_kinds.h"
#include "jobs/kinds/launch_env.h"
#include "jobs/kinds/volcano_plugins.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/pod_env.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

using controllers::SetEnv;
using controllers::WrongField;

constexpr int64_t kRetriesUsual = 3;
constexpr std::string_view kQueueUsual = "default";

// What a policy does to a pod that fails, to a task that completes, or to a job that loses a pod.
struct Policies {
  std::vector<FailurePolicy> on_failure;
  bool task_completes_job = false;
  bool eviction_fails_job = false;
};

Result<OnFailure> ReadAction(const std::string& field, std::string_view action) {
  if (action == "RestartJob") return OnFailure::kRestartJob;
  if (action == "RestartTask" || action == "RestartPod") return OnFailure::kReplace;
  if (action == "AbortJob" || action == "TerminateJob") return OnFailure::kFailJob;
  if (action == "CompleteJob") return OnFailure::kCompleteJob;
  return WrongField(StrCat(field, ".action"),
                    StrCat("Unsupported value: ", Quote(action),
                           ": supported values: \"AbortJob\", \"CompleteJob\", \"RestartJob\", "
                           "\"RestartPod\", \"RestartTask\", \"TerminateJob\""));
}

Status ReadEvent(const std::string& field,
                 std::string_view event,
                 std::string_view action,
                 Policies& out) {
  if (event == "TaskCompleted") {
    if (action == "CompleteJob") {
      out.task_completes_job = true;
      return Status::Ok();
    }
    return WrongField(StrCat(field, ".action"),
                      StrCat("Unsupported value: ", Quote(action),
                             ": for TaskCompleted the supported value is \"CompleteJob\""));
  }
  if (event != "PodFailed" && event != "PodEvicted" && event != "*") {
    return WrongField(StrCat(field, ".event"),
                      StrCat("Unsupported value: ", Quote(event), ": supported values: \"*\", ",
                             "\"PodEvicted\", \"PodFailed\", \"TaskCompleted\""));
  }
  SWELL_ASSIGN_OR_RETURN(const OnFailure follows, ReadAction(field, action));
  if (event != "PodFailed" && follows == OnFailure::kCompleteJob) {
    return WrongField(StrCat(field, ".action"),
                      StrCat("Unsupported value: ", Quote(action),
                             ": supported for an exitCode, PodFailed and TaskCompleted"));
  }
  if (event != "PodEvicted") out.on_failure.push_back({.action = follows});
  if (event != "PodFailed" && follows == OnFailure::kFailJob) out.eviction_fails_job = true;
  return Status::Ok();
}

Status ReadPolicies(const json::Value& holder, const std::string& path, Policies& out) {
  const json::Array& policies = json::GetArray(holder, {"policies"});
  for (size_t i = 0; i < policies.size(); ++i) {
    const std::string field = StrCat(path, ".policies[", i, "]");
    const std::string_view action = json::GetString(policies[i], {"action"});
    if (json::Find(policies[i], {"timeout"}) != nullptr) {
      return WrongField(field + ".timeout", "Forbidden: policies act at once here");
    }
    if (const json::Value* code = json::Find(policies[i], {"exitCode"})) {
      if (json::Find(policies[i], {"event"}) != nullptr ||
          json::Find(policies[i], {"events"}) != nullptr) {
        return WrongField(field + ".exitCode",
                          "Forbidden: a policy has an exitCode or an event, not both; write two "
                          "policies");
      }
      SWELL_ASSIGN_OR_RETURN(const OnFailure follows, ReadAction(field, action));
      out.on_failure.push_back({code->is_int64() ? code->get_int64() : 1, follows});
      continue;
    }
    std::vector<std::string_view> events;
    for (const json::Value& event : json::GetArray(policies[i], {"events"})) {
      if (event.is_string()) events.push_back(json::View(event.get_string()));
    }
    const std::string_view one = json::GetString(policies[i], {"event"});
    if (!one.empty()) events.push_back(one);
    if (events.empty()) return WrongField(field + ".event", "Required value");
    for (std::string_view event : events) {
      SWELL_RETURN_IF_ERROR(ReadEvent(field, event, action, out));
    }
  }
  return Status::Ok();
}

Status CheckVolumes(const json::Value& job) {
  const json::Array& volumes = json::GetArray(job, {"spec", "volumes"});
  for (size_t i = 0; i < volumes.size(); ++i) {
    const std::string field = StrCat("spec.volumes[", i, "]");
    if (json::GetString(volumes[i], {"mountPath"}).empty()) {
      return WrongField(field + ".mountPath", "Required value");
    }
    if (json::GetString(volumes[i], {"volumeClaimName"}).empty()) {
      return WrongField(
          field + ".volumeClaimName",
          "Required value: create the claim first; no claim is made from volumeClaim");
    }
  }
  return Status::Ok();
}

Result<ReplicaSpec> ReadTask(const json::Value& task, size_t index, const Policies& of_job) {
  const std::string field = StrCat("spec.tasks[", index, "]");
  // Volcano's API server names tasks without a name so.
  const std::string name(json::GetString(task, {"name"}, StrCat("default", index)));
  if (std::string wrong = api::CheckDnsLabel(name); !wrong.empty()) {
    return controllers::WrongText(field + ".name", name, wrong);
  }
  if (json::Find(task, {"dependsOn"}) != nullptr) {
    return WrongField(field + ".dependsOn",
                      "Forbidden: tasks of a job start together here; leave it out, and let the "
                      "command wait until the others answer");
  }
  if (json::Find(task, {"partitionPolicy"}) != nullptr) {
    return WrongField(field + ".partitionPolicy",
                      "Forbidden: a task's pods are one part here; leave it out");
  }
  const std::string_view numa = json::GetString(task, {"topologyPolicy"}, "none");
  if (numa != "none" && !numa.empty()) {
    return WrongField(field + ".topologyPolicy",
                      "Forbidden: pods are not placed by a node's NUMA topology; leave it out");
  }
  SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadReplicaSpec(field, name, task, {}));
  replica.restart_policy = ParseRestartPolicy(
      json::GetString(task, {"template", "spec", "restartPolicy"}), RestartPolicy::kNever);
  if (const json::Value* least = json::Find(task, {"minAvailable"})) {
    replica.min_member = least->is_int64() ? least->get_int64() : replica.replicas;
    if (*replica.min_member < 0 || *replica.min_member > replica.replicas) {
      return WrongField(field + ".minAvailable", *replica.min_member,
                        StrCat("must be between 0 and replicas, ", replica.replicas));
    }
  }
  Policies own;
  SWELL_RETURN_IF_ERROR(ReadPolicies(task, field, own));
  replica.completes_job = own.task_completes_job;
  replica.on_failure = own.on_failure;
  replica.on_failure.insert(replica.on_failure.end(), of_job.on_failure.begin(),
                            of_job.on_failure.end());
  return replica;
}

class VolcanoJobKind final : public JobKind {
 public:
  explicit VolcanoJobKind(const JobKindOptions& options) : options_(options) {}

  client::Resource resource() const override {
    return {"batch.volcano.sh", "v1alpha1", "jobs", true};
  }
  std::string kind() const override { return "Job"; }
  Result<JobSpec> Read(const json::Value& job) const override;
  json::Object Labels(const JobMember& member) const override;
  void PreparePod(const JobMember& member, json::Value& pod) const override;
  std::vector<json::Value> Services(const json::Value& job, const JobSpec& spec) const override;
  Result<std::vector<json::Value>> Dependents(const json::Value& job,
                                              const JobSpec& spec) const override;
  bool Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
  bool Failed(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const override;
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
  const JobKindOptions options_;
};

Result<JobSpec> VolcanoJobKind::Read(const json::Value& job) const {
  const json::Value& body = api::Spec(job);
  JobSpec spec;
  SWELL_RETURN_IF_ERROR(CheckVolcanoPlugins(job));
  SWELL_RETURN_IF_ERROR(CheckVolumes(job));
  Policies policies;
  SWELL_RETURN_IF_ERROR(ReadPolicies(body, "spec", policies));
  const json::Array& tasks = json::GetArray(body, {"tasks"});
  for (size_t i = 0; i < tasks.size(); ++i) {
    SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica, ReadTask(tasks[i], i, policies));
    if (spec.Find(replica.type) != nullptr) {
      return WrongField(StrCat("spec.tasks[", i, "].name"),
                        StrCat("Duplicate value: ", Quote(replica.type)));
    }
    if (replica.replicas > 0) spec.replicas.push_back(std::move(replica));
  }
  if (spec.replicas.empty()) {
    return WrongField("spec.tasks", "Required value: a job has at least one task with replicas");
  }
  if (const json::Value* least = json::Find(body, {"minAvailable"}); least && least->is_int64()) {
    spec.min_available = least->get_int64();
    if (*spec.min_available < 0 || *spec.min_available > spec.TotalReplicas()) {
      return WrongField(
          "spec.minAvailable", *spec.min_available,
          StrCat("must be between 0 and the tasks' replicas, ", spec.TotalReplicas()));
    }
  }
  if (const json::Value* enough = json::Find(body, {"minSuccess"}); enough && enough->is_int64()) {
    spec.min_success = enough->get_int64();
  }
  ReadRunPolicy(body, spec);
  spec.clean_pod_policy = CleanPodPolicy::kRunning;
  spec.backoff_limit = json::GetInt(body, {"maxRetry"}, kRetriesUsual);
  spec.priority_class = json::GetString(body, {"priorityClassName"});
  spec.project = api::ProjectOfQueue(body);
  if (policies.eviction_fails_job) spec.on_preemption = OnPreemption::kFail;
  SWELL_RETURN_IF_ERROR(ReadSwellHints(job, spec));
  return spec;
}

json::Object VolcanoJobKind::Labels(const JobMember& member) const {
  return {{"volcano.sh/job-name", api::Name(member.job)},
          {"volcano.sh/job-namespace", api::Namespace(member.job)},
          {"volcano.sh/task-spec", member.role.type},
          {"volcano.sh/task-index", std::to_string(member.index)},
          {"volcano.sh/queue-name", json::GetString(member.job, {"spec", "queue"}, kQueueUsual)}};
}

void VolcanoJobKind::PreparePod(const JobMember& member, json::Value& pod) const {
  const json::Value& job = member.job;
  // Not Volcano's scheduler, which the manifest may name.
  json::Set(pod, {"spec", "schedulerName"}, "swell");
  if (json::Find(pod, {"spec", "subdomain"}) == nullptr) {
    json::Set(pod, {"spec", "subdomain"}, api::Name(job));
  }
  SetEnv(pod, "PYTHONUNBUFFERED", "1");
  ApplyVolcanoPlugins(member, options_, pod);
  int number = 0;
  for (const json::Value& volume : json::GetArray(job, {"spec", "volumes"})) {
    MountVolume(
        pod,
        json::Object{{"name", StrCat("volcano-volume-", number++)},
                     {"persistentVolumeClaim",
                      json::Object{{"claimName", json::GetString(volume, {"volumeClaimName"})}}}},
        json::GetString(volume, {"mountPath"}), {"initContainers", "containers"});
  }
}

std::vector<json::Value> VolcanoJobKind::Services(const json::Value& job, const JobSpec&) const {
  json::Object selector{{"volcano.sh/job-name", api::Name(job)},
                        {"volcano.sh/job-namespace", api::Namespace(job)}};
  return {LeaderService(api::Name(job), std::move(selector), "job", kLaunchPort)};
}

Result<std::vector<json::Value>> VolcanoJobKind::Dependents(const json::Value& job,
                                                            const JobSpec& spec) const {
  return VolcanoPluginObjects(job, spec, options_);
}

struct Totals {
  int64_t running = 0, succeeded = 0, failed = 0;
};

Totals Sum(const std::vector<ReplicaCount>& counts) {
  Totals sum;
  for (const ReplicaCount& count : counts) {
    sum.running += count.running;
    sum.succeeded += count.succeeded;
    sum.failed += count.failed;
  }
  return sum;
}

bool VolcanoJobKind::Succeeded(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  for (size_t i = 0; i < spec.replicas.size(); ++i) {
    const ReplicaSpec& task = spec.replicas[i];
    if (task.completes_job && counts[i].succeeded == task.replicas) return true;
  }
  const Totals sum = Sum(counts);
  if (spec.min_success) return sum.succeeded >= *spec.min_success;
  return sum.succeeded + sum.failed == spec.TotalReplicas() &&
         sum.succeeded >= spec.min_available.value_or(spec.TotalReplicas());
}

bool VolcanoJobKind::Failed(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  const Totals sum = Sum(counts);
  return sum.succeeded + sum.failed == spec.TotalReplicas() && !Succeeded(spec, counts);
}

bool VolcanoJobKind::Running(const JobSpec& spec, const std::vector<ReplicaCount>& counts) const {
  const Totals sum = Sum(counts);
  return sum.running > 0 && sum.running + sum.succeeded + sum.failed >=
                                spec.min_available.value_or(spec.TotalReplicas());
}

OnFailure VolcanoJobKind::ClassifyFailure(const ReplicaSpec& replica,
                                          const ReplicaCount&,
                                          const json::Value& pod,
                                          int64_t) const {
  if (controllers::FailedByCluster(pod) || controllers::WasDisrupted(pod))
    return OnFailure::kAsUsual;
  const std::optional<int64_t> code = controllers::ExitCode(pod);
  for (const FailurePolicy& policy : replica.on_failure) {
    if (!policy.exit_code || policy.exit_code == code) return policy.action;
  }
  return OnFailure::kIgnore;
}

std::string_view PhaseOf(const json::Value& status) {
  struct Row {
    std::string_view condition, phase;
  };
  for (const Row& row :
       {Row{"Succeeded", "Completed"}, Row{"Failed", "Failed"}, Row{"Preempted", "Restarting"},
        Row{"Restarting", "Restarting"}, Row{"Running", "Running"}}) {
    if (api::ConditionIsTrueIn(status, row.condition)) return row.phase;
  }
  return "Pending";
}

void VolcanoJobKind::FillStatus(const json::Value& job,
                                const JobSpec& spec,
                                const std::vector<ReplicaCount>& counts,
                                WallTime now,
                                json::Value& status) const {
  const std::string_view phase = PhaseOf(status);
  if (json::GetString(status, {"state", "phase"}) != phase) {
    json::Set(status, {"state"},
              json::Object{{"phase", phase}, {"lastTransitionTime", api::FormatTime(now)}});
  }
  const Totals sum = Sum(counts);
  int64_t active = 0;
  json::Object tasks;
  for (size_t i = 0; i < spec.replicas.size(); ++i) {
    const ReplicaCount& count = counts[i];
    active += count.active;
    json::Object phases;
    for (const auto& [name, number] :
         {std::pair{"Pending", count.active - count.running}, std::pair{"Running", count.running},
          std::pair{"Succeeded", count.succeeded}, std::pair{"Failed", count.failed}}) {
      if (number > 0) phases[name] = number;
    }
    tasks[spec.replicas[i].type] = json::Object{{"phase", std::move(phases)}};
  }
  json::Set(status, {"minAvailable"}, spec.min_available.value_or(spec.TotalReplicas()));
  json::Set(status, {"pending"}, active - sum.running);
  json::Set(status, {"running"}, sum.running);
  json::Set(status, {"succeeded"}, sum.succeeded);
  json::Set(status, {"failed"}, sum.failed);
  json::Set(status, {"taskStatusCount"}, std::move(tasks));
  json::Set(status, {"retryCount"},
            ParseInt(api::Annotation(job, api::keys::kRestarts)).value_or(0));
}

}  // namespace

void AddVolcanoJobs(const JobKindOptions& options, JobKindList& kinds) {
  kinds.push_back({std::make_unique<VolcanoJobKind>(options), nullptr, nullptr});
}

}  // namespace swell::jobs
