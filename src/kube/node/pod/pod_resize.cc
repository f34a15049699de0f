#include "kube/node/pod/pod_resize.h"

#include <algorithm>
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

PodResources ResourcesIn(const json::Value& pod) {
  PodResources resources;
  if (!api::ReadWholePod(api::Spec(pod)).empty()) {
    resources.whole_pod = *json::Find(pod, {"spec", "resources"});
  }
  for (const json::Array* list : {&api::InitContainers(pod), &api::Containers(pod)}) {
    for (const json::Value& container : *list) {
      const json::Value* value = json::Find(container, {"resources"});
      resources.containers.emplace(api::ContainerName(container),
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

json::Value AllOf(const PodResources& pod, const std::string& container) {
  const auto found = pod.containers.find(container);
  return WithPodLimits(found == pod.containers.end() ? json::Value(json::Object()) : found->second,
                       &pod.whole_pod);
}

// No limit is the largest.
int64_t LargerLimit(int64_t a, int64_t b) { return a == 0 || b == 0 ? 0 : std::max(a, b); }

CpuAndMemory Larger(const CpuAndMemory& a, const CpuAndMemory& b) {
  return {std::max(a.cpu_request_milli, b.cpu_request_milli),
          LargerLimit(a.cpu_limit_milli, b.cpu_limit_milli),
          LargerLimit(a.memory_limit_bytes, b.memory_limit_bytes)};
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
  if (!resize.given) {
    // Most updates are of the status alone.
    const auto generation = [](const json::Value& pod) {
      return json::GetInt(pod, {"metadata", "generation"});
    };
    if (generation(before) == generation(*record_.pod)) return;
    PodResources given = ResourcesIn(before);
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
  PodResources given = ResourcesIn(*record_.pod);
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& status : json::GetArray(*record_.pod, {"status", list})) {
      const json::Value* resources = json::Find(status, {"resources"});
      const auto container = given.containers.find(json::GetString(status, {"name"}));
      if (resources == nullptr || container == given.containers.end()) continue;
      container->second = *resources;
    }
  }
  const json::Value* whole = json::Find(*record_.pod, {"status", "resources"});
  if (whole != nullptr && whole->is_object() && !given.whole_pod.is_null()) {
    given.whole_pod = whole->get_object().empty() ? json::Value() : *whole;
  }
  if (given == ResourcesIn(*record_.pod)) return;
  record_.resize.given = std::move(given);
  record_.requests = PodRequests(*record_.GivenPod());
  // Whether there is room is known only when all pods of the node are.
  if (const auto pending = api::FindCondition(*record_.pod, "PodResizePending")) {
    record_.resize.pending_message = pending->message;
  }
  record_.resize.pending_reason = "Deferred";
  host_.OnResourcesFreed();
}

PodHost::Room PodResize::RoomFor(const PodResources& wanted, const Amounts& requests) const {
  // A control group takes no containers that run in another.
  if (record_.resize.given->whole_pod.is_null() && !wanted.whole_pod.is_null()) {
    return {PodHost::Room::Kind::kNever,
            "spec.resources cannot be added to a pod that started without it"};
  }
  return callbacks_.room(requests);
}

void PodResize::TryResize() {
  ResizeState& resize = record_.resize;
  if (!resize.given || !record_.state.holds_resources() || record_.state.ending()) return;
  PodResources wanted = ResourcesIn(*record_.pod);
  if (wanted == *resize.given) {
    resize.pending_reason.clear();
    return;
  }
  const Amounts requests = PodRequests(*record_.pod);
  const PodHost::Room room = RoomFor(wanted, requests);
  if (room.kind != PodHost::Room::Kind::kEnough) return WaitFor(room);
  resize.pending_reason.clear();
  PlanContainers(wanted);
  PlanWholePod(wanted);
  resize.given = std::move(wanted);
  record_.requests = requests;
  host_.Event(*record_.pod, "Normal", "ResizeStarted",
              StrCat("Pod resize started: ", RequestsText()));
  if (!resize.changing()) return Complete();
  ApplyChanges();
  host_.OnResourcesFreed();  // others may wait for what it gives back
}

void PodResize::PlanContainers(const PodResources& wanted) {
  ResizeState& resize = record_.resize;
  for (const auto& [name, resources] : resize.given->containers) {
    const ContainerState* container = record_.Find(name);
    if (container == nullptr || container->stopped()) continue;
    json::Value was_all = AllOf(*resize.given, name);
    if (!Differs(AllOf(wanted, name), was_all)) continue;
    // If an earlier change has not been made yet, the amounts before that one are still in force.
    ResizeState::Change& change = resize.changes[name];
    if (change.was.is_null()) {
      change.was = resources;
      change.was_all = std::move(was_all);
    }
    change.attempt = container->attempt;
    change.sent = false;
  }
}

void PodResize::PlanWholePod(const PodResources& wanted) {
  ResizeState& resize = record_.resize;
  if (!Differs(wanted.whole_pod, resize.given->whole_pod)) return;
  if (!resize.whole_change) {
    const CpuAndMemory has = WholePod(api::Spec(*record_.GivenPod())).value_or(CpuAndMemory());
    resize.whole_change = {.was = resize.given->whole_pod, .in_force = has, .most = has};
  }
  ResizeState::WholeChange& change = *resize.whole_change;
  const auto wants = WholePod(api::Spec(*record_.pod));
  change.most = Larger(change.most, wants.value_or(CpuAndMemory()));
  change.grown = false;
  change.sent = false;
}

std::string PodResize::RequestsText() const {
  const json::SharedValue pod = record_.GivenPod();
  const api::Amounts amounts = api::PodAmounts(api::Spec(*pod), api::AmountField::kRequests);
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
  if (!resize.changing()) return;
  if (resize.whole_change && !resize.whole_change->grown) {
    ChangeWholePod(resize.whole_change->most);
    if (resize.whole_change && resize.whole_change->in_force != resize.whole_change->most) return;
    if (resize.whole_change) resize.whole_change->grown = true;
  }
  std::vector<std::string> names;
  for (const auto& [name, change] : resize.changes) names.push_back(name);
  for (const std::string& name : names) Change(name);
  if (resize.whole_change && resize.changes.empty()) {
    const auto given = WholePod(api::Spec(*record_.GivenPod())).value_or(CpuAndMemory());
    ChangeWholePod(given);
    if (resize.whole_change && resize.whole_change->in_force == given) resize.whole_change.reset();
  }
  if (!resize.changing()) Complete();
}

void PodResize::Change(const std::string& name) {
  ResizeState& resize = record_.resize;
  ResizeState::Change& change = resize.changes[name];
  ContainerState* container = record_.Find(name);
  // If it starts again, it starts with what it was given.
  if (container == nullptr || container->stopped() || container->attempt != change.attempt) {
    resize.changes.erase(name);
    return;
  }
  if (container->phase != Phase::kRunning || change.sent || container->stopping) return;
  const json::Value given = AllOf(*resize.given, name);
  if (NeedsRestart(record_.SpecOf(*container), given, change.was_all)) {
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
  if (!status.ok()) return Retry(StrCat("container ", name), status);
  resize.changes.erase(change);
  if (!resize.changing()) Complete();
  callbacks_.on_change();
}

void PodResize::ChangeWholePod(const CpuAndMemory& wanted) {
  ResizeState& resize = record_.resize;
  if (resize.whole_change->in_force == wanted || resize.whole_change->sent) return;
  const auto in = [this](Phase phase) {
    return std::any_of(record_.containers.begin(), record_.containers.end(),
                       [phase](const ContainerState& one) { return one.phase == phase; });
  };
  // A container that starts brings what the pod had been given before.
  if (in(Phase::kStarting)) return;
  if (!in(Phase::kRunning)) {
    resize.whole_change.reset();
    return;
  }
  resize.whole_change->sent = true;
  host_.runtime().Resize({record_.uid, "", 0}, wanted,
                         scope_.Wrap([this, wanted](const Status& status) {
                           auto& change = record_.resize.whole_change;
                           if (!change || !change->sent) return;
                           if (!status.ok()) return Retry("the pod as a whole", status);
                           change->sent = false;
                           change->in_force = wanted;
                           callbacks_.on_change();
                         }));
}

void PodResize::Retry(const std::string& what, const Status& status) {
  ResizeState& resize = record_.resize;
  if (resize.error != status.message()) {
    host_.Event(*record_.pod, "Warning", "ResizeError",
                StrCat("Pod resize error: ", what, ": ", status.message()));
  }
  resize.error = status.message();
  retry_timer_.Start(kRetry, [this] {
    for (auto& [container, again] : record_.resize.changes) again.sent = false;
    if (record_.resize.whole_change) record_.resize.whole_change->sent = false;
    callbacks_.on_change();
  });
  callbacks_.on_change();
}

void PodResize::Complete() {
  record_.resize.error.clear();
  host_.Event(*record_.pod, "Normal", "ResizeCompleted",
              StrCat("Pod resize completed: ", RequestsText()));
}

}  // namespace swell::node
