#include "kube/api/objects/pod_group.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::api {
namespace {

TopologyRequest ReadTopology(const json::Value& holder) {
  return {.name = std::string(json::GetString(holder, {"topology", "name"})),
          .required = std::string(json::GetString(holder, {"topology", "required"})),
          .preferred = std::string(json::GetString(holder, {"topology", "preferred"}))};
}

}  // namespace

PodGroupSpec::PodGroupSpec(const json::Value& pod_group)
    : project(ProjectOfGroup(pod_group)),
      priority_class(PriorityClassName(pod_group)),
      preemptibility(Preemptibility(pod_group)),
      on_preemption(json::GetString(pod_group, {"spec", "onPreemption"}, "Requeue")),
      preempt_unit(json::GetString(pod_group, {"spec", "preemptUnit"}, "Gang")),
      min_runtime_seconds(json::GetInt(pod_group, {"spec", "minRuntimeSeconds"})),
      topology(ReadTopology(Spec(pod_group))) {
  for (const json::Value& part : json::GetArray(pod_group, {"spec", "groups"})) {
    parts.push_back({.name = std::string(json::GetString(part, {"name"})),
                     .parent = std::string(json::GetString(part, {"parent"})),
                     .topology = ReadTopology(part)});
  }
  for (const json::Value& set : json::GetArray(pod_group, {"spec", "podSets"})) {
    pod_sets.push_back({.name = std::string(json::GetString(set, {"name"})),
                        .parent = std::string(json::GetString(set, {"parent"})),
                        .min_member = json::GetInt(set, {"minMember"}, 1),
                        .topology = ReadTopology(set)});
  }
}

std::string GroupKeyOf(const json::Value& pod) {
  const std::string_view group = Label(pod, keys::kPodGroup);
  return group.empty() ? "" : StrCat(Namespace(pod), "/", group);
}

int64_t MinMembers(const json::Value& pod_group) {
  int64_t members = 0;
  for (const json::Value& set : json::GetArray(pod_group, {"spec", "podSets"})) {
    members += json::GetInt(set, {"minMember"}, 1);
  }
  return members;
}

std::optional<GroupPreemption> LastPreemptionOf(const json::Value& pod_group) {
  const json::Value* last = json::Find(pod_group, {"status", "lastPreemption"});
  if (last == nullptr) return std::nullopt;
  return GroupPreemption{.time = ParseTime(json::GetString(*last, {"time"})),
                         .by = json::GetString(*last, {"by"}),
                         .rule = json::GetString(*last, {"rule"}),
                         .message = json::GetString(*last, {"message"})};
}

int64_t PreemptionCount(const json::Value& pod_group) {
  return json::GetInt(pod_group, {"status", "preemptions"});
}

int64_t ScheduledCount(const json::Value& pod_group) {
  return json::GetInt(pod_group, {"status", "scheduled"});
}

std::string_view Preemptibility(const json::Value& pod_group) {
  return json::GetString(pod_group, {"spec", "preemptibility"});
}

std::string_view ProjectOfGroup(const json::Value& pod_group) {
  return json::GetString(pod_group, {"spec", "project"});
}

std::vector<EvictionRecord> EvictionRecords(const json::Value& pod_group) {
  std::vector<EvictionRecord> records;
  for (const json::Value& document : json::GetArray(pod_group, {"status", "evicted"})) {
    EvictionRecord record{.by = json::GetString(document, {"by"}),
                          .rule = json::GetString(document, {"rule"}),
                          .message = json::GetString(document, {"message"}),
                          .time = json::GetString(document, {"time"}),
                          .lost_gpu_seconds = json::GetInt(document, {"lostGpuSeconds"}),
                          .document = &document};
    for (const json::Value& uid : json::GetArray(document, {"pods"})) {
      if (uid.is_string()) record.pods.push_back(json::View(uid.get_string()));
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace swell::api
