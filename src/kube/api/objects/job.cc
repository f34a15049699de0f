#include "kube/api/objects/job.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

std::optional<int64_t> IntAt(const json::Value& holder, std::string_view field) {
  if (json::Find(holder, {field}) == nullptr) return std::nullopt;
  return json::GetInt(holder, {field});
}

const json::Value& ElasticPolicyIn(const json::Value& job_spec) {
  static const json::Value kNone;
  const json::Value* policy = json::Find(job_spec, {"elasticPolicy"});
  return policy != nullptr ? *policy : kNone;
}

SizeChange ReadChange(const json::Value& entry) {
  SizeChange change{.time = ParseTime(json::GetString(entry, {"time"})),
                    .replicas = json::GetInt(entry, {"replicas"}),
                    .desired = json::GetInt(entry, {"desired"}),
                    .reason = json::GetString(entry, {"reason"})};
  const json::Value* throughput = json::Find(entry, {"throughput"});
  if (throughput != nullptr && throughput->is_number()) {
    change.throughput = throughput->to_number<double>();
  }
  return change;
}

}  // namespace

bool IsLeadingRole(std::string_view role) {
  static constexpr std::array<std::string_view, 4> kLeading = {"master", "chief", "leader",
                                                               "launcher"};
  return std::find(kLeading.begin(), kLeading.end(), ToLower(role)) != kLeading.end();
}

int LeadRank(std::string_view role) {
  if (IsLeadingRole(role)) return 0;
  return ToLower(role) == "worker" ? 1 : 2;
}

int64_t ReplicasOf(const json::Value& role) { return json::GetInt(role, {"replicas"}, 1); }

const json::Value* TemplateOf(const json::Value& role) { return json::Find(role, {"template"}); }

ReplicaBounds::ReplicaBounds(const json::Value& holder)
    : least(json::GetInt(holder, {"minReplicas"}, 1)), most(IntAt(holder, "maxReplicas")) {}

ElasticPolicy::ElasticPolicy(const json::Value& job_spec) : bounds(ElasticPolicyIn(job_spec)) {
  const json::Value& policy = ElasticPolicyIn(job_spec);
  given = !policy.is_null();
  backend = json::GetString(policy, {"rdzvBackend"}, "c10d");
  endpoint = json::GetString(policy, {"rdzvEndpoint"});
  host = json::GetString(policy, {"rdzvHost"});
  id = json::GetString(policy, {"rdzvId"});
  port = IntAt(policy, "rdzvPort");
  processes_per_node = IntAt(policy, "nProcPerNode");
  max_restarts = json::GetInt(policy, {"maxRestarts"}, max_restarts);
  standalone = json::GetBool(policy, {"standalone"});
  for (const json::Value& one : json::GetArray(policy, {"rdzvConf"})) {
    options.emplace_back(json::GetString(one, {"key"}), json::GetString(one, {"value"}));
  }
}

JobSize::JobSize(const json::Value& document)
    : replicas(json::GetInt(document, {"replicas"})),
      least(json::GetInt(document, {"minReplicas"})),
      most(json::GetInt(document, {"maxReplicas"})),
      desired(IntAt(document, "desiredReplicas")),
      shrinks(json::GetInt(document, {"shrinks"})),
      last_shrink(ParseTime(json::GetString(document, {"lastShrinkTime"}))),
      message(json::GetString(document, {"message"})) {
  for (const json::Value& entry : json::GetArray(document, {"history"})) {
    history.push_back(ReadChange(entry));
  }
}

std::optional<JobSize> SizeOfJob(const json::Value& job) {
  for (const std::string_view field : {"elastic", "size"}) {
    if (const json::Value* size = json::Find(job, {"status", field})) return JobSize(*size);
  }
  return std::nullopt;
}

std::string_view ProjectOfQueue(const json::Value& policy) {
  const std::string_view queue = json::GetString(policy, {"queue"});
  return queue == "default" ? std::string_view() : queue;
}

std::string_view JobStatusWord(const json::Value& job) {
  for (std::string_view last : {"Succeeded", "Failed"}) {
    if (ConditionIsTrue(job, last)) return last;
  }
  if (ConditionIsTrue(job, "Complete")) return "Succeeded";
  for (std::string_view word : {"Suspended", "Preempted", "Restarting", "Running"}) {
    if (ConditionIsTrue(job, word)) return word;
  }
  const std::string_view phase = StatusPhase(job);
  return phase.empty() ? "Pending" : phase;
}

std::string_view OtherManager(const json::Value& job) {
  std::string_view manager = json::GetString(job, {"spec", "runPolicy", "managedBy"});
  if (manager.empty()) manager = json::GetString(job, {"spec", "managedBy"});
  constexpr std::string_view kOwn[] = {
      "kubeflow.org/training-operator", "kubeflow.org/mpi-operator",
      "trainer.kubeflow.org/trainjob-controller", "kubernetes.io/job-controller"};
  const bool own = std::find(std::begin(kOwn), std::end(kOwn), manager) != std::end(kOwn);
  return own ? std::string_view() : manager;
}

bool IsSuspended(const json::Value& job, std::string_view field) {
  const size_t dot = field.find('.');
  if (dot == std::string_view::npos) return json::GetBool(job, {"spec", field});
  return json::GetBool(job, {"spec", field.substr(0, dot), field.substr(dot + 1)});
}

void SetSuspended(json::Value& job, std::string_view field, bool suspended) {
  const size_t dot = field.find('.');
  if (dot == std::string_view::npos) {
    json::Set(job, {"spec", field}, suspended);
  } else {
    json::Set(job, {"spec", field.substr(0, dot), field.substr(dot + 1)}, suspended);
  }
}

}  // namespace swell::api
