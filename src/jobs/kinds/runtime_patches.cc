#include "jobs/kinds/runtime_patches.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/objects/pod.h"
#include "kube/api/patch/strategic.h"
#include "kube/api/schema/scheme.h"
#include "kube/controllers/wrong_field.h"

namespace swell::jobs {
namespace {

using controllers::WrongField;
using controllers::WrongText;

constexpr std::string_view kInstead = "Forbidden: write a runtime of your own";
constexpr std::string_view kContainerLists[] = {"initContainers", "containers"};
// Other fields of a pod are the runtime's. The pod's admission judges what these bring.
constexpr std::string_view kPodFields[] = {
    "affinity",           "containers",  "imagePullSecrets", "initContainers", "nodeSelector",
    "serviceAccountName", "tolerations", "schedulingGates",  "volumes"};
constexpr std::string_view kContainerFields[] = {"env", "name", "volumeMounts"};

template <size_t kSize>
bool IsIn(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The first key that the strategic merge would take for a directive, such as $patch; "" if none.
std::string DirectiveIn(const json::Value& value) {
  for (const json::Value& item : value.is_array() ? value.get_array() : json::Array()) {
    if (std::string found = DirectiveIn(item); !found.empty()) return found;
  }
  for (const auto& member : json::GetObject(value, {})) {
    if (member.key().starts_with('$')) return std::string(member.key());
    if (std::string found = DirectiveIn(member.value()); !found.empty()) return found;
  }
  return "";
}

Status CheckValue(const api::Schema& schema, const json::Value& value, const std::string& path) {
  if (const std::string directive = DirectiveIn(value); !directive.empty()) {
    return WrongField(StrCat(path, ".", directive),
                      "Forbidden: entries are added to the runtime's, which stay");
  }
  const std::vector<api::FieldError> errors = api::ValidateAgainst(schema, value, path);
  if (!errors.empty()) return WrongField(errors.front().field, errors.front().message);
  const std::vector<std::string> unknown = api::UnknownFields(schema, value);
  if (unknown.empty()) return Status::Ok();
  const std::string dot = unknown.front().starts_with("[") ? "" : ".";
  return WrongField(StrCat(path, dot, unknown.front()), "Forbidden: a pod has no such field");
}

Status CheckContainers(const json::Value& list, const std::string& path, std::string_view node) {
  if (!list.is_array()) return Status::Ok();
  for (size_t i = 0; i < list.get_array().size(); ++i) {
    const json::Value& container = list.get_array()[i];
    const std::string at = StrCat(path, "[", i, "]");
    for (const auto& member : json::GetObject(container, {})) {
      const std::string_view field(member.key().data(), member.key().size());
      if (!IsIn(kContainerFields, field)) return WrongField(StrCat(at, ".", field), kInstead);
    }
    if (api::ContainerName(container) == node && json::Find(container, {"env"}) != nullptr) {
      return WrongField(at + ".env", "Forbidden: the trainer's variables are in spec.trainer.env");
    }
  }
  return Status::Ok();
}

Status CheckPodFields(const json::Value& spec, const std::string& path, std::string_view node) {
  const api::Schema& pod = *api::PodTemplateSchema().Field("spec")->schema;
  for (const auto& member : json::GetObject(spec, {})) {
    const std::string_view field(member.key().data(), member.key().size());
    const std::string at = StrCat(path, ".", field);
    if (!IsIn(kPodFields, field)) return WrongField(at, kInstead);
    if (IsIn(kContainerLists, field)) {
      SWELL_RETURN_IF_ERROR(CheckContainers(member.value(), at, node));
    }
    SWELL_RETURN_IF_ERROR(CheckValue(*pod.Field(field)->schema, member.value(), at));
  }
  return Status::Ok();
}

// `holder`: what has metadata and spec, as a pod's template.
Result<RuntimePatch> ReadPatch(std::string path, const json::Value& holder, std::string_view node) {
  RuntimePatch patch{std::move(path), json::Object{}};
  const api::Schema& metadata = *api::PodTemplateSchema().Field("metadata")->schema;
  for (const auto& member : json::GetObject(holder, {"metadata"})) {
    const std::string_view field(member.key().data(), member.key().size());
    const std::string at = StrCat(patch.path, ".metadata.", field);
    if (field != "labels" && field != "annotations") return WrongField(at, kInstead);
    SWELL_RETURN_IF_ERROR(CheckValue(*metadata.Field(field)->schema, member.value(), at));
    json::Set(patch.change, {"metadata", field}, member.value());
  }
  if (const json::Value* spec = json::Find(holder, {"spec"})) {
    SWELL_RETURN_IF_ERROR(CheckPodFields(*spec, patch.path + ".spec", node));
    json::Set(patch.change, {"spec"}, *spec);
  }
  return patch;
}

Status CheckTarget(const std::string& path, std::string_view target, std::string_view node) {
  if (target == node) return Status::Ok();
  return WrongText(path, target,
                   StrCat("must be ", Quote(node), ", the only job of a runtime that is run"));
}

// 2.0 and 2.1: each entry names the jobs that it is for.
Status CheckTargets(const json::Value& entry, const std::string& path, std::string_view node) {
  const json::Array& targets = json::GetArray(entry, {"targetJobs"});
  if (targets.empty()) return WrongField(path + ".targetJobs", "Required value");
  for (size_t t = 0; t < targets.size(); ++t) {
    SWELL_RETURN_IF_ERROR(CheckTarget(StrCat(path, ".targetJobs[", t, "].name"),
                                      json::GetString(targets[t], {"name"}), node));
  }
  return Status::Ok();
}

// 2.0: the fields of a pod's spec stand beside the targets.
Status ReadSpecOverrides(const json::Value& job_spec,
                         std::string_view node,
                         std::vector<RuntimePatch>& patches) {
  const json::Array& overrides = json::GetArray(job_spec, {"podSpecOverrides"});
  for (size_t i = 0; i < overrides.size(); ++i) {
    const std::string path = StrCat("spec.podSpecOverrides[", i, "]");
    SWELL_RETURN_IF_ERROR(CheckTargets(overrides[i], path, node));
    json::Value spec = overrides[i];
    json::Remove(spec, {"targetJobs"});
    SWELL_RETURN_IF_ERROR(CheckPodFields(spec, path, node));
    patches.push_back({path, json::Object{{"spec", std::move(spec)}}});
  }
  return Status::Ok();
}

// 2.1: each entry has a template's metadata and spec.
Status ReadOverrides(const json::Value& job_spec,
                     std::string_view node,
                     std::vector<RuntimePatch>& patches) {
  const json::Array& overrides = json::GetArray(job_spec, {"podTemplateOverrides"});
  for (size_t i = 0; i < overrides.size(); ++i) {
    const std::string path = StrCat("spec.podTemplateOverrides[", i, "]");
    SWELL_RETURN_IF_ERROR(CheckTargets(overrides[i], path, node));
    SWELL_ASSIGN_OR_RETURN(RuntimePatch patch, ReadPatch(path, overrides[i], node));
    patches.push_back(std::move(patch));
  }
  return Status::Ok();
}

// 2.2: each entry has the shape of a runtime, down to the templates of its jobs' pods.
Status ReadPatches(const json::Value& job_spec,
                   std::string_view node,
                   std::vector<RuntimePatch>& patches) {
  const json::Array& managers = json::GetArray(job_spec, {"runtimePatches"});
  for (size_t i = 0; i < managers.size(); ++i) {
    const json::Array& jobs =
        json::GetArray(managers[i], {"trainingRuntimeSpec", "template", "spec", "replicatedJobs"});
    for (size_t j = 0; j < jobs.size(); ++j) {
      const std::string path = StrCat(
          "spec.runtimePatches[", i, "].trainingRuntimeSpec.template.spec.replicatedJobs[", j, "]");
      SWELL_RETURN_IF_ERROR(CheckTarget(path + ".name", json::GetString(jobs[j], {"name"}), node));
      const json::Value* pod = json::Find(jobs[j], {"template", "spec", "template"});
      if (pod == nullptr) continue;
      SWELL_ASSIGN_OR_RETURN(RuntimePatch patch,
                             ReadPatch(path + ".template.spec.template", *pod, node));
      patches.push_back(std::move(patch));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<RuntimePatch>> ReadRuntimePatches(const json::Value& job_spec,
                                                     std::string_view node) {
  std::vector<RuntimePatch> patches;
  SWELL_RETURN_IF_ERROR(ReadSpecOverrides(job_spec, node, patches));
  SWELL_RETURN_IF_ERROR(ReadOverrides(job_spec, node, patches));
  SWELL_RETURN_IF_ERROR(ReadPatches(job_spec, node, patches));
  return patches;
}

Status CheckContainersOf(const RuntimePatch& patch, const json::Value& pod_template) {
  for (std::string_view list : kContainerLists) {
    const json::Array& known = json::GetArray(pod_template, {"spec", list});
    const json::Array& changed = json::GetArray(patch.change, {"spec", list});
    for (size_t i = 0; i < changed.size(); ++i) {
      const std::string_view name = api::ContainerName(changed[i]);
      const bool found = std::any_of(known.begin(), known.end(), [&](const json::Value& one) {
        return api::ContainerName(one) == name;
      });
      if (!found) {
        return WrongText(StrCat(patch.path, ".spec.", list, "[", i, "].name"), name,
                         "the runtime's pods have no container of that name");
      }
    }
  }
  return Status::Ok();
}

Status ApplyRuntimePatch(const RuntimePatch& patch, json::Value& pod_template) {
  return api::ApplyStrategicMerge(api::PodTemplateSchema(), pod_template, patch.change);
}

}  // namespace swell::jobs
