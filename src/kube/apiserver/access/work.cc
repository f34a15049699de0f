#include "kube/apiserver/access/work.h"

#include <algorithm>

#include "base/strings.h"
#include "json/path_search.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/code_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/runai_workload.h"

namespace swell::apiserver {
namespace {

// The object that has the templates of a job's roles below its spec.
bool HasRoles(Work work) {
  return work == Work::kJob || work == Work::kRuntime || work == Work::kCronWorkload;
}

// The deepest is that of a runtime: spec.template.spec.replicatedJobs[].template.spec.template.
constexpr int kTemplateDepthMax = 10;

std::vector<std::string_view> TemplatePath(Work work) {
  if (work == Work::kTemplate) return {"spec", "template"};
  if (work == Work::kCronTemplate) return {"spec", "jobTemplate", "spec", "template"};
  if (work == Work::kCronWorkload) return {"spec", "template", "workload"};
  return {};
}

// `Value`: const or not, as its parts are wanted.
template <class Value>
void Collect(Value& value, int depth, std::vector<Value*>& found) {
  if (depth > kTemplateDepthMax) return;
  if (value.is_array()) {
    for (Value& item : value.get_array()) Collect(item, depth + 1, found);
    return;
  }
  if (!value.is_object()) return;
  for (auto& [key, item] : value.get_object()) {
    const std::string_view name(key.data(), key.size());
    if (name == "template" && item.is_object()) found.push_back(&item);
    // A TrainJob's: each has a template's metadata and spec.
    if (name == "podTemplateOverrides" && item.is_array()) {
      for (Value& one : item.get_array()) {
        if (one.is_object()) found.push_back(&one);
      }
    }
    Collect(item, depth + 1, found);
  }
}

void DropIfNumber(json::Object& fields, std::string_view name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return;
  if (found->value().is_number() || found->value().is_bool()) json::StableErase(fields, name);
}

// How many pods there are and whether they run now says nothing about what they are. Where people
// choose the keys, an entry may have the name of such a field: the volume of a Run:ai workload.
void DropNumbers(json::Value& value, int depth) {
  if (depth > kTemplateDepthMax) return;
  if (value.is_array()) {
    for (json::Value& item : value.get_array()) DropNumbers(item, depth + 1);
    return;
  }
  if (!value.is_object()) return;
  json::Object& fields = value.get_object();
  for (const char* field : {"replicas", "suspend"}) DropIfNumber(fields, field);
  for (auto& [key, item] : fields) {
    if (std::string_view(key.data(), key.size()) != "template") DropNumbers(item, depth + 1);
  }
}

// The numbers of a Run:ai workload are {value: N}. Deeper than in the spec, people choose the keys.
void DropWorkloadNumbers(json::Value& spec) {
  for (std::string_view field : {"workers", "minScale", "maxScale"}) {
    const json::Value* number = json::Find(spec, {field, "value"});
    if (number != nullptr && number->is_number()) json::Remove(spec, {field});
  }
}

std::string FindSystemClass(const json::Value& value, int depth) {
  std::string found;
  if (depth > kTemplateDepthMax) return found;
  if (value.is_array()) {
    for (const json::Value& item : value.get_array()) {
      if (found.empty()) found = FindSystemClass(item, depth + 1);
    }
  }
  if (!value.is_object()) return found;
  for (const auto& [key, item] : value.get_object()) {
    if (!found.empty()) return found;
    const std::string_view name(key.data(), key.size());
    const bool names = name == "priorityClassName" || name == "priorityClass";
    if (names && item.is_string() && IsSystemClass(json::View(item.get_string()))) {
      return std::string(json::View(item.get_string()));
    }
    found = FindSystemClass(item, depth + 1);
  }
  return found;
}

}  // namespace

bool IsSystemClass(std::string_view priority_class) {
  return priority_class.starts_with("system-");
}

std::string SystemClassIn(Work work, const json::Value& object) {
  if (work == Work::kPod) {
    const std::string_view own = json::GetString(object, {"spec", "priorityClassName"});
    return IsSystemClass(own) ? std::string(own) : "";
  }
  const json::Value* spec = json::Find(object, {"spec"});
  return spec != nullptr ? FindSystemClass(*spec, 0) : "";
}

Work WorkOf(const api::KindInfo& kind) {
  const std::string& group = kind.gvk.group;
  const std::string& name = kind.gvk.kind;
  if (group.empty() && name == "Pod") return Work::kPod;
  if (group.empty() && name == "ReplicationController") return Work::kTemplate;
  if (group == "apps" && kind.plural != "controllerrevisions") return Work::kTemplate;
  if (group == "batch") return name == "CronJob" ? Work::kCronTemplate : Work::kTemplate;
  if (group == "apps.kubedl.io" && name == "Cron") return Work::kCronWorkload;
  if (group == "trainer.kubeflow.org" && name != "TrainJob") return Work::kRuntime;
  static const std::vector<api::Definition> jobs = api::JobDefinitions();
  const bool job = std::any_of(jobs.begin(), jobs.end(), [&](const api::Definition& one) {
    return one.group == group && one.kind == name;
  });
  return job ? Work::kJob : Work::kNone;
}

json::Value* TemplateOf(Work work, json::Value& object) {
  json::Value* at = &object;
  for (std::string_view step : TemplatePath(work)) at = at ? json::FindMutable(*at, {step}) : at;
  return at == &object || at == nullptr || !at->is_object() ? nullptr : at;
}

const json::Value* TemplateOf(Work work, const json::Value& object) {
  const json::Value* at = &object;
  for (std::string_view step : TemplatePath(work)) at = at ? json::Find(*at, {step}) : at;
  return at == &object || at == nullptr || !at->is_object() ? nullptr : at;
}

json::Value* JobTemplateOf(Work work, json::Value& object) {
  if (work == Work::kCronWorkload) return TemplateOf(work, object);
  if (work != Work::kCronTemplate) return nullptr;
  json::Value* job = json::FindMutable(object, {"spec", "jobTemplate"});
  return job != nullptr && job->is_object() ? job : nullptr;
}

std::vector<json::Value*> TemplatesOf(Work work, json::Value& object) {
  std::vector<json::Value*> found;
  if (HasRoles(work)) {
    json::Value* job = work == Work::kCronWorkload ? TemplateOf(work, object) : &object;
    json::Value* spec = job != nullptr ? json::FindMutable(*job, {"spec"}) : nullptr;
    if (spec != nullptr) Collect(*spec, 0, found);
  } else if (json::Value* one = TemplateOf(work, object)) {
    found.push_back(one);
  }
  return found;
}

std::vector<const json::Value*> TemplatesOf(Work work, const json::Value& object) {
  std::vector<const json::Value*> found;
  if (HasRoles(work)) {
    const json::Value* job = work == Work::kCronWorkload ? TemplateOf(work, object) : &object;
    const json::Value* spec = job != nullptr ? json::Find(*job, {"spec"}) : nullptr;
    if (spec != nullptr) Collect(*spec, 0, found);
  } else if (const json::Value* one = TemplateOf(work, object)) {
    found.push_back(one);
  }
  return found;
}

std::vector<json::Value> SpecChangesOf(Work work, const json::Value& object) {
  std::vector<json::Value> pods;
  if (!TakesRuntime(work, object)) return pods;
  const json::Value* job = work == Work::kJob ? &object : TemplateOf(work, object);
  for (const json::Value& change : json::GetArray(*job, {"spec", "podSpecOverrides"})) {
    pods.push_back(json::Object{{"spec", change}});
  }
  return pods;
}

std::vector<MadePod> MadePodsOf(Work work, const json::Value& object) {
  std::vector<MadePod> pods;
  const bool cron = work == Work::kCronWorkload;
  if (!cron && work != Work::kJob) return pods;
  const json::Value* job = cron ? TemplateOf(work, object) : &object;
  const std::string_view version = cron
                                       ? json::GetString(object, {"spec", "template", "apiVersion"})
                                       : api::ApiVersionOf(object);
  if (job == nullptr || !version.starts_with("run.ai/")) return pods;
  auto add = [&](std::string_view part, const json::Value& body) {
    json::Value pod = json::Object();
    json::Value container = json::Object{{"name", part == "spec" ? "worker" : "master"}};
    api::SetWorkloadRights(body, pod, container);
    json::Set(pod, {"spec", "containers"}, json::Array{std::move(container)});
    pods.push_back({StrCat(cron ? "spec.template.workload." : "", part), std::move(pod)});
  };
  const json::Value& body = api::Spec(*job);
  add("spec", body);
  if (const json::Value* master = json::Find(*job, {"masterSpec"})) {
    add("masterSpec", api::WithMasterSpec(body, *master));
  }
  return pods;
}

bool TakesRuntime(Work work, const json::Value& object) {
  if (work != Work::kJob && work != Work::kCronWorkload) return false;
  const json::Value* job = work == Work::kJob ? &object : TemplateOf(work, object);
  return job != nullptr && json::Find(*job, {"spec", "runtimeRef"}) != nullptr;
}

std::string PathOfTemplate(const json::Value& object, const json::Value& pods) {
  // Templates of a Cron's job are below the path to that job.
  const auto is_it = [&pods](std::string_view, const json::Value& value) {
    return &value == &pods;
  };
  return json::FindPathOf(object, 2 * kTemplateDepthMax, is_it).value_or("");
}

bool PodsDiffer(Work work, const json::Value& object, const json::Value& old) {
  // The one annotation of a job that says what its pods run.
  constexpr std::string_view kCode = api::keys::kGitSync;
  if (work == Work::kJob && api::Annotation(object, kCode) != api::Annotation(old, kCode)) {
    return true;
  }
  // The master of a Run:ai workload is beside the spec.
  const auto master = [](const json::Value& of) {
    const json::Value* found = json::Find(of, {"masterSpec"});
    return found != nullptr ? *found : json::Value();
  };
  if (!json::Equal(master(object), master(old))) return true;
  const json::Value* now = json::Find(object, {"spec"});
  const json::Value* before = json::Find(old, {"spec"});
  if (now == nullptr || before == nullptr) return now != before;
  if (json::Equal(*now, *before)) return false;
  // Its kind and version say what the job of a Cron is as much as the job itself.
  if (work == Work::kCronWorkload) {
    const json::Value* is = json::Find(object, {"spec", "template"});
    const json::Value* was = json::Find(old, {"spec", "template"});
    return is != nullptr && (was == nullptr || !json::Equal(*is, *was));
  }
  if (!TemplatePath(work).empty()) {
    const json::Value* is = TemplateOf(work, object);
    const json::Value* was = TemplateOf(work, old);
    return is != nullptr && (was == nullptr || !json::Equal(*is, *was));
  }
  json::Value a = *now;
  json::Value b = *before;
  for (json::Value* spec : {&a, &b}) {
    DropNumbers(*spec, 0);
    DropWorkloadNumbers(*spec);
  }
  return !json::Equal(a, b);
}

}  // namespace swell::apiserver
