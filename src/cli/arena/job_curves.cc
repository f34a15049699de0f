#include "cli/arena/job_curves.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"

namespace swell::cli::arena {
namespace {

constexpr std::string_view kLogDir = "SWELL_LOG_DIR";

// The first container that is told where to write curves, and its pod.
struct Writer {
  const json::Value* pod = nullptr;  // its spec
  const json::Value* container = nullptr;
  std::string log_dir;
};

Writer FindWriter(const json::Value& pod_template) {
  const json::Value* pod = json::Find(pod_template, {"spec"});
  if (pod == nullptr) return {};
  for (const json::Value& container : json::GetArray(*pod, {"containers"})) {
    for (const json::Value& variable : json::GetArray(container, {"env"})) {
      if (json::GetString(variable, {"name"}) != kLogDir) continue;
      const std::string_view value = json::GetString(variable, {"value"});
      if (!value.empty()) return {pod, &container, std::string(value)};
    }
  }
  return {};
}

Writer FindWriter(const JobView& job) {
  if (job.kind->roles.empty()) {
    const json::Value* pod = api::TemplateOf(api::Spec(*job.object));
    return pod == nullptr ? Writer{} : FindWriter(*pod);
  }
  for (const RoleEntry& role : RolesOf(*job.object, *job.kind)) {
    const json::Value* pod = api::TemplateOf(*role.spec);
    Writer writer = pod == nullptr ? Writer{} : FindWriter(*pod);
    if (writer.pod != nullptr) return writer;
  }
  return {};
}

// The mount that the folder is in; null: it is in the container's own files.
const json::Value* MountOf(const json::Value& container, std::string_view folder) {
  const json::Value* best = nullptr;
  for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
    const std::string_view path = json::GetString(mount, {"mountPath"});
    if (path.empty() || !IsBelow(folder, path)) continue;
    if (best == nullptr || path.size() > json::GetString(*best, {"mountPath"}).size()) {
      best = &mount;
    }
  }
  return best;
}

// The volume as another pod can mount it; empty: none can.
json::Object SourceOf(const json::Value& pod, std::string_view volume) {
  json::Object source;
  for (const json::Value& one : json::GetArray(pod, {"volumes"})) {
    if (json::GetString(one, {"name"}) != volume || !one.is_object()) continue;
    source = one.get_object();
    source.erase("name");
  }
  return source.contains("emptyDir") || source.contains("ephemeral") ? json::Object() : source;
}

Status AddVolume(const JobView& job, const Writer& writer, PyTorchSpec& spec) {
  const auto refused = [&](std::string_view why) {
    return Status(Code::kConflict,
                  StrCat(job.name, " writes its curves to ", writer.log_dir, ", ", why, ": set ",
                         kLogDir, " to a folder of a volume that other pods can mount"));
  };
  const json::Value* mount = MountOf(*writer.container, writer.log_dir);
  if (mount == nullptr) return refused("a folder of its containers");
  for (const char* part : {"subPath", "subPathExpr"}) {
    if (!json::GetString(*mount, {part}).empty()) return refused("a part of a volume");
  }
  json::Object source = SourceOf(*writer.pod, json::GetString(*mount, {"name"}));
  if (source.empty()) return refused("a volume that ends with each of its pods");
  spec.mounts.push_back({.source = std::move(source),
                         .path = std::string(json::GetString(*mount, {"mountPath"})),
                         .read_only = true});
  return Status::Ok();
}

}  // namespace

Result<JobCurves> CurvesOf(const JobView& job) {
  const Writer writer = FindWriter(job);
  if (writer.pod == nullptr) {
    return Status(Code::kConflict,
                  StrCat(job.name, " writes no curves: none of its containers has ", kLogDir,
                         ". Submit it with curves for TensorBoard, with `arena submit "
                         "--tensorboard`, or set ",
                         kLogDir, " to a folder of a volume"));
  }
  JobCurves curves{.log_dir = writer.log_dir, .spec = {}};
  PyTorchSpec& spec = curves.spec;
  spec.name = job.name;
  spec.ns = job.ns;
  spec.image = json::GetString(*writer.container, {"image"});
  spec.priority = job.priority;
  spec.scheduler = json::GetString(*writer.pod, {"schedulerName"});
  for (const json::Value& secret : json::GetArray(*writer.pod, {"imagePullSecrets"})) {
    spec.image_pull_secrets.emplace_back(json::GetString(secret, {"name"}));
  }
  for (const auto& label : json::GetObject(*writer.pod, {"nodeSelector"})) {
    if (!label.value().is_string()) continue;
    spec.selectors.emplace_back(std::string(label.key().data(), label.key().size()),
                                std::string(json::View(label.value().get_string())));
  }
  const bool remote = writer.log_dir.find("://") != std::string::npos;
  if (!remote) SWELL_RETURN_IF_ERROR(AddVolume(job, writer, spec));
  return curves;
}

}  // namespace swell::cli::arena
