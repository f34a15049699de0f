#include "jobs/pass/job_members.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/gpus/gpu_hold.h"
#include "jobs/pass/failure_rules.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/gpu_type_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod_group.h"
#include "kube/api/objects/progress.h"

namespace swell::jobs {
namespace {

json::Value PodSets(const JobSpec& spec) {
  json::Array sets;
  bool by_role = std::any_of(spec.replicas.begin(), spec.replicas.end(),
                             [](const ReplicaSpec& replica) { return replica.min_member; });
  int64_t total = spec.TotalReplicas();
  int64_t need = std::min(spec.min_available.value_or(total), total);
  for (const ReplicaSpec& replica : spec.replicas) {
    int64_t min_member = std::min(need, replica.replicas);
    need -= min_member;
    if (by_role) {
      min_member = std::min(replica.min_member.value_or(replica.replicas), replica.replicas);
    }
    min_member = std::min(min_member, replica.replicas - replica.given_up);
    sets.push_back(json::Object{{"name", ToLower(replica.type)}, {"minMember", min_member}});
  }
  return sets;
}

// Members beyond the minimum whose class is not the gang's, as a group of their own.
json::Value SurplusSets(const JobSpec& spec) {
  json::Array sets;
  for (const ReplicaSpec& replica : spec.replicas) {
    sets.push_back(json::Object{{"name", ToLower(replica.type)}, {"minMember", 0}});
  }
  return sets;
}

// Members from this role's first one to the job's last.
int64_t Ordinals(const JobSpec& spec, const ReplicaSpec& replica) {
  int64_t left = 0;
  for (size_t i = spec.replicas.size(); i-- > 0;) {
    // An elastic role counts as many as it may have, so that members made later rank lower.
    left += spec.replicas[i].max_member.value_or(spec.replicas[i].replicas);
    if (spec.replicas[i].type == replica.type) break;
  }
  return left;
}

// 0: the job does not say.
int64_t HangSeconds(const json::Value& job) {
  const int64_t field = json::GetInt(job, {"spec", "health", "hangSeconds"});
  return field > 0 ? field : ParseInt(api::Annotation(job, api::keys::kHangSeconds)).value_or(0);
}

// The node then reports the end of a failed container's log, so that the job can say what it was.
void KeepLastWords(json::Value& pod) {
  for (std::string_view list : {"initContainers", "containers"}) {
    json::Value* found = json::FindMutable(pod, {"spec", list});
    if (found == nullptr || !found->is_array()) continue;
    for (json::Value& container : found->get_array()) {
      if (json::Find(container, {"terminationMessagePolicy"}) != nullptr) continue;
      json::Set(container, {"terminationMessagePolicy"}, "FallbackToLogsOnError");
    }
  }
}

// What the member's node and its controllers read on it.
void Annotate(const JobMember& member, json::Value& pod) {
  auto set = [&pod](std::string_view key, std::string_view value) {
    json::Set(pod, {"metadata", "annotations", key}, value);
  };
  auto drop = [&pod](std::string_view key) {
    if (!api::Annotation(pod, key).empty()) json::Remove(pod, {"metadata", "annotations", key});
  };
  const auto& [job, spec, role, index] = member;
  if (spec.elastic && api::Annotation(pod, api::keys::kMemberPriority).empty()) {
    // The first members are given up last: the others meet at the very first.
    set(api::keys::kMemberPriority, std::to_string(Ordinals(spec, role) - index));
  }
  if (spec.active_deadline_seconds) {
    set(api::keys::kMaxRunSeconds, std::to_string(*spec.active_deadline_seconds));
  }
  if (const int64_t bound = HangSeconds(job); bound > 0) {
    set(api::keys::kHangSeconds, std::to_string(bound));
  }
  // The job's author answers for its pods, and nobody else, whatever its templates say.
  for (std::string_view key : {api::keys::kUser, api::keys::kPodSecurity}) {
    const std::string_view of_job = api::Annotation(job, key);
    if (of_job.empty()) {
      drop(key);
    } else {
      set(key, of_job);
    }
  }
  if (const int64_t before = api::PreemptionCount(job); before > 0) {
    set(api::keys::kPreemptionsBefore, std::to_string(before));
  }
  // A request in a template would be repeated for ever.
  drop(api::keys::kJobRequest);
  drop(api::keys::kRequeues);
  const std::string_view requeues = api::Annotation(job, api::keys::kRequeues);
  if (!requeues.empty()) set(api::keys::kRequeues, requeues);
}

}  // namespace

json::Value MakeMember(const JobParts& parts, const ReplicaSpec& replica, int64_t index) {
  const JobSpec& spec = parts.spec;
  const JobMember member{parts.job, spec, replica, index};
  json::Value pod = replica.pod_template;
  json::Set(pod, {"apiVersion"}, "v1");
  json::Set(pod, {"kind"}, "Pod");
  json::Object labels = api::Labels(pod);
  for (auto& [key, value] : parts.kind.Labels(member)) labels[key] = value;
  if (spec.grouped) {
    labels[api::keys::kPodGroup] =
        spec.GroupOf(api::Name(parts.job), parts.gang_class, replica, index);
    labels[api::keys::kPodSet] = ToLower(replica.type);
  }
  if (!spec.project.empty()) labels[api::keys::kProject] = spec.project;
  std::string name = member.pod_name();
  json::Set(pod, {"metadata", "name"}, name);
  json::Set(pod, {"metadata", "namespace"}, api::Namespace(parts.job));
  json::Set(pod, {"metadata", "labels"}, std::move(labels));
  Annotate(member, pod);
  json::Set(pod, {"metadata", "ownerReferences"}, json::Array{api::MakeOwnerReference(parts.job)});
  std::string_view restart = "Never";
  if (replica.restart_policy == RestartPolicy::kOnFailure) restart = "OnFailure";
  if (replica.restart_policy == RestartPolicy::kAlways) restart = "Always";
  json::Set(pod, {"spec", "restartPolicy"}, restart);
  if (!json::Find(pod, {"spec", "hostname"})) json::Set(pod, {"spec", "hostname"}, name);
  const std::string_view priority = spec.ClassOf(replica, index);
  const bool own = replica.HasOwnPriority(index);
  if (!priority.empty() && (own || !json::Find(pod, {"spec", "priorityClassName"}))) {
    json::Set(pod, {"spec", "priorityClassName"}, priority);
  }
  if (!json::Find(pod, {"spec", "schedulerName"}))
    json::Set(pod, {"spec", "schedulerName"}, "swell");
  parts.kind.PreparePod(member, pod);
  KeepLastWords(pod);
  AvoidNodes(pod, api::Annotation(parts.job, api::keys::kAvoidedNodes));
  HoldToGpuType(pod, api::Annotation(parts.job, api::keys::kHeldGpuType));
  if (api::Annotation(parts.job, api::keys::kMemoryRefused).empty()) {
    RaiseMemoryOf(pod, ToLower(replica.type),
                  ParseMemoryRaises(api::Annotation(parts.job, api::keys::kMemoryRaised)));
  }
  return pod;
}

json::Value MakePodGroup(const JobParts& parts, const std::string& name) {
  const std::string_view job = api::Name(parts.job);
  const bool gang = name == job;
  std::string_view priority = parts.gang_class;
  if (!gang) {
    priority = std::string_view(name).substr(job.size() + 1);
    if (priority == kNoClass) priority = {};
  }
  bool fail = parts.spec.on_preemption == OnPreemption::kFail;
  json::Object spec = parts.spec.group_fields;
  spec["podSets"] = gang ? PodSets(parts.spec) : SurplusSets(parts.spec);
  spec["onPreemption"] = fail ? "Fail" : "Requeue";
  // A job that fails at its first loss gives up no more places than are needed.
  if (!spec.contains("preemptUnit")) spec["preemptUnit"] = fail ? "Pod" : "Gang";
  if (!priority.empty()) spec["priorityClassName"] = priority;
  if (!parts.spec.project.empty()) spec["project"] = parts.spec.project;
  return json::Object{{"apiVersion", "swell.dev/v1"},
                      {"kind", "PodGroup"},
                      {"metadata", json::Object{{"name", name},
                                                {"namespace", api::Namespace(parts.job)},
                                                {"ownerReferences",
                                                 json::Array{api::MakeOwnerReference(parts.job)}}}},
                      {"spec", std::move(spec)}};
}

Result<json::Array> MakeGang(const JobKind& kind, const json::Value& job) {
  SWELL_ASSIGN_OR_RETURN(const JobSpec spec, kind.Parse(job));
  if (!spec.grouped) {
    return Status(Code::kNotAcceptable, StrCat("members of a ", kind.kind(),
                                               " are not a gang: each is placed by itself"));
  }
  const std::string name(api::Name(job));
  const auto gang_class = spec.GangClass();
  const std::string own_class = gang_class.ok() ? *gang_class : spec.priority_class;
  const JobParts parts{kind, job, spec, own_class};
  json::Array objects{MakePodGroup(parts, name)};
  for (const ReplicaSpec& replica : spec.replicas) {
    for (int64_t k = 0; k < replica.replicas; ++k) {
      if (spec.GroupOf(name, own_class, replica, k) != name) continue;
      objects.push_back(MakeMember(parts, replica, k));
    }
  }
  return objects;
}

}  // namespace swell::jobs
