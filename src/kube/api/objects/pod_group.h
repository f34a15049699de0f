// PodGroup: a job's pods as the scheduler sees them, read from its document in one place.
// - Threads: pure functions.
// - Ownership: the structs own their texts; EvictionRecord's texts are the document's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::api {

// Where the pods of a group, or of a part of it, must or should be together.
struct TopologyRequest {
  std::string name;                 // of the Topology
  std::string required, preferred;  // its levels
};

struct PodSetSpec {
  std::string name;
  std::string parent;  // the group's part that it belongs to
  int64_t min_member = 1;
  TopologyRequest topology;
};

struct GroupPartSpec {
  std::string name, parent;
  TopologyRequest topology;
};

struct PodGroupSpec {
  explicit PodGroupSpec(const json::Value& pod_group);

  std::string project;
  std::string priority_class;
  std::string preemptibility;  // Preemptible, NonPreemptible; empty: by its priority
  std::string on_preemption;   // Requeue, Fail
  std::string preempt_unit;    // Gang, Pod
  int64_t min_runtime_seconds = 0;
  TopologyRequest topology;
  std::vector<GroupPartSpec> parts;
  std::vector<PodSetSpec> pod_sets;
};

// The key of the group of a pod; "" if it is in none.
std::string GroupKeyOf(const json::Value& pod);

// The least pods with which the group runs: the sum of its pod sets' minMember.
int64_t MinMembers(const json::Value& pod_group);

// The last time that the group was preempted.
struct GroupPreemption {
  std::optional<WallTime> time;
  std::string_view by, rule, message;
};
std::optional<GroupPreemption> LastPreemptionOf(const json::Value& pod_group);
// How often the group was preempted.
int64_t PreemptionCount(const json::Value& pod_group);
// How many of its pods are on nodes.
int64_t ScheduledCount(const json::Value& pod_group);
std::string_view Preemptibility(const json::Value& pod_group);
std::string_view ProjectOfGroup(const json::Value& pod_group);

// One of status.evicted: pods that the scheduler takes away, and why.
struct EvictionRecord {
  std::string_view by, rule, message, time;
  int64_t lost_gpu_seconds = 0;
  std::vector<std::string_view> pods;  // uids
  const json::Value* document = nullptr;
};
std::vector<EvictionRecord> EvictionRecords(const json::Value& pod_group);

}  // namespace swell::api
