#include "cli/pods/pod_choice.h"

#include "base/strings.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
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

Result<ChosenPod> Selected(Api& api,
                           const std::string& ns,
                           const SelectingKind& kind,
                           const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue object, api.Get(*kind.resource, ns, name));
  const json::Value* labels = kind.match_labels
                                  ? json::Find(*object, {"spec", "selector", "matchLabels"})
                                  : json::Find(*object, {"spec", "selector"});
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
  ChosenPod chosen;
  for (const json::SharedValue& pod : pods) {
    const bool runs = api::Phase(*pod) == "Running";
    if (!chosen.pod || (runs && api::Phase(*chosen.pod) != "Running")) {
      chosen.pod = pod;
    }
  }
  if (!chosen.pod) {
    return Status(Code::kNotFound, StrCat(kind.names[1], "/", name, " has no pods"));
  }
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
    return Status(Code::kNotFound,
                  StrCat("no pod and no job named ", Quote(name), " in namespace ", Quote(ns)));
  }
  if (job->pods.empty()) {
    return Status(Code::kNotFound,
                  StrCat("job ", Quote(name), " has no pods; it is ", ToLower(job->status)));
  }
  return ChosenPod{job->pods[0], nullptr};
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
