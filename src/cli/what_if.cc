#include "cli/what_if.h"

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "api/swell_keys.h"
#include "base/strings.h"

namespace swell::cli {
namespace {

const Resource kTopologies{"swell.dev", "v1", "topologies", false};

struct Listed {
  Resource resource;
  std::string kind;
};

const std::vector<Listed>& StateKinds() {
  static const std::vector<Listed>* kinds = new std::vector<Listed>{
      {client::resources::kNodes, "Node"},
      {client::resources::kPriorityClasses, "PriorityClass"},
      {client::resources::kNodePools, "NodePool"},
      {kTopologies, "Topology"},
      {client::resources::kProjects, "Project"},
      {client::resources::kPodGroups, "PodGroup"},
      {client::resources::kPersistentVolumes, "PersistentVolume"},
      {client::resources::kPersistentVolumeClaims, "PersistentVolumeClaim"},
      {client::resources::kPodDisruptionBudgets, "PodDisruptionBudget"},
      {client::resources::kStorageClasses, "StorageClass"},
      {client::resources::kPods, "Pod"},
  };
  return *kinds;
}

std::string GroupOf(const json::Value& object) {
  std::string_view kind = json::GetString(object, {"kind"});
  if (kind == "PodGroup") return api::KeyOf(object);
  if (kind != "Pod") return "";
  std::string_view group = api::Label(object, api::keys::kPodGroup);
  return group.empty() ? StrCat("/", api::KeyOf(object))
                       : StrCat(api::Namespace(object), "/", group);
}

std::string GpuList(const json::Value& decision) {
  std::vector<std::string> gpus;
  for (const json::Value& gpu : json::GetArray(decision, {"gpus"}))
    gpus.push_back(json::Print(gpu));
  return Join(gpus, ",");
}

// Members that must run together, of one role.
int64_t LeastOf(const json::Value& job, const json::Value& role, int64_t replicas) {
  int64_t least = json::GetInt(role, {"elastic", "minReplicas"}, replicas);
  if (json::Find(job, {"spec", "elasticPolicy"}) != nullptr) {
    least = json::GetInt(job, {"spec", "elasticPolicy", "minReplicas"}, 1);
  }
  return std::min(least, replicas);
}

json::Value PodOf(const json::Value& job,
                  const json::Value& pod_template,
                  const std::string& name,
                  std::string_view set,
                  const json::Value& group) {
  json::Value pod = pod_template;
  json::Set(pod, {"apiVersion"}, "v1");
  json::Set(pod, {"kind"}, "Pod");
  json::Set(pod, {"metadata", "name"}, name);
  json::Set(pod, {"metadata", "namespace"}, api::Namespace(job));
  json::Set(pod, {"metadata", "uid"}, "what-if-" + name);
  json::Set(pod, {"metadata", "creationTimestamp"},
            json::GetString(group, {"metadata", "creationTimestamp"}));
  json::Set(pod, {"metadata", "labels", api::keys::kPodGroup}, api::Name(job));
  json::Set(pod, {"metadata", "labels", api::keys::kPodSet}, set);
  json::Set(pod, {"spec", "schedulerName"}, "swell");
  json::Set(pod, {"status", "phase"}, "Pending");
  return pod;
}

}  // namespace

Result<json::Array> ReadState(Api& api) {
  std::vector<api::RestRequest> requests;
  for (const Listed& one : StateKinds()) {
    requests.push_back({.method = "GET", .path = one.resource.Path("")});
  }
  auto answers = api.CallAll(std::move(requests));
  json::Array state;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      // A server without that kind has none of it.
      if (answers[i].status().code() == Code::kNotFound) continue;
      return answers[i].status().WithContext("the state that the scheduler decides on");
    }
    SWELL_ASSIGN_OR_RETURN(json::Value list,
                           json::Parse(answers[i]->BodyString(), {.bytes = 1 << 30}));
    const Listed& kind = StateKinds()[i];
    json::Value* items = json::FindMutable(list, {"items"});
    if (items == nullptr || !items->is_array()) continue;
    for (json::Value& item : items->get_array()) {
      json::Set(item, {"apiVersion"}, kind.resource.ApiVersion());
      json::Set(item, {"kind"}, kind.kind);
      state.push_back(std::move(item));
    }
  }
  return state;
}

bool Outcome::promised() const {
  return std::any_of(places.begin(), places.end(), [](const Place& place) { return !place.now; });
}

Result<WhatIf> WhatIf::Make(Session& session, json::Array state) {
  if (!session.env().simulate) {
    return Status(Code::kNotAcceptable, "this program was built without the scheduler");
  }
  return WhatIf(session, std::move(state));
}

void WhatIf::AddJob(const json::Value& job, const JobKindInfo& kind) {
  state_ = Without(api::KeyOf(job));  // as it is now, if it is there
  std::string now = api::FormatTime(session_->Now());
  json::Value group = json::Object{{"apiVersion", "swell.dev/v1"},
                                   {"kind", "PodGroup"},
                                   {"metadata", json::Object{{"name", api::Name(job)},
                                                             {"namespace", api::Namespace(job)},
                                                             {"uid", "what-if"},
                                                             {"creationTimestamp", now}}}};
  const json::Value* policy = json::Find(job, {"spec", "runPolicy", "schedulingPolicy"});
  std::string_view priority = json::GetString(job, {"spec", "priorityClassName"});
  std::string_view project = json::GetString(job, {"spec", "project"});
  if (policy != nullptr) {
    priority = json::GetString(*policy, {"priorityClass"}, priority);
    project = json::GetString(*policy, {"queue"}, project);
  }
  if (std::string_view label = api::Label(job, api::keys::kProject); !label.empty()) {
    project = label;
  }
  if (!project.empty()) json::Set(group, {"spec", "project"}, project);
  std::string_view preemptible = json::GetString(job, {"spec", "preemption", "preemptibility"});
  if (!preemptible.empty()) json::Set(group, {"spec", "preemptibility"}, preemptible);
  json::Array sets, pods;
  for (const auto& role : json::GetObject(job, {"spec", kind.replica_specs})) {
    std::string set = ToLower(std::string_view(role.key().data(), role.key().size()));
    int64_t replicas = std::clamp<int64_t>(json::GetInt(role.value(), {"replicas"}, 1), 0, 10'000);
    sets.push_back(
        json::Object{{"name", set}, {"minMember", LeastOf(job, role.value(), replicas)}});
    const json::Value* pod_template = json::Find(role.value(), {"template"});
    if (pod_template == nullptr) continue;
    if (priority.empty()) priority = json::GetString(*pod_template, {"spec", "priorityClassName"});
    for (int64_t i = 0; i < replicas; ++i) {
      pods.push_back(
          PodOf(job, *pod_template, StrCat(api::Name(job), "-", set, "-", i), set, group));
    }
  }
  if (!priority.empty()) json::Set(group, {"spec", "priorityClassName"}, priority);
  json::Set(group, {"spec", "podSets"}, std::move(sets));
  state_.push_back(std::move(group));
  for (json::Value& pod : pods) state_.push_back(std::move(pod));
}

json::Array WhatIf::Without(const std::string& group) const {
  json::Array out;
  for (const json::Value& object : state_) {
    if (GroupOf(object) != group) out.push_back(object);
  }
  return out;
}

json::Value WhatIf::FirstCycle(const json::Array& state, Duration later) const {
  json::Value result = session_->env().simulate(state, session_->Now() + later);
  const json::Array& cycles = json::GetArray(result, {"cycles"});
  return cycles.empty() ? json::Value(json::Object{}) : cycles[0];
}

Outcome WhatIf::Run(const std::string& group, const json::Array& state, Duration later) const {
  std::map<std::string, std::string> group_of;
  json::Array others;
  for (const json::Value& object : state) {
    std::string of = GroupOf(object);
    if (json::GetString(object, {"kind"}) == "Pod") group_of[api::KeyOf(object)] = of;
    if (of != group) others.push_back(object);
  }
  const json::Value cycle = FirstCycle(state, later);
  const json::Value without = FirstCycle(others, later);
  // What happens anyway is not the group's doing.
  std::set<std::string> anyway;
  for (const json::Value& decision : json::GetArray(without, {"decisions"})) {
    if (json::GetString(decision, {"type"}) == "evict") {
      anyway.insert(std::string(json::GetString(decision, {"pod"})));
    }
  }
  Outcome outcome;
  for (const json::Value& decision : json::GetArray(cycle, {"decisions"})) {
    std::string pod(json::GetString(decision, {"pod"}));
    std::string_view type = json::GetString(decision, {"type"});
    std::string node(json::GetString(decision, {"node"}));
    if (type == "evict") {
      if (anyway.contains(pod)) continue;
      outcome.victims.push_back({pod, group_of[pod], node,
                                 std::string(json::GetString(decision, {"rule"})),
                                 std::string(json::GetString(decision, {"reason"}))});
    } else if (group_of[pod] == group) {
      outcome.places.push_back({pod, node, GpuList(decision), type == "bind"});
    }
  }
  for (const json::Value& pod : json::GetArray(cycle, {"pods"})) {
    std::string name(json::GetString(pod, {"name"}));
    if (group_of[name] != group || json::GetString(pod, {"status"}) != "Pending") continue;
    outcome.waiting.push_back(std::move(name));
    outcome.reason = json::GetString(pod, {"reason"}, outcome.reason);
  }
  return outcome;
}

int64_t LeastMembers(const json::Array& state, const std::string& group) {
  int64_t least = 0;
  for (const json::Value& object : state) {
    if (json::GetString(object, {"kind"}) != "PodGroup" || api::KeyOf(object) != group) continue;
    for (const json::Value& set : json::GetArray(object, {"spec", "podSets"})) {
      least += json::GetInt(set, {"minMember"}, 1);
    }
  }
  return std::max<int64_t>(1, least);
}

}  // namespace swell::cli
