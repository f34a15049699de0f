#include "kube/node/pod/pod_record.h"

#include <algorithm>
#include <utility>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/restart_policy.h"

namespace swell::node {

PodRecord::PodRecord(json::SharedValue pod_in)
    : pod(std::move(pod_in)),
      uid(api::Uid(*pod)),
      requests(PodRequests(*pod)),
      start_time(json::GetString(*pod, {"status", "startTime"})) {}

std::string PodRecord::Key() const { return api::KeyOf(*pod); }

const ContainerState* PodRecord::Find(std::string_view name) const {
  auto it = std::find_if(containers.begin(), containers.end(),
                         [name](const auto& container) { return container.name == name; });
  return it == containers.end() ? nullptr : &*it;
}

ContainerState* PodRecord::Find(std::string_view name) {
  auto it = std::find_if(containers.begin(), containers.end(),
                         [name](const auto& container) { return container.name == name; });
  return it == containers.end() ? nullptr : &*it;
}

const json::Value& PodRecord::SpecOf(const ContainerState& container) const {
  static const json::Value kNothing = json::Object();
  const json::Value* spec = FindContainer(*pod, container.name);
  return spec == nullptr ? kNothing : *spec;
}

json::SharedValue PodRecord::GivenPod() const {
  if (!resize.given) return pod;
  json::Value given = *pod;
  if (!resize.given->whole_pod.is_null()) {
    json::Set(given, {"spec", "resources"}, resize.given->whole_pod);
  } else {
    json::Remove(given, {"spec", "resources"});
  }
  for (const std::string_view list : {"initContainers", "containers"}) {
    json::Value* specs = json::FindMutable(given, {"spec", list});
    if (specs == nullptr) continue;
    for (json::Value& spec : specs->get_array()) {
      const auto found = resize.given->containers.find(json::GetString(spec, {"name"}));
      if (found != resize.given->containers.end()) json::Set(spec, {"resources"}, found->second);
    }
  }
  return std::make_shared<const json::Value>(std::move(given));
}

bool PodRecord::WantsRestart(const ContainerState& container) const {
  if (container.resizing) return true;
  if (container.ephemeral) return false;
  return api::RestartsAfter(*pod, SpecOf(container), container.exit->code);
}

bool PodRecord::RestartsAfterItsNode() const {
  const json::Array& own = json::GetArray(*pod, {"spec", "containers"});
  return std::any_of(own.begin(), own.end(), [this](const json::Value& container) {
    return api::RestartsAfter(*pod, container, kExitUnknown);
  });
}

bool PodRecord::Initialized() const {
  if (mains_started) return true;
  return std::all_of(containers.begin(), containers.end(), [](const ContainerState& container) {
    if (!container.init) return true;
    if (!container.sidecar) return container.succeeded();
    return container.startup_passed || container.phase == ContainerState::Phase::kExited;
  });
}

bool PodRecord::AllStopped() const {
  return std::all_of(containers.begin(), containers.end(),
                     [](const ContainerState& container) { return container.stopped(); });
}

}  // namespace swell::node
