#include "cli/jobs/training_spec.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/flags.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli {
namespace {

Status Check(const TrainingSpec& spec) {
  const PyTorchSpec& pod = spec.pod;
  if (pod.name.empty() && pod.name_prefix.empty()) return Misuse("the workload has no name");
  const std::string& name = pod.name.empty() ? pod.name_prefix : pod.name;
  if (std::string wrong = api::CheckDnsLabel(name); !wrong.empty() && !pod.name.empty()) {
    return Misuse(StrCat("name ", Quote(name), ": ", wrong));
  }
  if (pod.image.empty()) return Misuse("--image is not set");
  if (pod.workers < 1) return Misuse(StrCat("--workers ", pod.workers, ": expected at least 1"));
  if (spec.completions < 0 || spec.parallelism < 0) {
    return Misuse("--completions and --parallelism must be at least 1");
  }
  if (spec.Repeats() && !(spec.topology_required.empty() && spec.topology_preferred.empty())) {
    return Misuse("independent runs (--completions, --parallelism) cannot require a topology");
  }
  if (spec.workers_min > pod.workers) {
    return Misuse(
        StrCat("--min-workers ", spec.workers_min, ": there are only ", pod.workers, " workers"));
  }
  return Status::Ok();
}

// The same pods as runs of their own.
json::Value AsBatchJob(const TrainingSpec& spec, const json::Value& job) {
  const PyTorchSpec& pod = spec.pod;
  json::Value out = json::Object{
      {"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", *json::Find(job, {"metadata"})}};
  const int64_t completions = spec.completions > 0 ? spec.completions : spec.parallelism;
  json::Set(out, {"spec", "completions"}, completions);
  json::Set(out, {"spec", "completionMode"}, "Indexed");  // each run learns which one it is
  json::Set(out, {"spec", "parallelism"}, std::max<int64_t>(1, spec.parallelism));
  if (spec.backoff_limit >= 0) json::Set(out, {"spec", "backoffLimit"}, spec.backoff_limit);
  if (pod.ttl_s >= 0) json::Set(out, {"spec", "ttlSecondsAfterFinished"}, pod.ttl_s);
  if (pod.running_timeout_s > 0) {
    json::Set(out, {"spec", "activeDeadlineSeconds"}, pod.running_timeout_s);
  }
  json::Set(out, {"spec", "template"}, *json::Find(job, {"spec", "roles", spec.role, "template"}));
  json::Set(out, {"spec", "template", "spec", "restartPolicy"}, spec.restart_policy);
  return out;
}

}  // namespace

Result<json::Value> MakeTrainingJob(const TrainingSpec& spec) {
  SWELL_RETURN_IF_ERROR(Check(spec));
  const PyTorchSpec& pod = spec.pod;
  SWELL_ASSIGN_OR_RETURN(json::Object pod_spec, MakePodSpec(pod));
  json::Object labels, annotations;
  for (const auto& [key, value] : pod.labels) labels[key] = value;
  for (const auto& [key, value] : pod.annotations) annotations[key] = value;
  labels[api::keys::kWorkload] = spec.workload;
  if (!pod.project.empty()) labels[api::keys::kProject] = pod.project;
  json::Object pod_annotations = annotations;
  for (const auto& [key, value] : GpuShareAnnotations(pod)) pod_annotations[key] = value;
  json::Value role =
      json::Object{{"replicas", pod.workers}, {"restartPolicy", spec.restart_policy}};
  json::Set(role, {"template", "metadata", "labels"}, labels);
  if (!pod_annotations.empty()) {
    json::Set(role, {"template", "metadata", "annotations"}, std::move(pod_annotations));
  }
  json::Set(role, {"template", "spec"}, std::move(pod_spec));
  if (spec.workers_min > 0) {
    json::Set(role, {"elastic"},
              json::Object{{"minReplicas", spec.workers_min}, {"maxReplicas", pod.workers}});
  }
  json::Value job = json::Object{{"apiVersion", "swell.dev/v1"}, {"kind", "TrainingJob"}};
  if (pod.name.empty()) {
    json::Set(job, {"metadata", "generateName"}, pod.name_prefix + "-");
  } else {
    json::Set(job, {"metadata", "name"}, pod.name);
  }
  if (!pod.ns.empty()) json::Set(job, {"metadata", "namespace"}, pod.ns);
  json::Set(job, {"metadata", "labels"}, std::move(labels));
  if (!annotations.empty()) json::Set(job, {"metadata", "annotations"}, std::move(annotations));
  if (!pod.project.empty()) json::Set(job, {"spec", "project"}, pod.project);
  if (!pod.priority.empty()) json::Set(job, {"spec", "priorityClassName"}, pod.priority);
  if (!spec.topology_required.empty()) {
    json::Set(job, {"spec", "topology", "required"}, spec.topology_required);
  }
  if (!spec.topology_preferred.empty()) {
    json::Set(job, {"spec", "topology", "preferred"}, spec.topology_preferred);
  }
  if (!spec.preemptibility.empty()) {
    json::Set(job, {"spec", "preemption", "preemptibility"}, spec.preemptibility);
  }
  if (!pod.on_preemption.empty()) {
    json::Set(job, {"spec", "preemption", "onPreemption"}, pod.on_preemption);
  }
  if (spec.backoff_limit >= 0) json::Set(job, {"spec", "backoffLimit"}, spec.backoff_limit);
  if (pod.ttl_s >= 0) json::Set(job, {"spec", "ttlSecondsAfterFinished"}, pod.ttl_s);
  if (pod.running_timeout_s > 0) {
    json::Set(job, {"spec", "activeDeadlineSeconds"}, pod.running_timeout_s);
  }
  json::Set(job, {"spec", "roles", spec.role}, std::move(role));
  return spec.Repeats() ? AsBatchJob(spec, job) : job;
}

Result<PortPair> ParsePort(const std::string& text) {
  size_t colon = text.find(':');
  auto outside = ParseInt(text.substr(0, colon));
  auto inside = colon == std::string::npos ? outside : ParseInt(text.substr(colon + 1));
  auto good = [](const std::optional<int64_t>& port) { return port && *port > 0 && *port < 65536; };
  if (!good(outside) || !good(inside)) {
    return Misuse(StrCat("--port ", Quote(text), ": expected PORT or OUTSIDE:INSIDE, 1 to 65535"));
  }
  return PortPair{*outside, *inside};
}

// Where Kubernetes takes node ports from.
constexpr int64_t kNodePortFirst = 30000, kNodePortLast = 32767;

json::Value MakeJobService(const json::Value& job,
                           const std::string& role,
                           const std::vector<PortPair>& ports,
                           const std::string& type) {
  json::Array list;
  for (const PortPair& port : ports) {
    json::Object one{{"name", StrCat("port-", port.outside)},
                     {"port", port.outside},
                     {"targetPort", port.inside},
                     {"protocol", "TCP"}};
    // A number of that range can only be meant so.
    const bool node_port = port.outside >= kNodePortFirst && port.outside <= kNodePortLast;
    if (type == "NodePort" && node_port) one["nodePort"] = port.outside;
    list.push_back(std::move(one));
  }
  std::string_view name = api::Name(job);
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata",
       json::Object{{"name", name},
                    {"labels", json::Object{{api::keys::kJobName, name}}},
                    // Its controller removes services that it did not make.
                    {"ownerReferences", json::Array{api::MakeOwnerReference(job, false)}}}},
      {"spec", json::Object{{"type", type},
                            {"selector", json::Object{{api::keys::kJobName, name},
                                                      {api::keys::kJobRole, role}}},
                            {"ports", std::move(list)}}}};
}

}  // namespace swell::cli
