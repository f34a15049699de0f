#include "cli/pods/pod_choice.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/views/job_view.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

struct SelectingKind {
  std::vector<std::string_view> names;
  const Resource* resource;
  bool match_labels;  // spec.selector.matchLabels; else spec.selector itself
};

const std::vector<SelectingKind>& SelectingKinds() {
  using namespace client::resources;
  static const std::vector<SelectingKind> kinds{
      {{"svc", "service", "services"}, &kServices, false},
      {{"rc", "replicationcontroller", "replicationcontrollers"}, &kReplicationControllers, false},
      {{"deploy", "deployment", "deployments", "deployment.apps"}, &kDeployments, true},
      {{"rs", "replicaset", "replicasets", "replicaset.apps"}, &kReplicaSets, true},
      {{"sts", "statefulset", "statefulsets", "statefulset.apps"}, &kStatefulSets, true},
      {{"ds", "daemonset", "daemonsets", "daemonset.apps"}, &kDaemonSets, true},
      {{"job", "jobs", "job.batch"}, &kJobs, true}};
  return kinds;
}

// The pods that the object selects.
Result<std::vector<json::SharedValue>> PodsOf(Api& api,
                                              const std::string& ns,
                                              const SelectingKind& kind,
                                              const json::Value& object) {
  const std::string_view name = api::Name(object);
  const json::Value* labels = kind.match_labels
                                  ? json::Find(object, {"spec", "selector", "matchLabels"})
                                  : json::Find(object, {"spec", "selector"});
  std::string selector;
  if (labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->get_object()) {
      if (!value.is_string()) continue;
      selector +=
          StrCat(selector.empty() ? "" : ",", json::View(key), "=", json::View(value.get_string()));
    }
  }
  if (selector.empty()) {
    return Status(Code::kBadRequest, StrCat(kind.names[1], "/", name, " selects no pods"));
  }
  SWELL_ASSIGN_OR_RETURN(auto pods,
                         api.List(client::resources::kPods, ns, {.label_selector = selector}));
  if (pods.empty()) {
    return Status(Code::kNotFound, StrCat(kind.names[1], "/", name, " has no pods"));
  }
  return pods;
}

// One that runs, else the first.
json::SharedValue OneThatRuns(const std::vector<json::SharedValue>& pods) {
  const auto found = std::find_if(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
    return api::Phase(*pod) == "Running";
  });
  return found == pods.end() ? pods.front() : *found;
}

// The pods of the workloads of that name: of all versions of a server. `none`: the error if no
// workload has it.
Result<std::vector<json::SharedValue>> PodsOfNamed(Api& api,
                                                   const std::string& ns,
                                                   std::string_view name,
                                                   Status none) {
  std::vector<json::SharedValue> all;
  for (const Workload& workload : WorkloadsNamed(api, ns, name)) {
    for (const SelectingKind& kind : SelectingKinds()) {
      if (kind.resource != workload.resource) continue;
      auto pods = PodsOf(api, ns, kind, *workload.object);
      if (!pods.ok()) none = pods.status();
      if (pods.ok()) all.insert(all.end(), pods->begin(), pods->end());
    }
  }
  if (all.empty()) return none;
  return all;
}

Result<ChosenPod> Selected(Api& api,
                           const std::string& ns,
                           const SelectingKind& kind,
                           const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue object, api.Get(*kind.resource, ns, name));
  SWELL_ASSIGN_OR_RETURN(const auto pods, PodsOf(api, ns, kind, *object));
  ChosenPod chosen{OneThatRuns(pods), nullptr};
  if (kind.resource == &client::resources::kServices) chosen.service = object;
  return chosen;
}

}  // namespace

Result<ChosenPod> ChoosePod(Api& api, const std::string& ns, const std::string& words) {
  const size_t slash = words.find('/');
  std::string name = words;
  bool pod_wanted = false;
  if (slash != std::string::npos) {
    const std::string kind = ToLower(words.substr(0, slash));
    name = words.substr(slash + 1);
    pod_wanted = kind == "pod" || kind == "pods" || kind == "po";
    for (const SelectingKind& one : SelectingKinds()) {
      for (std::string_view alias : one.names) {
        if (kind == alias) return Selected(api, ns, one, name);
      }
    }
    if (!pod_wanted) name = words;  // a job of some kind, as FindJob takes them
  }
  if (name.find('/') == std::string::npos) {
    auto pod = api.Get(client::resources::kPods, ns, name);
    if (pod.ok()) return ChosenPod{*pod, nullptr};
    if (pod_wanted || pod.status().code() != Code::kNotFound) return pod.status();
  }
  auto job = FindJob(api, ns, name);
  if (!job.ok()) {
    if (job.status().code() != Code::kNotFound) return job.status();
    const std::string none =
        StrCat("no pod and no job named ", Quote(name), " in namespace ", Quote(ns));
    SWELL_ASSIGN_OR_RETURN(const auto pods,
                           PodsOfNamed(api, ns, name, Status(Code::kNotFound, none)));
    return ChosenPod{OneThatRuns(pods), nullptr};
  }
  if (job->pods.empty()) {
    return Status(Code::kNotFound,
                  StrCat("job ", Quote(name), " has no pods; it is ", ToLower(job->status)));
  }
  return ChosenPod{job->pods[0], nullptr};
}

Result<std::vector<json::SharedValue>> PodsOfWorkload(Api& api,
                                                      const std::string& ns,
                                                      std::string_view words) {
  const size_t slash = words.find('/');
  const std::string said = slash == std::string_view::npos ? "" : ToLower(words.substr(0, slash));
  const std::string name(slash == std::string_view::npos ? words : words.substr(slash + 1));
  for (const SelectingKind& kind : SelectingKinds()) {
    const bool meant = std::find(kind.names.begin(), kind.names.end(), said) != kind.names.end();
    // Jobs have their own way to logs.
    if (!meant || kind.resource == &client::resources::kJobs) continue;
    SWELL_ASSIGN_OR_RETURN(const json::SharedValue object, api.Get(*kind.resource, ns, name));
    return PodsOf(api, ns, kind, *object);
  }
  Status none(Code::kNotFound, StrCat("no workload ", Quote(words), " in namespace ", Quote(ns)));
  if (said.empty()) {
    auto pods = PodsOfNamed(api, ns, name, none);
    if (pods.ok()) return pods;
    none = pods.status();
  }
  for (const OthersJob& job : ListOthersJobs(api, ns)) {
    const std::string kind = ToLower(job.kind);
    const bool meant = said.empty() || said == kind || said == StrCat(kind, "s");
    if (job.name != name || !meant) continue;
    SWELL_ASSIGN_OR_RETURN(
        auto pods, api.List(client::resources::kPods, ns,
                            {.label_selector = StrCat(api::keys::kPodGroup, "=", job.group)}));
    if (!pods.empty()) return pods;
    return Status(Code::kNotFound, StrCat(job.kind, " ", Quote(name), " has no pods"));
  }
  return none;
}

std::string DefaultContainer(const json::Value& pod) {
  const std::string_view annotated =
      api::Annotation(pod, "kubectl.kubernetes.io/default-container");
  if (!annotated.empty()) return std::string(annotated);
  const json::Array& containers = api::Containers(pod);
  return containers.empty() ? "" : std::string(api::ContainerName(containers[0]));
}

Result<std::string> ChooseContainer(const json::Value& pod, const std::string& named) {
  if (named.empty()) return DefaultContainer(pod);
  std::vector<std::string> all;
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      if (api::ContainerName(container) == named) return named;
      all.emplace_back(api::ContainerName(container));
    }
  }
  return Status(Code::kNotFound, StrCat("pod ", Quote(api::Name(pod)), " has no container ",
                                        Quote(named), "; it has ", Join(all, ", ")));
}

}  // namespace swell::cli
