// WorkloadPod: what Run:ai's workloads of all kinds have in common: their pods, made of their
// fields, and the Service that leads to their ports.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

// Training that keeps failing is broken.
inline constexpr int64_t kWorkloadBackoff = 6;

// What the pods of one role are made of.
struct WorkloadPart {
  const json::Value& body;  // the workload's spec, or its masterSpec
  std::string_view path;    // how messages call it
  std::string_view role;    // the name of the container

  std::string Field(std::string_view field) const;  // spec.FIELD
};

// Refuses fields that are wrong whatever the others say. spec.name must be the object's name.
Status CheckWorkload(const json::Value& workload, const WorkloadPart& part);
// The template of the part's pods. `options.find` looks up their node pools; kNotFound while one
// does not exist.
Result<json::Value> MakeWorkloadPod(const WorkloadPart& part, const JobKindOptions& options);
// What the spec says of suspension, preemption and how long the workload is kept.
void ReadWorkloadPolicy(const json::Value& body, JobSpec& spec);
// The variables that Run:ai gives its workloads.
void SetWorkloadEnv(const JobMember& member, std::string_view project, json::Value& pod);
// The Service of the ports that `body` names; empty: it names none. `labels` are those of the pods.
std::vector<json::Value> WorkloadServices(const json::Value& body,
                                          const std::string& name,
                                          json::Object labels);

}  // namespace swell::jobs
