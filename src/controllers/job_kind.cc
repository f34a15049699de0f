#include "controllers/job_kind.h"

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/context.h"

namespace swell::controllers {
namespace {

void ReadOptional(const json::Value& policy, std::string_view field, std::optional<int64_t>& to) {
  const json::Value* value = json::Find(policy, {field});
  if (value != nullptr && value->is_number()) to = json::GetInt(policy, {field});
}

}  // namespace

int64_t JobSpec::TotalReplicas() const {
  int64_t total = 0;
  for (const ReplicaSpec& replica : replicas) total += replica.replicas;
  return total;
}

const ReplicaSpec* JobSpec::Find(std::string_view type) const {
  for (const ReplicaSpec& replica : replicas) {
    if (replica.type == type) return &replica;
  }
  return nullptr;
}

std::string ReplicaSpec::PodName(std::string_view job, int64_t index) const {
  if (pod_name.empty()) return ReplicaName(job, type, index);
  return numbered ? StrCat(pod_name, "-", index) : pod_name;
}

JobKind::OnFailure JobKind::Judge(const ReplicaSpec&,
                                  const ReplicaCount&,
                                  const json::Value&,
                                  int64_t) const {
  return OnFailure::kAsUsual;
}

std::string JobKind::Reason(std::string_view what) const { return StrCat(kind(), what); }

const json::Value& SpecOf(const json::Value& job) {
  static const json::Value kNone = json::Object{};
  const json::Value* found = json::Find(job, {"spec"});
  return found ? *found : kNone;
}

Status WrongField(std::string_view field, std::string_view message) {
  return Status(Code::kInvalid, StrCat(field, ": ", message));
}

Status WrongField(std::string_view field, int64_t value, std::string_view message) {
  return WrongField(field, StrCat("Invalid value: ", value, ": ", message));
}

Result<ReplicaSpec> ReadReplicaSpec(std::string_view field,
                                    std::string_view type,
                                    const json::Value& role,
                                    const RoleRules& rules) {
  ReplicaSpec replica;
  replica.type = type;
  replica.replicas = json::GetInt(role, {"replicas"}, 1);
  if (replica.replicas < rules.least || replica.replicas > rules.most) {
    return WrongField(StrCat(field, ".replicas"), replica.replicas,
                      rules.most == 1
                          ? StrCat("there must be one ", type)
                          : StrCat("must be between ", rules.least, " and ", rules.most));
  }
  replica.restart_policy =
      ParseRestartPolicy(json::GetString(role, {"restartPolicy"}), rules.restart_policy);
  const json::Value* pod_template = json::Find(role, {"template"});
  if (pod_template == nullptr || json::GetArray(*pod_template, {"spec", "containers"}).empty()) {
    return WrongField(StrCat(field, ".template.spec.containers"), "Required value");
  }
  replica.pod_template = *pod_template;
  return replica;
}

RestartPolicy ParseRestartPolicy(std::string_view text, RestartPolicy fallback) {
  if (text == "Never") return RestartPolicy::kNever;
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  if (text == "Always") return RestartPolicy::kAlways;
  if (text == "ExitCode") return RestartPolicy::kExitCode;
  return fallback;
}

CleanPodPolicy ParseCleanPodPolicy(std::string_view text, CleanPodPolicy fallback) {
  if (text == "None") return CleanPodPolicy::kNone;
  if (text == "Running") return CleanPodPolicy::kRunning;
  if (text == "All") return CleanPodPolicy::kAll;
  return fallback;
}

void ReadRunPolicy(const json::Value& policy, JobSpec& spec) {
  spec.clean_pod_policy =
      ParseCleanPodPolicy(json::GetString(policy, {"cleanPodPolicy"}), spec.clean_pod_policy);
  ReadOptional(policy, "ttlSecondsAfterFinished", spec.ttl_seconds_after_finished);
  ReadOptional(policy, "activeDeadlineSeconds", spec.active_deadline_seconds);
  ReadOptional(policy, "backoffLimit", spec.backoff_limit);
  spec.suspend = json::GetBool(policy, {"suspend"}, spec.suspend);
  if (const json::Value* scheduling = json::Find(policy, {"schedulingPolicy"})) {
    ReadOptional(*scheduling, "minAvailable", spec.min_available);
    spec.priority_class = json::GetString(*scheduling, {"priorityClass"}, spec.priority_class);
    spec.project = json::GetString(*scheduling, {"queue"}, spec.project);
  }
}

void ReadSwellHints(const json::Value& job, JobSpec& spec) {
  std::string_view project = api::Label(job, keys::kProject);
  if (!project.empty()) spec.project = project;
  std::string_view on_preemption = api::Annotation(job, keys::kOnPreemption);
  if (ToLower(on_preemption) == "fail") spec.on_preemption = OnPreemption::kFail;
  if (!spec.priority_class.empty()) return;
  for (const ReplicaSpec& replica : spec.replicas) {
    spec.priority_class = json::GetString(replica.pod_template, {"spec", "priorityClassName"});
    if (!spec.priority_class.empty()) return;
  }
}

std::string ReplicaName(std::string_view job, std::string_view type, int64_t index) {
  return StrCat(job, "-", ToLower(type), "-", index);
}

void SetEnv(json::Value& pod, std::string_view name, std::string_view value) {
  for (std::string_view list : {"initContainers", "containers"}) {
    json::Value* containers = json::FindMutable(pod, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (json::Value& container : containers->get_array()) {
      json::Value* env = json::FindMutable(container, {"env"});
      if (env == nullptr || !env->is_array()) env = &json::Set(container, {"env"}, json::Array{});
      bool present = false;
      for (const json::Value& entry : env->get_array()) {
        present = present || json::GetString(entry, {"name"}) == name;
      }
      if (!present) env->get_array().push_back(json::Object{{"name", name}, {"value", value}});
    }
  }
}

}  // namespace swell::controllers
