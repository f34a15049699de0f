#include "cli/kinds.h"

#include <algorithm>
#include <set>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/flags.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

Kind Known(Resource resource,
           std::string kind,
           std::string singular,
           std::vector<std::string> short_names) {
  return {
      std::move(resource), std::move(kind), std::move(singular), std::move(short_names), {}, {}};
}

// What other systems' manifests name and nobody serves here unless its operator is installed.
struct ForeignKind {
  std::string_view group, kind;  // kind "": any
  std::string_view instead;
};

constexpr std::string_view kProjectInstead =
    "a queue with a quota is a Project here: swell project create NAME --gpu-quota N";
constexpr std::string_view kPodGroupInstead =
    "a PodGroup of swell.dev/v1 and the label swell.dev/pod-group of its pods say the same";
constexpr std::string_view kJobInstead =
    "a PyTorchJob, TFJob or MPIJob (kubeflow.org) or a TrainingJob (swell.dev/v1) starts its pods "
    "all or none";
constexpr std::string_view kServeInstead =
    "arena serve custom, tensorflow and triton start servers; kubectl applies Deployments";
constexpr std::string_view kOperatorInstead =
    "where its own operator and definitions are installed, its pods are placed as gangs";

constexpr ForeignKind kForeignKinds[] = {
    {"scheduling.volcano.sh", "Queue", kProjectInstead},
    {"scheduling.volcano.sh", "PodGroup", kPodGroupInstead},
    {"scheduling.x-k8s.io", "PodGroup", kPodGroupInstead},
    {"scheduling.run.ai", "Queue", kProjectInstead},
    {"scheduling.run.ai", "PodGroup", kPodGroupInstead},
    {"kueue.x-k8s.io", "ResourceFlavor",
     "nodes that are alike are a NodePool here: swell nodepool create NAME"},
    {"kueue.x-k8s.io", "", kProjectInstead},
    {"run.ai", "",
     "it has TrainingWorkload, InteractiveWorkload, DistributedWorkload and InferenceWorkload in "
     "run.ai/v2alpha1"},
    {"training.kubedl.io", "", kJobInstead},
    {"serving.kubedl.io", "", kServeInstead},
    {"inference.kubedl.io", "", kJobInstead},
    {"model.kubedl.io", "",
     "there is no registry of models: keep a model in a volume, or an image"},
    {"cache.kubedl.io", "", "keep the data in a volume: pods mount its PersistentVolumeClaim"},
    {"notebook.kubedl.io", "", "runai workspace submit NAME -i IMAGE starts a notebook"},
    {"kubeflow.org", "MXJob", kJobInstead},
    {"ray.io", "", kOperatorInstead},
    {"jobset.x-k8s.io", "", kOperatorInstead},
    {"leaderworkerset.x-k8s.io", "", kOperatorInstead},
};

std::string_view InsteadOf(std::string_view api_version, std::string_view kind) {
  const std::string_view group = api_version.substr(0, api_version.find('/'));
  for (const ForeignKind& foreign : kForeignKinds) {
    if (foreign.group == group && (foreign.kind.empty() || foreign.kind == kind)) {
      return foreign.instead;
    }
  }
  return "";
}

// "it has PyTorchJob in kubeflow.org/v1": kinds of that name, in small or capital letters, of the
// same group if there are any; empty if there are none.
std::string Namesakes(const std::vector<Kind>& kinds,
                      std::string_view api_version,
                      std::string_view name) {
  const size_t slash = api_version.find('/');  // the core group has none
  const std::string_view group =
      slash == std::string_view::npos ? "" : api_version.substr(0, slash);
  std::string same, others;
  for (const Kind& kind : kinds) {
    if (ToLower(kind.kind) != ToLower(name)) continue;
    std::string& found = kind.resource.group == group ? same : others;
    found +=
        StrCat(found.empty() ? "it has " : " and ", kind.kind, " in ", kind.resource.ApiVersion());
  }
  return same.empty() ? others : same;
}

bool Names(const Kind& kind, std::string_view word) {
  std::string lower = ToLower(word);
  if (lower == kind.resource.plural || lower == kind.singular || lower == ToLower(kind.kind)) {
    return true;
  }
  return std::find(kind.short_names.begin(), kind.short_names.end(), lower) !=
         kind.short_names.end();
}

// word is "name", "name.group" or "name.version.group".
bool Matches(const Kind& kind, std::string_view word) {
  if (Names(kind, word)) return true;
  size_t dot = word.find('.');
  if (dot == std::string_view::npos || !Names(kind, word.substr(0, dot))) return false;
  std::string_view rest = word.substr(dot + 1);
  return rest == kind.resource.group ||
         rest == StrCat(kind.resource.version, ".", kind.resource.group);
}

bool CanList(const Kind& kind) {
  return std::find(kind.verbs.begin(), kind.verbs.end(), "list") != kind.verbs.end();
}

void SplitGroupVersion(std::string_view text, Resource& resource) {
  size_t slash = text.find('/');
  resource.group = slash == std::string_view::npos ? "" : text.substr(0, slash);
  resource.version = slash == std::string_view::npos ? text : text.substr(slash + 1);
}

}  // namespace

const std::vector<Kind>& WellKnownKinds() {
  namespace r = client::resources;
  static const std::vector<Kind>* kinds = new std::vector<Kind>{
      Known(r::kPods, "Pod", "pod", {"po"}),
      Known(r::kNodes, "Node", "node", {"no"}),
      Known(r::kServices, "Service", "service", {"svc"}),
      Known(r::kEvents, "Event", "event", {"ev"}),
      Known(r::kConfigMaps, "ConfigMap", "configmap", {"cm"}),
      Known(r::kSecrets, "Secret", "secret", {}),
      Known(r::kNamespaces, "Namespace", "namespace", {"ns"}),
      Known(r::kServiceAccounts, "ServiceAccount", "serviceaccount", {"sa"}),
      Known(r::kPersistentVolumes, "PersistentVolume", "persistentvolume", {"pv"}),
      Known(r::kPersistentVolumeClaims, "PersistentVolumeClaim", "persistentvolumeclaim", {"pvc"}),
      Known(r::kPriorityClasses, "PriorityClass", "priorityclass", {"pc"}),
      Known(r::kJobs, "Job", "job", {}),
      Known(r::kPodGroups, "PodGroup", "podgroup", {}),
      Known(r::kProjects, "Project", "project", {}),
      Known(r::kNodePools, "NodePool", "nodepool", {}),
      Known(r::kPyTorchJobs, "PyTorchJob", "pytorchjob", {}),
  };
  return *kinds;
}

std::string Kind::SingularName() const {
  return resource.group.empty() ? singular : StrCat(singular, ".", resource.group);
}

std::string Kind::GroupResource() const { return resource.GroupResource(); }

Result<Kind> Kinds::Find(std::string_view word) {
  for (const Kind& kind : discovered_ ? kinds_ : WellKnownKinds()) {
    if (Matches(kind, word)) return kind;
  }
  SWELL_RETURN_IF_ERROR(Discover());
  std::vector<std::string> names;
  for (const Kind& kind : kinds_) {
    if (Matches(kind, word)) return kind;
    names.push_back(kind.resource.plural);
  }
  std::string near = NearestWord(word, names);
  return Status(Code::kNotFound,
                StrCat("the server has no resource type ", Quote(word), DidYouMean(near)));
}

Status NeitherJobNorKind(const Status& no_kind, std::string_view word, std::string_view ns) {
  return Status(no_kind.code(), StrCat("no job ", Quote(word), " in namespace ", Quote(ns),
                                       ", and ", no_kind.message()));
}

Result<Kind> Kinds::FindGvk(std::string_view api_version, std::string_view kind) {
  auto matches = [&](const Kind& one) {
    return one.resource.ApiVersion() == api_version && one.kind == kind;
  };
  for (const Kind& one : WellKnownKinds()) {
    if (matches(one)) return one;
  }
  SWELL_RETURN_IF_ERROR(Discover());
  for (const Kind& one : kinds_) {
    if (matches(one)) return one;
  }
  std::string hint(InsteadOf(api_version, kind));
  if (hint.empty()) hint = Namesakes(kinds_, api_version, kind);
  return Status(Code::kNotFound,
                StrCat("the server does not know kind ", Quote(kind), " in apiVersion ",
                       Quote(api_version), hint.empty() ? "" : "; ", hint));
}

std::vector<Kind> Kinds::InCategory(std::string_view category) {
  if (!Discover().ok()) return {};
  std::vector<Kind> found;
  // The first version of a kind is the preferred one.
  std::set<std::string> known;
  for (const Kind& kind : kinds_) {
    const auto& all = kind.categories;
    if (CanList(kind) && std::find(all.begin(), all.end(), category) != all.end() &&
        known.insert(kind.GroupResource()).second) {
      found.push_back(kind);
    }
  }
  return found;
}

Result<std::vector<Kind>> Kinds::All() {
  SWELL_RETURN_IF_ERROR(Discover());
  return kinds_;
}

Status Kinds::Discover() {
  if (discovered_) return Status::Ok();
  std::vector<api::RestRequest> requests;
  for (std::string_view path : {"/api", "/apis"}) {
    requests.push_back(
        {.method = "GET", .path = std::string(path), .accept = std::string(kAggregated)});
  }
  auto answers = api_.CallAll(std::move(requests));
  bool aggregated = true;
  for (auto& answer : answers) {
    if (!answer.ok()) return answer.status().WithContext("ask the server for its resources");
    SWELL_ASSIGN_OR_RETURN(json::Value list, json::Parse(answer->BodyString()));
    if (api::KindOf(list) == "APIGroupDiscoveryList") {
      SWELL_RETURN_IF_ERROR(Aggregated(list));
    } else {
      aggregated = false;
    }
  }
  if (!aggregated) {
    kinds_.clear();
    SWELL_RETURN_IF_ERROR(Classic());
  }
  discovered_ = true;
  return Status::Ok();
}

Status Kinds::Aggregated(const json::Value& list) {
  for (const json::Value& group : api::Items(list)) {
    for (const json::Value& version : json::GetArray(group, {"versions"})) {
      for (const json::Value& item : json::GetArray(version, {"resources"})) {
        Kind kind;
        kind.resource.group = json::GetString(group, {"metadata", "name"});
        kind.resource.version = json::GetString(version, {"version"});
        kind.resource.plural = json::GetString(item, {"resource"});
        kind.resource.namespaced = json::GetString(item, {"scope"}) == "Namespaced";
        kind.kind = json::GetString(item, {"responseKind", "kind"});
        kind.singular = json::GetString(item, {"singularResource"});
        kind.short_names = json::Texts(json::GetArray(item, {"shortNames"}));
        kind.categories = json::Texts(json::GetArray(item, {"categories"}));
        kind.verbs = json::Texts(json::GetArray(item, {"verbs"}));
        if (kind.singular.empty()) kind.singular = ToLower(kind.kind);
        kinds_.push_back(std::move(kind));
      }
    }
  }
  return Status::Ok();
}

Status Kinds::Classic() {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue groups,
                         api_.CallObject({.method = "GET", .path = "/apis"}));
  std::vector<std::string> versions{"v1"};
  for (const json::Value& group : json::GetArray(*groups, {"groups"})) {
    for (const json::Value& version : json::GetArray(group, {"versions"})) {
      versions.emplace_back(json::GetString(version, {"groupVersion"}));
    }
  }
  std::vector<api::RestRequest> requests;
  for (const std::string& version : versions) {
    requests.push_back(
        {.method = "GET",
         .path = StrCat(version.find('/') == std::string::npos ? "/api/" : "/apis/", version)});
  }
  auto answers = api_.CallAll(std::move(requests));
  for (size_t i = 0; i < answers.size(); ++i) {
    // An aggregated API whose server is away must not take the others with it.
    if (!answers[i].ok()) continue;
    auto list = json::Parse(answers[i]->BodyString());
    if (!list.ok()) continue;
    for (const json::Value& item : json::GetArray(*list, {"resources"})) {
      Kind kind;
      kind.resource.plural = json::GetString(item, {"name"});
      if (kind.resource.plural.find('/') != std::string::npos) continue;
      SplitGroupVersion(versions[i], kind.resource);
      kind.resource.namespaced = json::GetBool(item, {"namespaced"});
      kind.kind = api::KindOf(item);
      kind.singular = json::GetString(item, {"singularName"}, ToLower(kind.kind));
      if (kind.singular.empty()) kind.singular = ToLower(kind.kind);
      kind.short_names = json::Texts(json::GetArray(item, {"shortNames"}));
      kind.categories = json::Texts(json::GetArray(item, {"categories"}));
      kind.verbs = json::Texts(json::GetArray(item, {"verbs"}));
      kinds_.push_back(std::move(kind));
    }
  }
  return Status::Ok();
}

}  // namespace swell::cli
