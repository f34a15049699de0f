#include "cli/jobs/what_if.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod_group.h"
#include "kube/client/usage_record.h"

namespace swell::cli {
namespace {

const Resource kTopologies{"swell.dev", "v1", "topologies", false};

struct Listed {
  Resource resource;
  std::string kind;
  std::string ns = {};    // empty: of all
  std::string name = {};  // empty: all of them
};

const std::vector<Listed>& StateKinds() {
  static const std::vector<Listed>* kinds = new std::vector<Listed>{
      {client::resources::kNamespaces, "Namespace"},
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
      {client::resources::kDeviceClasses, "DeviceClass"},
      {client::resources::kResourceSlices, "ResourceSlice"},
      {client::resources::kDeviceTaintRules, "DeviceTaintRule"},
      {client::resources::kResourceClaims, "ResourceClaim"},
      {client::resources::kPods, "Pod"},
      {client::resources::kConfigMaps, "ConfigMap", std::string(client::kUsageNamespace),
       std::string(api::keys::kSchedulerSettings)},
  };
  return *kinds;
}

std::string GpuList(const json::Value& decision) {
  std::vector<std::string> gpus;
  for (const json::Value& gpu : json::GetArray(decision, {"gpus"}))
    gpus.push_back(json::Print(gpu));
  return Join(gpus, ",");
}

// The pods that a cycle stops.
std::set<std::string> Evicted(const json::Value& cycle) {
  std::set<std::string> pods;
  for (const json::Value& decision : json::GetArray(cycle, {"decisions"})) {
    if (json::GetString(decision, {"type"}) != "evict") continue;
    pods.insert(std::string(json::GetString(decision, {"pod"})));
  }
  return pods;
}

Status NoScheduler() {
  return {Code::kNotAcceptable, "this program was built without the scheduler"};
}

}  // namespace

std::string GroupOfPod(const json::Value& pod) {
  std::string_view group = api::Label(pod, api::keys::kPodGroup);
  return group.empty() ? StrCat("/", api::KeyOf(pod)) : StrCat(api::Namespace(pod), "/", group);
}

std::string GroupOf(const json::Value& object) {
  std::string_view kind = api::KindOf(object);
  if (kind == "PodGroup") return api::KeyOf(object);
  return kind == "Pod" ? GroupOfPod(object) : "";
}

Result<json::Array> ReadState(Api& api) {
  std::vector<api::RestRequest> requests;
  for (const Listed& one : StateKinds()) {
    requests.push_back(
        {.method = "GET",
         .path = one.resource.Path(one.ns),
         .query = one.name.empty() ? "" : "fieldSelector=metadata.name%3D" + one.name});
  }
  auto answers = api.CallAll(std::move(requests));
  json::Array state;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      // A server without that kind has none of it.
      if (answers[i].status().code() == Code::kNotFound) continue;
      if (answers[i].status().code() == Code::kForbidden) {
        return Status(Code::kForbidden,
                      StrCat("this reads the whole cluster's pods and pod groups, as the scheduler "
                             "does, and your rights end before that: ",
                             answers[i].status().message()));
      }
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
  if (!session.env().what_if.simulate) return NoScheduler();
  return WhatIf(session, std::move(state));
}

Status WhatIf::AddJob(const json::Value& job, const JobKindInfo& kind) {
  const WhatIfEngine& what_if = session_->env().what_if;
  if (!what_if.make_gang) return NoScheduler();
  SWELL_ASSIGN_OR_RETURN(json::Array gang, what_if.make_gang(kind.resource, job));
  const std::string own = api::KeyOf(job);
  // As it is now, if it is there.
  json::Array others;
  for (json::Value& object : state_) {
    if (GroupOf(object) != own) others.push_back(std::move(object));
  }
  state_ = std::move(others);
  const std::string now = api::FormatTime(session_->Now());
  for (json::Value& object : gang) {
    json::Set(object, {"metadata", "uid"}, StrCat("what-if-", api::Name(object)));
    json::Set(object, {"metadata", "creationTimestamp"}, now);
    if (api::KindOf(object) == "Pod") {
      json::Set(object, {"status", "phase"}, "Pending");
    }
    state_.push_back(std::move(object));
  }
  return Status::Ok();
}

StateView StateViewOf(const json::Array& state) {
  StateView view;
  view.reserve(state.size());
  for (const json::Value& object : state) view.push_back(&object);
  return view;
}

StateView WhatIf::Without(const std::set<std::string>& groups) const {
  StateView view = StateViewOf(state_);
  if (groups.empty()) return view;
  std::erase_if(view, [&](const json::Value* object) { return groups.contains(GroupOf(*object)); });
  return view;
}

json::Value WhatIf::FirstCycle(const StateView& state, Duration later) const {
  json::Value result = session_->env().what_if.simulate(state, session_->Now() + later);
  const json::Array& cycles = json::GetArray(result, {"cycles"});
  return cycles.empty() ? json::Value(json::Object{}) : cycles[0];
}

Outcome WhatIf::Run(const std::string& group, const StateView& state, Duration later) const {
  std::map<std::string, std::string> group_of;
  StateView others;
  for (const json::Value* object : state) {
    std::string of = GroupOf(*object);
    if (of != group) others.push_back(object);
    if (api::KindOf(*object) == "Pod") group_of[api::KeyOf(*object)] = std::move(of);
  }
  const json::Value cycle = FirstCycle(state, later);
  // What happens anyway is not the group's doing.
  std::set<std::string> anyway;
  if (!Evicted(cycle).empty()) anyway = Evicted(FirstCycle(others, later));
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
  std::set<std::string> decided;
  for (const Outcome::Place& place : outcome.places) decided.insert(place.pod);
  for (const json::Value& pod : json::GetArray(cycle, {"pods"})) {
    std::string name(json::GetString(pod, {"name"}));
    if (group_of[name] != group) continue;
    const std::string_view status = json::GetString(pod, {"status"});
    if (status == "Nominated" && !decided.contains(name)) {
      // Its room was promised before, and nothing is decided anew.
      outcome.places.push_back(
          {std::move(name), std::string(json::GetString(pod, {"node"})), "", false});
    } else if (status == "Pending") {
      outcome.waiting.push_back(std::move(name));
      outcome.reason = json::GetString(pod, {"reason"}, outcome.reason);
    }
  }
  return outcome;
}

int64_t LeastMembers(const json::Array& state, const std::string& group) {
  int64_t least = 0;
  for (const json::Value& object : state) {
    if (api::KindOf(object) != "PodGroup" || api::KeyOf(object) != group) continue;
    least += api::MinMembers(object);
  }
  return std::max<int64_t>(1, least);
}

}  // namespace swell::cli
