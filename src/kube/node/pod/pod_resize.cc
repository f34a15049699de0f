#include "kube/node/pod/pod_resize.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::node {
namespace {

using Phase = ContainerState::Phase;

// The kernel refuses a limit below what is used now; it may accept it later.
constexpr Duration kRetry = std::chrono::seconds(10);

ContainerResources ResourcesIn(const json::Value& pod) {
  ContainerResources resources;
  for (const json::Array* list : {&api::InitContainers(pod), &api::Containers(pod)}) {
    for (const json::Value& container : *list) {
      const json::Value* value = json::Find(container, {"resources"});
      resources.emplace(api::ContainerName(container),
                        value == nullptr ? json::Value(json::Object()) : *value);
    }
  }
  return resources;
}

std::optional<int64_t> AmountOf(const json::Value& resources,
                                std::string_view field,
                                std::string_view resource) {
  const Amounts amounts = ReadAmounts(json::Find(resources, {field}));
  const auto found = amounts.find(resource);
  return found == amounts.end() ? std::nullopt : std::optional(found->second);
}

// Whether requests or limits of the resource differ.
bool Differs(const json::Value& now, const json::Value& was, std::string_view resource) {
  return AmountOf(now, "requests", resource) != AmountOf(was, "requests", resource) ||
         AmountOf(now, "limits", resource) != AmountOf(was, "limits", resource);
}

bool Differs(const json::Value& now, const json::Value& was) {
  return Differs(now, was, "cpu") || Differs(now, was, "memory");
}

// Whether its resizePolicy asks for a restart because of what changes.
bool NeedsRestart(const json::Value& container, const json::Value& now, const json::Value& was) {
  for (const json::Value& policy : json::GetArray(container, {"resizePolicy"})) {
    if (json::GetString(policy, {"restartPolicy"}) == "RestartContainer" &&
        Differs(now, was, json::GetString(policy, {"resourceName"}))) {
      return true;
    }
  }
  return false;
}

}  // namespace

PodResize::PodResize(PodHost& host,
                     PodRecord& record,
                     ContainerManager& containers,
                     Callbacks callbacks)
    : host_(host),
      record_(record),
      containers_(containers),
      callbacks_(std::move(callbacks)),
      retry_timer_(host.executor()) {}

void PodResize::Detach() {
  scope_.Close();
  retry_timer_.Cancel();
}

void PodResize::OnPodChanged(const json::Value& before) {
  ResizeState& resize = record_.resize;
  if (resize.given.empty()) {
    // Most updates are of the status alone.
    const auto generation = [](const json::Value& pod) {
      return json::GetInt(pod, {"metadata", "generation"});
    };
    if (generation(before) == generation(*record_.pod)) return;
    ContainerResources given = ResourcesIn(before);
    if (given == ResourcesIn(*record_.pod)) return;
    if (!record_.state.holds_resources()) {  // nothing is given yet
      record_.requests = PodRequests(*record_.pod);
      return;
    }
    resize.given = std::move(given);
  }
  TryResize();
}

void PodResize::Adopt() {
  ContainerResources given = ResourcesIn(*record_.pod);
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& status : json::GetArray(*record_.pod, {"status", list})) {
      const json::Value* resources = json::Find(status, {"resources"});
      const auto container = given.find(json::GetString(status, {"name"}));
      if (resources == nullptr || container == given.end()) continue;
      container->second = *resources;
    }
  }
  if (given == ResourcesIn(*record_.pod)) return;
  record_.resize.given = std::move(given);
  record_.requests = PodRequests(record_.GivenPod());
  // Whether there is room is known only when all pods of the node are.
  if (const auto pending = api::FindCondition(*record_.pod, "PodResizePending")) {
    record_.resize.pending_message = pending->message;
  }
  record_.resize.pending_reason = "Deferred";
  host_.OnResourcesFreed();
}

void PodResize::TryResize() {
  ResizeState& resize = record_.resize;
  if (resize.given.empty() || !record_.state.holds_resources() || record_.state.ending()) return;
  ContainerResources wanted = ResourcesIn(*record_.pod);
  if (wanted == resize.given) {
    resize.pending_reason.clear();
    return;
  }
  const Amounts requests = PodRequests(*record_.pod);
  const PodHost::Room room = callbacks_.room(requests);
  if (room.kind != PodHost::Room::Kind::kEnough) return WaitFor(room);
  resize.pending_reason.clear();
  for (auto& [name, resources] : resize.given) {
    const ContainerState* container = record_.Find(name);
    if (container == nullptr || container->stopped()) continue;
    if (!Differs(wanted[name], resources)) continue;
    // If an earlier change has not been made yet, the amounts before that one are still in force.
    ResizeState::Change& change = resize.changes[name];
    if (change.was.is_null()) change.was = std::move(resources);
    change.attempt = container->attempt;
    change.sent = false;
  }
  resize.given = std::move(wanted);
  record_.requests = requests;
  host_.Event(*record_.pod, "Normal", "ResizeStarted",
              StrCat("Pod resize started: ", RequestsText()));
  if (resize.changes.empty()) return Complete();
  ApplyChanges();
  host_.OnResourcesFreed();  // others may wait for what it gives back
}

std::string PodResize::RequestsText() const {
  const json::Value pod = record_.GivenPod();
  const api::Amounts amounts = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  std::vector<std::string> texts;
  for (const std::string_view name : {"cpu", "memory"}) {
    const auto amount = amounts.find(name);
    if (amount != amounts.end()) texts.push_back(StrCat(name, " ", amount->second.ToString()));
  }
  return Join(texts, ", ");
}

void PodResize::WaitFor(const PodHost::Room& room) {
  ResizeState& resize = record_.resize;
  const std::string_view reason =
      room.kind == PodHost::Room::Kind::kNever ? "Infeasible" : "Deferred";
  if (resize.pending_reason != reason) {
    host_.Event(*record_.pod, "Warning", StrCat("Resize", reason),
                StrCat("Pod resize ", ToLower(reason), ": ", room.message));
  }
  resize.pending_reason = reason;
  resize.pending_message = room.message;
}

void PodResize::ApplyChanges() {
  ResizeState& resize = record_.resize;
  if (resize.changes.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, change] : resize.changes) names.push_back(name);
  for (const std::string& name : names) Change(name);
}

void PodResize::Change(const std::string& name) {
  ResizeState& resize = record_.resize;
  ResizeState::Change& change = resize.changes[name];
  ContainerState* container = record_.Find(name);
  // If it starts again, it starts with what it was given.
  if (container == nullptr || container->stopped() || container->attempt != change.attempt) {
    return Forget(name);
  }
  if (container->phase != Phase::kRunning || change.sent || container->stopping) return;
  const json::Value& given = resize.given[name];
  if (NeedsRestart(record_.SpecOf(*container), given, change.was)) {
    return containers_.Restart(*container, StrCat("Container ", name, " resize requires restart"));
  }
  change.sent = true;
  host_.runtime().Resize(
      {record_.uid, name, change.attempt}, CpuAndMemoryOf(given),
      scope_.Wrap([this, name](const Status& status) { OnChanged(name, status); }));
}

void PodResize::OnChanged(const std::string& name, const Status& status) {
  ResizeState& resize = record_.resize;
  const auto change = resize.changes.find(name);
  if (change == resize.changes.end() || !change->second.sent) return;
  if (status.ok()) {
    Forget(name);
    return callbacks_.on_change();
  }
  if (resize.error != status.message()) {
    host_.Event(*record_.pod, "Warning", "ResizeError",
                StrCat("Pod resize error: container ", name, ": ", status.message()));
  }
  resize.error = status.message();
  retry_timer_.Start(kRetry, [this] {
    for (auto& [container, again] : record_.resize.changes) again.sent = false;
    callbacks_.on_change();
  });
  callbacks_.on_change();
}

void PodResize::Forget(const std::string& name) {
  record_.resize.changes.erase(name);
  if (record_.resize.changes.empty()) Complete();
}

void PodResize::Complete() {
  record_.resize.error.clear();
  host_.Event(*record_.pod, "Normal", "ResizeCompleted",
              StrCat("Pod resize completed: ", RequestsText()));
}

}  // namespace swell::node
