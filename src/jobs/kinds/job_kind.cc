#include "jobs/kinds/job_kind.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/strings.h"
#include "jobs/kinds/git_sync.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/runai_workload.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"
#include "sched_inputs/gpu_request.h"

namespace swell::jobs {
namespace {

using controllers::WrongField;

void ReadOptional(const json::Value& policy, std::string_view field, std::optional<int64_t>& to) {
  const json::Value* value = json::Find(policy, {field});
  if (value != nullptr && value->is_number()) to = json::GetInt(policy, {field});
}

constexpr std::string_view kWorkerRole = "Worker";

// Whether there is something at "runPolicy.backoffLimit".
bool Says(const json::Value& spec, std::string_view path) {
  const json::Value* found = &spec;
  for (std::string_view step : Split(path, '.')) {
    found = json::Find(*found, {step});
    if (found == nullptr) return false;
  }
  return true;
}

// Fields of Run:ai's workloads.
void AddIgnoredOfWorkload(const json::Value& body, std::vector<std::string>& ignored) {
  for (const auto& port : api::WorkloadItems(body, "ports")) {
    for (std::string_view own : {"toolName", "toolType"}) {
      if (json::Find(port.value(), {"value", own}) == nullptr) continue;
      const std::string_view of(port.key().data(), port.key().size());
      ignored.push_back(StrCat("spec.ports.items.", of, ".value.", own));
    }
  }
  auto says = [&body](std::string_view field) {
    return api::WorkloadValue(body, field) != nullptr;
  };
  auto add = [&](std::string_view field) {
    if (says(field)) ignored.push_back(StrCat("spec.", field));
  };
  for (std::string_view field : {"userId", "username", "isPrivateServiceUrl"}) add(field);
  if (api::WorkloadSwitch(body, "runAsUser") && !says("runAsUid")) add("runAsUser");
  // Servers whose number is fixed are not scaled in Run:ai either.
  const int64_t least = api::WorkloadMembers(body);
  if (json::GetInt(body, {"maxScale", "value"}, least) <= least) return;
  for (std::string_view field : {"maxScale", "metric", "metricName", "target", "class"}) add(field);
}

}  // namespace

void JobKind::FillStatus(const json::Value&,
                         const JobSpec&,
                         const std::vector<ReplicaCount>&,
                         WallTime,
                         json::Value&) const {}

Result<JobSpec> JobKind::Parse(const json::Value& job) const {
  SWELL_ASSIGN_OR_RETURN(JobSpec spec, Read(job));
  auto check = [](std::string_view what, int64_t count, int64_t most) {
    if (count <= most) return Status::Ok();
    return WrongField("spec", StrCat("Invalid value: it has ", count, " ", what, "; a job has ",
                                     most, " at most: make several jobs"));
  };
  const auto roles = static_cast<int64_t>(spec.replicas.size());
  SWELL_RETURN_IF_ERROR(check("roles with replicas", roles, kRolesMax));
  SWELL_RETURN_IF_ERROR(check("replicas in all roles", spec.TotalReplicas(), kMembersMax));
  return spec;
}

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

bool ReplicaSpec::HasOwnPriority(int64_t index) const {
  if (priority.priority_class.empty()) return false;
  auto of = [this](int64_t members) { return ShareOf(priority.part, members); };
  const int64_t least = min_member.value_or(0);
  const int64_t first = of(std::max(max_member.value_or(0), replicas)) >= least ? least : 0;
  return index < first || of(index + 1) > std::max(first, of(index));
}

bool JobSpec::tiered() const {
  return std::any_of(replicas.begin(), replicas.end(), [](const ReplicaSpec& replica) {
    return !replica.priority.priority_class.empty();
  });
}

std::string_view JobSpec::ClassOf(const ReplicaSpec& replica, int64_t index) const {
  return replica.HasOwnPriority(index) ? replica.priority.priority_class : priority_class;
}

Result<std::string> JobSpec::GangClass() const {
  if (!tiered()) return priority_class;
  std::optional<std::string_view> found;
  for (const ReplicaSpec& replica : replicas) {
    for (int64_t i = 0; i < std::min(replica.min_member.value_or(0), replica.replicas); ++i) {
      const std::string_view own = ClassOf(replica, i);
      if (!found) found = own;
      if (own == *found) continue;
      if (!priority_class.empty()) return priority_class;
      return WrongField(
          "spec.priorityClassName",
          StrCat("Required value: members that must run together have the priority "
                 "classes ",
                 Quote(*found), " and ", Quote(own), "; together they have the job's"));
    }
  }
  return std::string(found.value_or(priority_class));
}

std::string JobSpec::GroupOf(std::string_view job,
                             std::string_view gang_class,
                             const ReplicaSpec& replica,
                             int64_t index) const {
  const std::string_view own = tiered() ? ClassOf(replica, index) : gang_class;
  if (own == gang_class || index < replica.min_member.value_or(replica.replicas)) {
    return std::string(job);
  }
  return StrCat(job, ".", own.empty() ? kNoClass : own);
}

int64_t JobMember::rank() const {
  int64_t before = 0;
  for (const ReplicaSpec& one : spec.replicas) {
    if (one.type == role.type) break;
    before += one.replicas;
  }
  return before + index;
}

std::string JobMember::pod_name() const { return role.PodName(api::Name(job), index); }

int64_t ShareOf(double part, int64_t members) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(members) * part - 1e-9));
}

std::optional<double> ParsePart(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double part = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || !(part >= 0 && part <= 1)) return {};
  return part;
}

Result<PriorityShare> ReadPriorityShare(std::string_view field, std::string_view text) {
  PriorityShare share;
  const size_t equals = text.find('=');
  share.priority_class = text.substr(0, equals);
  auto wrong = [&](std::string_view message) {
    return controllers::WrongText(field, text, message);
  };
  if (std::string fault = api::CheckDnsSubdomain(share.priority_class); !fault.empty()) {
    return wrong(StrCat("must be a priority class, or CLASS=PART such as high=0.5: ", fault));
  }
  if (equals == std::string_view::npos) return share;
  const auto part = ParsePart(text.substr(equals + 1));
  if (!part) return wrong("the part of the members that have the class must be between 0 and 1");
  share.part = *part;
  return share;
}

OnFailure JobKind::ClassifyFailure(const ReplicaSpec&,
                                   const ReplicaCount&,
                                   const json::Value&,
                                   int64_t) const {
  return OnFailure::kAsUsual;
}

Result<std::vector<json::Value>> JobKind::Dependents(const json::Value&, const JobSpec&) const {
  return std::vector<json::Value>();
}

bool JobKind::Owns(const api::OwnerReference& owner) const {
  return owner.kind == kind() && owner.api_version.starts_with(StrCat(resource().group, "/"));
}

std::string JobKind::Reason(std::string_view what) const { return StrCat(kind(), what); }

Status ReadRoles(const json::Value& body,
                 std::string_view field,
                 const std::vector<RoleName>& known,
                 RestartPolicy restart_policy,
                 JobSpec& spec) {
  const std::string path = StrCat("spec.", field);
  const json::Value* roles = json::Find(body, {field});
  if (roles == nullptr) return WrongField(path, "Required value");
  std::vector<std::string> names;
  for (const RoleName& role : known) names.push_back(Quote(role.name));
  for (const auto& role : roles->is_object() ? roles->get_object() : json::Object()) {
    const std::string_view name(role.key().data(), role.key().size());
    if (std::any_of(known.begin(), known.end(),
                    [name](const RoleName& one) { return one.name == name; })) {
      continue;
    }
    return WrongField(StrCat(path, ".", name), StrCat("Unsupported value: ", Quote(name),
                                                      ": supported values: ", Join(names, ", ")));
  }
  for (const RoleName& role : known) {
    const json::Value* found = json::Find(*roles, {role.name});
    if (found == nullptr) continue;
    RoleRules rules{.restart_policy = role.restart_policy.value_or(restart_policy),
                    .most = role.most};
    SWELL_ASSIGN_OR_RETURN(ReplicaSpec replica,
                           ReadReplicaSpec(StrCat(path, ".", role.name), role.name, *found, rules));
    // Workers of an elastic job are never fewer than its least, whatever is asked for.
    const bool elastic = role.name == kWorkerRole && api::ElasticPolicy(body).given;
    if (replica.replicas > 0 || elastic) spec.replicas.push_back(std::move(replica));
  }
  if (!spec.replicas.empty()) return Status::Ok();
  return WrongField(
      path, StrCat("Invalid value: must have members of a role, one of ", Join(names, ", ")));
}

Result<ReplicaSpec> ReadReplicaSpec(std::string_view field,
                                    std::string_view type,
                                    const json::Value& role,
                                    const RoleRules& rules) {
  ReplicaSpec replica;
  replica.type = type;
  replica.replicas = api::ReplicasOf(role);
  if (replica.replicas < rules.least || replica.replicas > rules.most) {
    return WrongField(StrCat(field, ".replicas"), replica.replicas,
                      rules.most == 1
                          ? StrCat("there must be one ", type)
                          : StrCat("must be between ", rules.least, " and ", rules.most));
  }
  replica.restart_policy =
      ParseRestartPolicy(json::GetString(role, {"restartPolicy"}), rules.restart_policy);
  const json::Value* pod_template = api::TemplateOf(role);
  if (pod_template == nullptr || api::Containers(*pod_template).empty()) {
    return WrongField(StrCat(field, ".template.spec.containers"), "Required value");
  }
  SWELL_RETURN_IF_ERROR(
      sched_inputs::CheckTemplateAsks(*pod_template, StrCat(field, ".template.")));
  replica.pod_template = *pod_template;
  return replica;
}

Status ReadWorkerBounds(const json::Value& body, JobSpec& spec) {
  const api::ElasticPolicy policy(body);
  if (!policy.given) return Status::Ok();
  const int64_t least = policy.bounds.least;
  const int64_t most = policy.bounds.most.value_or(kReplicasMax);
  if (least < 1) {
    return WrongField("spec.elasticPolicy.minReplicas", least, "must be at least 1");
  }
  if (most < least) {
    return WrongField("spec.elasticPolicy.maxReplicas", most,
                      StrCat("must be at least minReplicas, ", least));
  }
  spec.elastic = true;
  int64_t others = 0;
  for (const ReplicaSpec& replica : spec.replicas) {
    if (replica.type != kWorkerRole) others += replica.replicas;
  }
  for (ReplicaSpec& replica : spec.replicas) {
    if (replica.type != kWorkerRole) continue;
    // Whatever is asked for: nobody is above the most, or below the least.
    replica.requested = replica.replicas;
    replica.replicas = std::clamp(replica.replicas, least, most);
    // Without a most, what was asked for is it.
    replica.max_member = policy.bounds.most.value_or(replica.replicas);
    replica.min_member =
        spec.min_available ? std::max<int64_t>(0, *spec.min_available - others) : least;
  }
  if (!spec.min_available) spec.min_available = least + others;
  return Status::Ok();
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
    const std::string_view project = api::ProjectOfQueue(*scheduling);
    if (!project.empty()) spec.project = project;
  }
}

Status ReadSwellHints(const json::Value& job, JobSpec& spec) {
  std::string_view project = api::Label(job, api::keys::kProject);
  if (!project.empty()) spec.project = project;
  std::string_view on_preemption = api::Annotation(job, api::keys::kOnPreemption);
  if (ToLower(on_preemption) == "fail") spec.on_preemption = OnPreemption::kFail;
  for (const ReplicaSpec& replica : spec.replicas) {
    if (!spec.priority_class.empty()) break;
    spec.priority_class = api::PriorityClassName(replica.pod_template);
  }
  return AddGitSync(job, spec);
}

std::vector<std::string> IgnoredFields(const json::Value& job) {
  std::vector<std::string> ignored;
  for (const auto& field : json::GetObject(job, {"spec"})) {
    const std::string_view name(field.key().data(), field.key().size());
    if (!name.ends_with("ReplicaSpecs") || !field.value().is_object()) continue;
    for (const auto& role : field.value().get_object()) {
      for (std::string_view own : {"spotReplicaSpec", "dependOn"}) {
        if (json::Find(role.value(), {own}) == nullptr) continue;
        const std::string_view of(role.key().data(), role.key().size());
        ignored.push_back(StrCat("spec.", name, ".", of, ".", own));
      }
    }
  }
  for (std::string_view path : {"runPolicy.schedulingPolicy.scheduleTimeoutSeconds",
                                "schedulingPolicy.priority", "networkTopology", "webHost"}) {
    if (Says(api::Spec(job), path)) ignored.push_back(StrCat("spec.", path));
  }
  // Their launchers start with the workers' gang, and wait for what they reach.
  if (json::GetString(job, {"spec", "launcherCreationPolicy"}) == "WaitForWorkersReady") {
    ignored.emplace_back("spec.launcherCreationPolicy");
  }
  const json::Array& arguments = json::GetArray(job, {"spec", "plugins", "pytorch"});
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_string()) continue;
    if (json::View(arguments[i].get_string()).find("wait-master-") == std::string_view::npos) {
      continue;
    }
    ignored.push_back(StrCat("spec.plugins.pytorch[", i, "]"));
  }
  AddIgnoredOfWorkload(api::Spec(job), ignored);
  for (std::string_view key : {"kubedl.io/tensorboard-config", "kubedl.io/network-mode",
                               "kubedl.io/enable-elastic-training", "kubedl.io/tenancy"}) {
    if (api::Annotation(job, key).empty()) continue;
    ignored.push_back(StrCat("metadata.annotations[", key, "]"));
  }
  return ignored;
}

std::string ReplicaName(std::string_view job, std::string_view type, int64_t index) {
  return StrCat(job, "-", ToLower(type), "-", index);
}

}  // namespace swell::jobs
