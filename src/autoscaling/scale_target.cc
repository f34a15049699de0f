#include "autoscaling/scale_target.h"

#include <algorithm>

#include "autoscaling/metric_specs.h"
#include "base/duration.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/wrong_field.h"

namespace swell::autoscaling {
namespace {

constexpr Duration kScaleTimeMax = std::chrono::hours(24);
constexpr int64_t kObservationsMax = 1000;

Status ReadStep(std::string_view field, std::string_view step, elastic::ScalePolicy& policy) {
  if (step.empty()) return Status::Ok();
  if (step != "AddOne" && step != "Double") {
    return controllers::WrongText(field, step, "must be AddOne or Double");
  }
  policy.doubles = step == "Double";
  return Status::Ok();
}

Status ReadAnnotations(const json::Value& job, ScaleTarget& target) {
  auto field = [](std::string_view name) { return StrCat("metadata.annotations[", name, "]"); };
  SWELL_RETURN_IF_ERROR(
      ReadScaleTime(job, kScaleInterval, kScaleIntervalMin, target.policy.interval));
  std::string_view observations = api::Annotation(job, kScaleObservations);
  if (!observations.empty()) {
    auto parsed = ParseInt(observations);
    if (!parsed || *parsed < 1 || *parsed > kObservationsMax) {
      return controllers::WrongText(field(kScaleObservations), observations,
                                    StrCat("must be a number from 1 to ", kObservationsMax));
    }
    target.policy.observations = static_cast<int>(*parsed);
  }
  std::string_view pattern = api::Annotation(job, kScalePattern);
  if (!pattern.empty()) {
    target.pattern = pattern;
    target.pattern_field = field(kScalePattern);
  }
  return ReadStep(field(kScaleStep), api::Annotation(job, kScaleStep), target.policy);
}

}  // namespace

json::Value AtPath(const std::vector<std::string>& path, json::Value value) {
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    json::Object outer;
    outer[*step] = std::move(value);
    value = std::move(outer);
  }
  return value;
}

Status ReadScaleTime(const json::Value& job,
                     std::string_view annotation,
                     Duration least,
                     Duration& time) {
  const std::string_view text = api::Annotation(job, annotation);
  if (text.empty()) return Status::Ok();
  const auto parsed = ParseDuration(text);
  if (!parsed || *parsed < least || *parsed > kScaleTimeMax) {
    return controllers::WrongText(
        StrCat("metadata.annotations[", annotation, "]"), text,
        StrCat("must be a duration from ", FormatDuration(least), " to 24h, such as 30s or 1h30m"));
  }
  time = *parsed;
  return Status::Ok();
}

Result<std::optional<ScaleTarget>> KubedlScaleTarget(const json::Value& job) {
  const json::Value* worker = json::Find(job, {"spec", "pytorchReplicaSpecs", "Worker"});
  const api::ElasticPolicy policy(api::Spec(job));
  if (!json::GetBool(job, {"spec", "enableElastic"}) || worker == nullptr || !policy.bounds.most) {
    return std::optional<ScaleTarget>();
  }
  ScaleTarget target;
  target.role = "Worker";
  target.path = {"spec", "pytorchReplicaSpecs", "Worker", "replicas"};
  target.replicas = api::ReplicasOf(*worker);
  const json::Value* pod_template = api::TemplateOf(*worker);
  if (pod_template != nullptr) target.pod_template = *pod_template;
  target.policy.noun = "Pytorch job";
  target.policy.replicas_min = std::max<int64_t>(1, policy.bounds.least);
  target.policy.replicas_max = *policy.bounds.most;
  target.metric = "latency";
  SWELL_RETURN_IF_ERROR(ReadAnnotations(job, target));
  return std::optional<ScaleTarget>(std::move(target));
}

Result<std::optional<ScaleTarget>> TrainingScaleTarget(const json::Value& job) {
  const json::Value* scaling = json::Find(job, {"spec", "autoscaling"});
  if (scaling == nullptr || json::GetString(*scaling, {"mode"}) != "Metric") {
    return std::optional<ScaleTarget>();
  }
  const json::Array& metrics = json::GetArray(*scaling, {"metrics"});
  // Those have targets, and a scaler of their own.
  if (std::any_of(metrics.begin(), metrics.end(), IsMetricSpec)) {
    return std::optional<ScaleTarget>();
  }
  ScaleTarget target;
  target.role = json::GetString(*scaling, {"role"}, "worker");
  const json::Value* role = json::Find(job, {"spec", "roles", target.role});
  const json::Value* elastic = role != nullptr ? json::Find(*role, {"elastic"}) : nullptr;
  if (elastic == nullptr) {
    return controllers::WrongText("spec.autoscaling.role", target.role,
                                  "must be a role with elastic");
  }
  target.path = {"spec", "roles", target.role, "replicas"};
  target.replicas = api::ReplicasOf(*role);
  for (const auto& other : json::GetObject(job, {"spec", "roles"})) {
    if (other.key() != target.role) target.others += api::ReplicasOf(other.value());
  }
  const json::Value* pod_template = api::TemplateOf(*role);
  if (pod_template != nullptr) target.pod_template = *pod_template;
  target.policy.noun = "Training job";
  const api::ReplicaBounds bounds(*elastic);
  target.policy.replicas_min = std::max<int64_t>(1, bounds.least);
  target.policy.replicas_max = bounds.most.value_or(target.replicas);
  target.policy.interval = std::chrono::seconds(
      std::clamp<int64_t>(json::GetInt(*scaling, {"intervalSeconds"}, 30), 1,
                          std::chrono::duration_cast<std::chrono::seconds>(kScaleTimeMax).count()));
  target.policy.observations = static_cast<int>(
      std::clamp<int64_t>(json::GetInt(*scaling, {"observations"}, 5), 1, kObservationsMax));
  target.metric = "latency";
  if (!metrics.empty()) {
    for (std::string_view field : {"name", "regex"}) {
      if (!json::GetString(metrics[0], {field}).empty()) continue;
      return controllers::WrongField(StrCat("spec.autoscaling.metrics[0].", field),
                                     "Required value");
    }
    target.metric = json::GetString(metrics[0], {"name"}, target.metric);
    target.pattern = json::GetString(metrics[0], {"regex"});
    target.pattern_field = "spec.autoscaling.metrics[0].regex";
  }
  SWELL_RETURN_IF_ERROR(
      ReadStep("spec.autoscaling.step", json::GetString(*scaling, {"step"}), target.policy));
  SWELL_RETURN_IF_ERROR(ReadAnnotations(job, target));
  return std::optional<ScaleTarget>(std::move(target));
}

}  // namespace swell::autoscaling
