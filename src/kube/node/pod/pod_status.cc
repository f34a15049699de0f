#include "kube/node/pod/pod_status.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod.h"

namespace swell::node {
namespace {

using Phase = ContainerState::Phase;

constexpr size_t kTerminationMessageMax = 4096;
constexpr std::string_view kOwnConditions[] = {"PodScheduled",     "Initialized",
                                               "ContainersReady",  "Ready",
                                               "PodResizePending", "PodResizeInProgress"};

json::Object Terminated(const ContainerExit& exit, bool fall_back_to_logs) {
  std::string reason = exit.reason;
  if (reason.empty()) {
    reason = exit.oom_killed ? "OOMKilled" : exit.code == 0 ? "Completed" : "Error";
  }
  std::string message = exit.termination_message;
  if (message.empty() && fall_back_to_logs && exit.code != 0) message = exit.log_tail;
  if (message.size() > kTerminationMessageMax) message.resize(kTerminationMessageMax);
  json::Object out{{"exitCode", exit.code}, {"reason", reason}};
  if (!message.empty()) out["message"] = IsValidUtf8(message) ? message : Quote(message);
  out["startedAt"] = api::FormatTime(exit.started);
  out["finishedAt"] = api::FormatTime(exit.finished);
  if (!exit.container_id.empty()) out["containerID"] = exit.container_id;
  return json::Object{{"terminated", std::move(out)}};
}

std::string UnreadyList(std::string_view what, const std::vector<std::string>& names) {
  return StrCat("containers with ", what, " status: [", Join(names, " "), "]");
}

bool FallsBackToLogs(const PodRecord& record, const ContainerState& container) {
  return json::GetString(record.SpecOf(container), {"terminationMessagePolicy"}) ==
         "FallbackToLogsOnError";
}

json::Object ContainerStateOf(const PodRecord& record, const ContainerState& container) {
  const bool fall_back = FallsBackToLogs(record, container);
  switch (container.phase) {
    case Phase::kRunning:
      return json::Object{
          {"running", json::Object{{"startedAt", api::FormatTime(container.started.started)}}}};
    case Phase::kExited:
      return Terminated(*container.exit, fall_back);
    case Phase::kWaiting:
      // A pod that ends starts nothing any more: the last exit is the state.
      if (record.state.ending() && container.exit) return Terminated(*container.exit, fall_back);
      break;
    case Phase::kStarting:
      break;
  }
  std::string reason = container.waiting_reason;
  // A pod that its node refused starts nothing any more.
  if (reason.empty()) reason = record.failed_reason;
  if (reason.empty()) {
    const bool initializes = std::any_of(record.containers.begin(), record.containers.end(),
                                         [](const ContainerState& one) { return one.init; });
    reason = initializes && !container.ephemeral ? "PodInitializing" : "ContainerCreating";
  }
  json::Object waiting{{"reason", reason}};
  // The kubelet says this in events alone.
  const bool creating = reason == "ContainerCreating" || reason == "PodInitializing";
  const std::string& message = creating && container.waiting_message.empty()
                                   ? record.setup_problem
                                   : container.waiting_message;
  if (!message.empty()) waiting["message"] = message;
  return json::Object{{"waiting", std::move(waiting)}};
}

// What the node gave the container, and what is in force.
void AddResources(const PodRecord& record, const ContainerState& container, json::Object& status) {
  const ResizeState& resize = record.resize;
  const auto change = resize.changes.find(container.name);
  const json::Value* resources = json::Find(record.SpecOf(container), {"resources"});
  if (resize.given) {
    const auto given = resize.given->containers.find(container.name);
    if (given != resize.given->containers.end()) resources = &given->second;
  }
  if (resources == nullptr) {
    status["resources"] = json::Object();
    return;
  }
  if (const json::Value* requests = json::Find(*resources, {"requests"})) {
    status["allocatedResources"] = *requests;
  }
  status["resources"] = change == resize.changes.end() ? *resources : change->second.was;
}

// The same of a pod with amounts as a whole.
void AddWholePod(const PodRecord& record, json::Object& status) {
  if (api::ReadWholePod(api::Spec(*record.pod)).empty()) return;
  const json::SharedValue given = record.GivenPod();
  status["allocatedResources"] =
      api::ToJson(api::PodAmounts(api::Spec(*given), api::AmountField::kRequests));
  const auto& change = record.resize.whole_change;
  const json::Value* resources = change ? &change->was : json::Find(*given, {"spec", "resources"});
  status["resources"] = resources == nullptr ? json::Value(json::Object()) : *resources;
}

json::Object ContainerStatus(const PodRecord& record, const ContainerState& container) {
  const bool fall_back = FallsBackToLogs(record, container);
  const bool completed_init = container.init && !container.sidecar && container.succeeded();
  json::Object status{{"name", container.name}, {"state", ContainerStateOf(record, container)}};
  status["lastState"] =
      container.last_exit ? Terminated(*container.last_exit, fall_back) : json::Object();
  // The kubelet never says that an ephemeral container is ready, nor that it has started.
  status["ready"] = !container.ephemeral &&
                    (completed_init || (container.phase == Phase::kRunning && container.ready));
  status["restartCount"] = container.restart_count();
  status["image"] = container.image;
  status["imageID"] = container.started.image_id;
  std::string id = container.started.container_id;
  if (container.phase == Phase::kExited) id = container.exit->container_id;
  if (!id.empty()) status["containerID"] = id;
  if (!container.ephemeral) {
    status["started"] = container.phase == Phase::kRunning && container.startup_passed;
  }
  if (container.phase == Phase::kRunning && !container.ephemeral) {
    AddResources(record, container, status);
  }
  return status;
}

// The conditions are there only while a resize waits or is under way.
void SetResizeConditions(const ResizeState& resize, json::Array& conditions, WallTime now) {
  auto set = [&](std::string_view type, bool holds, std::string_view reason,
                 std::string_view message) {
    if (holds) {
      api::SetCondition(conditions, type, "True", reason, message, now);
      return;
    }
    const auto gone =
        std::remove_if(conditions.begin(), conditions.end(), [type](const json::Value& condition) {
          return json::GetString(condition, {"type"}) == type;
        });
    conditions.erase(gone, conditions.end());
  };
  set("PodResizePending", !resize.pending_reason.empty(), resize.pending_reason,
      resize.pending_message);
  set("PodResizeInProgress", resize.changing(), resize.error.empty() ? "" : "Error", resize.error);
}

// `conditions` are those that the API has: they keep their transition times.
json::Array Conditions(const PodRecord& record,
                       std::string_view phase,
                       json::Array conditions,
                       WallTime now) {
  std::vector<std::string> unready, incomplete;
  for (const ContainerState& container : record.containers) {
    if (container.ephemeral) continue;
    bool up = container.phase == Phase::kRunning && container.ready;
    if (container.init && !container.sidecar) {
      if (!container.succeeded()) incomplete.push_back(container.name);
    } else if (!up) {
      unready.push_back(container.name);
      const bool starts = container.init && !record.mains_started;
      if (starts && !container.startup_passed) incomplete.push_back(container.name);
    }
  }
  SetResizeConditions(record.resize, conditions, now);
  api::SetCondition(conditions, "PodScheduled", "True", "", "", now);
  bool initialized = incomplete.empty() || phase == "Succeeded";
  if (phase == "Succeeded") {
    api::SetCondition(conditions, "Initialized", "True", "PodCompleted", "", now);
  } else {
    api::SetCondition(conditions, "Initialized", initialized ? "True" : "False",
                      initialized ? "" : "ContainersNotInitialized",
                      initialized ? "" : UnreadyList("incomplete", incomplete), now);
  }
  bool ready = unready.empty() && initialized && phase == "Running";
  std::string reason, message;
  if (phase == "Succeeded") {
    reason = "PodCompleted";
  } else if (phase == "Failed") {
    reason = "PodFailed";
  } else if (!ready) {
    reason = "ContainersNotReady";
    message = UnreadyList("unready", unready);
  }
  api::SetCondition(conditions, "ContainersReady", ready ? "True" : "False", reason, message, now);
  for (const json::Value& gate : json::GetArray(*record.pod, {"spec", "readinessGates"})) {
    std::string_view type = json::GetString(gate, {"conditionType"});
    if (ready && !api::ConditionIsTrue(*record.pod, type)) {
      ready = false;
      reason = "ReadinessGatesNotReady";
      message = StrCat("corresponding condition of pod readiness gate ", Quote(type),
                       " does not exist or is not \"True\".");
    }
  }
  api::SetCondition(conditions, "Ready", ready ? "True" : "False", reason, message, now);
  json::Array own;
  for (const json::Value& condition : conditions) {
    if (IsKubeletCondition(json::GetString(condition, {"type"}))) own.push_back(condition);
  }
  if (record.failed_reason == api::kNodeShutdown) {
    api::SetCondition(own, api::kDisruptionTarget, "True", "TerminationByKubelet",
                      record.failed_message, now);
  }
  return own;
}

}  // namespace

bool IsKubeletCondition(std::string_view type) {
  return std::find(std::begin(kOwnConditions), std::end(kOwnConditions), type) !=
         std::end(kOwnConditions);
}

std::string_view PodPhase(const PodRecord& record) {
  std::string_view known = api::StatusPhase(*record.pod);
  if (known == "Succeeded" || known == "Failed") return known;
  const bool over = record.state.ending() && record.AllStopped();
  if (!record.failed_reason.empty()) {
    return over ? "Failed" : record.sandbox ? "Running" : "Pending";
  }
  // A failed init container is the pod's failure.
  if (!record.Initialized()) return over ? "Failed" : "Pending";
  bool any = false, all_started = true, failed = false;
  for (const ContainerState& container : record.containers) {
    if (!container.main()) continue;
    any = true;
    // One that waits for its restart has been started before.
    const bool started = container.phase == Phase::kRunning || container.phase == Phase::kExited ||
                         container.attempt > 0 || (container.exit && container.attempt == 0);
    all_started = all_started && started;
    failed = failed || (container.exit && container.exit->code != 0);
  }
  if (over) return failed || !all_started ? "Failed" : "Succeeded";
  return any && all_started ? "Running" : "Pending";
}

json::Object PodStatus(const PodRecord& record,
                       const json::Array& conditions,
                       std::string_view host_ip,
                       WallTime now) {
  std::string_view phase = PodPhase(record);
  json::Object status{{"phase", phase}};
  if (!record.failed_reason.empty()) {
    status["reason"] = record.failed_reason;
    status["message"] = record.failed_message;
  }
  if (record.state.state() <= PodState::kAdmitting) return status;
  status["conditions"] = Conditions(record, phase, conditions, now);
  status["hostIP"] = host_ip;
  if (record.sandbox && !record.sandbox->ip.empty()) {
    status["podIP"] = record.sandbox->ip;
    status["podIPs"] = json::Array{json::Value(json::Object{{"ip", record.sandbox->ip}})};
  }
  if (!record.start_time.empty()) status["startTime"] = record.start_time;
  json::Array init, mains, ephemeral;
  for (const ContainerState& container : record.containers) {
    json::Array& list = container.ephemeral ? ephemeral : container.init ? init : mains;
    list.push_back(ContainerStatus(record, container));
  }
  if (!init.empty()) status["initContainerStatuses"] = std::move(init);
  status["containerStatuses"] = std::move(mains);
  if (!ephemeral.empty()) status["ephemeralContainerStatuses"] = std::move(ephemeral);
  AddWholePod(record, status);
  status["qosClass"] = api::QosClass(*record.pod);
  const json::Value& pod = *record.pod;
  // A deletion is a new generation, too: it is worth no write of its own.
  const int64_t generation = api::IsDeleting(pod)
                                 ? json::GetInt(pod, {"status", "observedGeneration"})
                                 : json::GetInt(pod, {"metadata", "generation"});
  if (generation > 0) status["observedGeneration"] = generation;
  return status;
}

}  // namespace swell::node
