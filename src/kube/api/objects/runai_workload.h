// Run:ai's workloads (run.ai/v2alpha1) as their documents say them. A field is {value: V}; several
// by name are {items: {NAME: {value: V}}}.
// - Threads: pure functions.
// - Ownership: views and references are the document's own, valid while it lives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::api {

// `body`: the workload's spec. Null: the field is not there.
const json::Value* WorkloadValue(const json::Value& body, std::string_view field);
// A number as it is written; empty: the field is not there.
std::string WorkloadText(const json::Value& body, std::string_view field);
bool WorkloadSwitch(const json::Value& body, std::string_view field);
const json::Object& WorkloadItems(const json::Value& body, std::string_view field);

// A port of the workload, and of the Service that leads to it.
struct WorkloadPort {
  std::string item;              // ports.items.NAME.value
  int64_t container = 0;         // in the pod
  int64_t outer = 0;             // of the Service
  std::string_view outer_field;  // the field of the item that has `outer`
  std::string_view type;         // of the Service
};
std::vector<WorkloadPort> WorkloadPorts(const json::Value& body);

// The workers of a DistributedWorkload, beside their master.
int64_t WorkloadWorkers(const json::Value& body);
// The pods of the workload, of any kind.
int64_t WorkloadMembers(const json::Value& body);
// The spec of a DistributedWorkload's master: `body`, with the fields of `master` in place of its
// own. If one of these is about GPUs, `body` loses all fields about GPUs.
json::Value WithMasterSpec(const json::Value& body, const json::Value& master);

// A word of a command line, with the variables of Run:ai's that it names as ${NAME} in Kubernetes'
// form: $(NAME). Run:ai puts in their values, also where no shell does.
std::string WithWorkloadVariables(std::string word);

// The group IDs of the processes; nullopt: the text is not a list of them.
std::optional<json::Array> WorkloadGroups(const json::Value& body);
// Gives the pod and its container what rights decide about: annotations, namespaces of the node,
// user and group IDs, and whether processes may gain privileges. Nothing else of a pod that is made
// of `body` needs more than the rights that every user has.
void SetWorkloadRights(const json::Value& body, json::Value& pod, json::Value& container);

}  // namespace swell::api
