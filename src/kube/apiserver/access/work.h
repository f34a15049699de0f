// Work: the kinds of objects that people bring and that become pods, and the pods' templates in
// them.
// - Threads: pure functions.
// - Ownership: templates are parts of the object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/api/schema/scheme.h"

namespace swell::apiserver {

enum class Work {
  kNone,
  kPod,
  kJob,           // one of the job kinds that Swell brings: templates are where its roles are
  kTemplate,      // spec.template
  kCronTemplate,  // spec.jobTemplate.spec.template
  kCronWorkload,  // spec.template.workload: a job, whose templates are where its roles are
  kRuntime,       // what TrainJobs take their templates from
};
Work WorkOf(const api::KindInfo& kind);

// What a controller makes pods or jobs of: the template of a built-in workload or cron job, the job
// of a Cron. Null where the object has none.
json::Value* TemplateOf(Work work, json::Value& object);
const json::Value* TemplateOf(Work work, const json::Value& object);
// The job that a Cron or a CronJob makes again and again. Null for other kinds.
json::Value* JobTemplateOf(Work work, json::Value& object);
// All templates of pods in the object; a pod has no template. Those of a Cron are those of its job.
std::vector<json::Value*> TemplatesOf(Work work, json::Value& object);
std::vector<const json::Value*> TemplatesOf(Work work, const json::Value& object);
// What a TrainJob changes in its runtime's pods without a template around it (podSpecOverrides),
// each as a pod.
std::vector<json::Value> SpecChangesOf(Work work, const json::Value& object);
// A pod that a job's controller makes of other fields than a template, with all that rights decide
// about: those of a Run:ai workload.
struct MadePod {
  std::string part;  // the fields: "spec", "spec.template.workload.masterSpec"
  json::Value pod;   // with one container
};
std::vector<MadePod> MadePodsOf(Work work, const json::Value& object);
// Whether the templates are changes to those of a runtime, which others may write: parts of pods.
bool TakesRuntime(Work work, const json::Value& object);
// The path to one of the templates: "spec.pytorchReplicaSpecs.Worker.template".
std::string PathOfTemplate(const json::Value& object, const json::Value& pods);

// A class of pods that Kubernetes itself needs: "system-node-critical".
bool IsSystemClass(std::string_view priority_class);
// The class of that sort that the object's pods would have; empty: there is no such class in it.
std::string SystemClassIn(Work work, const json::Value& object);

// Whether the pods that the object asks for differ, apart from their number.
bool PodsDiffer(Work work, const json::Value& object, const json::Value& old);

}  // namespace swell::apiserver
