#include "autoscaling/metric_specs.h"

#include <algorithm>

#include "autoscaling/scale_target.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/wrong_field.h"

namespace swell::autoscaling {
namespace {

using controllers::WrongField;

constexpr size_t kMetricsMax = 32;

Status Required(std::string_view field) { return WrongField(field, "Required value"); }

Result<double> ReadQuantity(const json::Value& target,
                            std::string_view field,
                            std::string_view name) {
  const json::Value* value = json::Find(target, {name});
  const std::string path = StrCat(field, ".", name);
  if (value == nullptr) return Required(path);
  auto quantity = api::Quantity::FromJson(*value);
  if (!quantity.ok()) {
    return WrongField(path, StrCat("Invalid value: ", json::Print(*value), ": must be a quantity"));
  }
  const double amount = static_cast<double>(quantity->MilliValue()) / 1000;
  if (amount > 0) return amount;
  return WrongField(path, StrCat("Invalid value: ", json::Print(*value), ": must be positive"));
}

// `types`: those that the source can have.
Status ReadTarget(const json::Value& source,
                  const std::string& where,
                  std::vector<std::string> types,
                  MetricSpec& spec) {
  const std::string field = where + ".target";
  const json::Value* target = json::Find(source, {"target"});
  if (target == nullptr || !target->is_object()) return Required(field);
  const std::string type(json::GetString(*target, {"type"}));
  if (type.empty()) return Required(field + ".type");
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    std::string all;
    for (const std::string& one : types) all += StrCat(all.empty() ? "" : ", ", Quote(one));
    return WrongField(field + ".type",
                      StrCat("Unsupported value: ", Quote(type), ": supported values: ", all));
  }
  spec.average = type != "Value";
  spec.utilization = type == "Utilization";
  if (spec.utilization) {
    if (json::Find(*target, {"averageUtilization"}) == nullptr) {
      return Required(field + ".averageUtilization");
    }
    const int64_t percent = json::GetInt(*target, {"averageUtilization"});
    if (percent < 1) {
      return WrongField(field + ".averageUtilization", percent, "must be greater than 0");
    }
    spec.target = static_cast<double>(percent);
    return Status::Ok();
  }
  SWELL_ASSIGN_OR_RETURN(spec.target,
                         ReadQuantity(*target, field, spec.average ? "averageValue" : "value"));
  return Status::Ok();
}

Status ReadResource(const json::Value& source,
                    const std::string& field,
                    bool of_container,
                    MetricSpec& spec) {
  spec.name = json::GetString(source, {"name"});
  if (spec.name.empty()) return Required(field + ".name");
  if (spec.name != "cpu" && spec.name != "memory") {
    return WrongField(field + ".name", StrCat("Unsupported value: ", Quote(spec.name),
                                              ": supported values: \"cpu\", \"memory\""));
  }
  if (of_container) {
    spec.container = json::GetString(source, {"container"});
    if (spec.container.empty()) return Required(field + ".container");
  }
  return ReadTarget(source, field, {"Utilization", "AverageValue"}, spec);
}

Status ReadNamed(const json::Value& source,
                 const std::string& field,
                 std::vector<std::string> types,
                 MetricSpec& spec) {
  spec.name = json::GetString(source, {"metric", "name"});
  if (spec.name.empty()) return Required(field + ".metric.name");
  if (const json::Value* found = json::Find(source, {"metric", "selector"})) {
    auto selector = api::LabelSelector::FromJson(found);
    if (!selector.ok()) {
      return WrongField(field + ".metric.selector",
                        StrCat("Invalid value: ", selector.status().message()));
    }
    spec.selector = selector->ToString();
  }
  return ReadTarget(source, field, std::move(types), spec);
}

// The resource of a kind, by the rule that Kubernetes guesses by.
std::string GuessedPlural(std::string_view kind) {
  std::string plural = ToLower(kind);
  if (plural == "endpoints") return plural;
  if (plural.ends_with('s')) return plural + "es";
  if (!plural.ends_with('y')) return plural + "s";
  plural.pop_back();
  return plural + "ies";
}

Status ReadObject(const json::Value& source, const std::string& field, MetricSpec& spec) {
  const std::string object = field + ".describedObject";
  const std::string kind(json::GetString(source, {"describedObject", "kind"}));
  spec.object_name = json::GetString(source, {"describedObject", "name"});
  if (json::Find(source, {"describedObject"}) == nullptr) return Required(object);
  if (kind.empty()) return Required(object + ".kind");
  if (spec.object_name.empty()) return Required(object + ".name");
  const std::string_view version = json::GetString(source, {"describedObject", "apiVersion"});
  const size_t slash = version.find('/');
  if (slash != std::string_view::npos) spec.object_group = version.substr(0, slash);
  spec.object_resource = GuessedPlural(kind);
  return ReadNamed(source, field, {"Value", "AverageValue"}, spec);
}

Result<MetricSpec> ReadMetric(const json::Value& metric, const std::string& field) {
  if (!metric.is_object()) return WrongField(field, "Invalid value: must be an object");
  MetricSpec spec;
  const std::string type(json::GetString(metric, {"type"}));
  auto source = [&](std::string_view name) { return json::Find(metric, {name}); };
  if (type.empty()) return Required(field + ".type");
  if (type == "Resource" || type == "ContainerResource") {
    const bool of_container = type != "Resource";
    const std::string name = of_container ? "containerResource" : "resource";
    if (source(name) == nullptr) return Required(StrCat(field, ".", name));
    SWELL_RETURN_IF_ERROR(
        ReadResource(*source(name), StrCat(field, ".", name), of_container, spec));
  } else if (type == "Pods") {
    spec.source = MetricSpec::Source::kPods;
    if (source("pods") == nullptr) return Required(field + ".pods");
    SWELL_RETURN_IF_ERROR(ReadNamed(*source("pods"), field + ".pods", {"AverageValue"}, spec));
  } else if (type == "External") {
    spec.source = MetricSpec::Source::kExternal;
    if (source("external") == nullptr) return Required(field + ".external");
    SWELL_RETURN_IF_ERROR(
        ReadNamed(*source("external"), field + ".external", {"Value", "AverageValue"}, spec));
  } else if (type == "Object") {
    spec.source = MetricSpec::Source::kObject;
    if (source("object") == nullptr) return Required(field + ".object");
    SWELL_RETURN_IF_ERROR(ReadObject(*source("object"), field + ".object", spec));
  } else {
    return WrongField(field + ".type",
                      StrCat("Unsupported value: ", Quote(type),
                             ": supported values: \"Resource\", \"ContainerResource\", \"Pods\", "
                             "\"Object\", \"External\""));
  }
  return spec;
}

Status ReadTimes(const json::Value& job, TargetRole& role) {
  SWELL_RETURN_IF_ERROR(
      ReadScaleTime(job, kScaleInterval, kScaleIntervalMin, role.policy.interval));
  SWELL_RETURN_IF_ERROR(ReadScaleTime(job, kScaleWindow, Duration(0), role.policy.window));
  role.pattern = api::Annotation(job, kScalePattern);
  role.pattern_field = StrCat("metadata.annotations[", kScalePattern, "]");
  return Status::Ok();
}

}  // namespace

Result<std::vector<MetricSpec>> ReadMetricSpecs(const json::Array& metrics,
                                                std::string_view field) {
  if (metrics.size() > kMetricsMax) {
    return WrongField(
        field, StrCat("Too many: ", metrics.size(), ": must have at most ", kMetricsMax, " items"));
  }
  std::vector<MetricSpec> specs;
  for (size_t i = 0; i < metrics.size(); ++i) {
    SWELL_ASSIGN_OR_RETURN(MetricSpec spec, ReadMetric(metrics[i], StrCat(field, "[", i, "]")));
    specs.push_back(std::move(spec));
  }
  return specs;
}

bool IsMetricSpec(const json::Value& metric) {
  return metric.is_object() && json::Find(metric, {"type"}) != nullptr;
}

Result<std::optional<TargetRole>> PyTorchTargetRole(const json::Value& job) {
  constexpr std::string_view kField = "spec.elasticPolicy";
  const json::Array& metrics = json::GetArray(job, {"spec", "elasticPolicy", "metrics"});
  const json::Value* worker = json::Find(job, {"spec", "pytorchReplicaSpecs", "Worker"});
  if (metrics.empty() || worker == nullptr) return std::optional<TargetRole>();
  const api::ReplicaBounds bounds = api::ElasticPolicy(api::Spec(job)).bounds;
  TargetRole role;
  role.role = "Worker";
  role.path = {"spec", "pytorchReplicaSpecs", "Worker", "replicas"};
  role.replicas = api::ReplicasOf(*worker);
  if (!bounds.most) return Required(StrCat(kField, ".maxReplicas"));
  role.policy.replicas_min = std::max<int64_t>(1, bounds.least);
  role.policy.replicas_max = *bounds.most;
  SWELL_ASSIGN_OR_RETURN(role.metrics, ReadMetricSpecs(metrics, StrCat(kField, ".metrics")));
  SWELL_RETURN_IF_ERROR(ReadTimes(job, role));
  return std::optional<TargetRole>(std::move(role));
}

Result<std::optional<TargetRole>> TrainingTargetRole(const json::Value& job) {
  constexpr std::string_view kField = "spec.autoscaling.metrics";
  const json::Value* scaling = json::Find(job, {"spec", "autoscaling"});
  if (scaling == nullptr || json::GetString(*scaling, {"mode"}) != "Metric") {
    return std::optional<TargetRole>();
  }
  const json::Array& metrics = json::GetArray(*scaling, {"metrics"});
  if (std::none_of(metrics.begin(), metrics.end(), IsMetricSpec)) {
    return std::optional<TargetRole>();
  }
  TargetRole role;
  role.role = json::GetString(*scaling, {"role"}, "worker");
  const json::Value* spec = json::Find(job, {"spec", "roles", role.role});
  const json::Value* elastic = spec ? json::Find(*spec, {"elastic"}) : nullptr;
  if (elastic == nullptr) {
    return controllers::WrongText("spec.autoscaling.role", role.role,
                                  "must be a role with elastic");
  }
  role.path = {"spec", "roles", role.role, "replicas"};
  role.replicas = api::ReplicasOf(*spec);
  const api::ReplicaBounds bounds(*elastic);
  role.policy.replicas_min = std::max<int64_t>(1, bounds.least);
  role.policy.replicas_max = bounds.most.value_or(role.replicas);
  if (json::Find(*scaling, {"intervalSeconds"}) != nullptr) {
    role.policy.interval = std::chrono::seconds(
        std::clamp<int64_t>(json::GetInt(*scaling, {"intervalSeconds"}), 1, 86'400));
  }
  SWELL_ASSIGN_OR_RETURN(role.metrics, ReadMetricSpecs(metrics, kField));
  SWELL_RETURN_IF_ERROR(ReadTimes(job, role));
  return std::optional<TargetRole>(std::move(role));
}

}  // namespace swell::autoscaling
