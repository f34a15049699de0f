// Table cells of pods and nodes.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/print/table.h"

namespace swell::apiserver {
namespace {

const json::Value* Terminated(const json::Value& container, const char* state = "state") {
  return json::Find(container, {state, "terminated"});
}

// "Signal:9", "ExitCode:1".
std::string ExitText(const json::Value& terminated) {
  const int64_t signal = json::GetInt(terminated, {"signal"});
  if (signal != 0) return StrCat("Signal:", signal);
  return StrCat("ExitCode:", json::GetInt(terminated, {"exitCode"}));
}

// What one line about a pod's containers says.
struct PodLine {
  std::string reason;
  int64_t restarts = 0;
  int64_t sidecar_restarts = 0;
  int64_t ready = 0;
  std::optional<WallTime> last_restart;
  std::optional<WallTime> last_sidecar_restart;
  bool initializing = false;
};

void NoteRestart(const json::Value& container, std::optional<WallTime>& latest) {
  const json::Value* before = Terminated(container, "lastState");
  if (before == nullptr) return;
  const auto time = api::ParseTime(json::GetString(*before, {"finishedAt"}));
  if (time && (!latest || *latest < *time)) latest = time;
}

void ReadInitContainers(const json::Value& pod, PodLine& line) {
  const json::Array& statuses = json::GetArray(pod, {"status", "initContainerStatuses"});
  for (size_t i = 0; i < statuses.size(); ++i) {
    const json::Value& container = statuses[i];
    const bool sidecar = api::HasSidecar(pod, json::GetString(container, {"name"}));
    line.restarts += json::GetInt(container, {"restartCount"});
    NoteRestart(container, line.last_restart);
    if (sidecar) {
      line.sidecar_restarts += json::GetInt(container, {"restartCount"});
      NoteRestart(container, line.last_sidecar_restart);
    }
    const json::Value* terminated = Terminated(container);
    if (terminated != nullptr && json::GetInt(*terminated, {"exitCode"}) == 0) continue;
    if (sidecar && json::GetBool(container, {"started"})) {
      if (json::GetBool(container, {"ready"})) ++line.ready;
      continue;
    }
    const std::string_view waiting = json::GetString(container, {"state", "waiting", "reason"});
    if (terminated != nullptr) {
      const std::string_view why = json::GetString(*terminated, {"reason"});
      line.reason = StrCat("Init:", why.empty() ? ExitText(*terminated) : std::string(why));
    } else if (!waiting.empty() && waiting != "PodInitializing") {
      line.reason = StrCat("Init:", waiting);
    } else {
      line.reason = StrCat("Init:", i, "/", json::GetArray(pod, {"spec", "initContainers"}).size());
    }
    line.initializing = true;
    return;
  }
}

void ReadContainers(const json::Value& pod, PodLine& line) {
  line.restarts = line.sidecar_restarts;
  line.last_restart = line.last_sidecar_restart;
  bool running = false;
  const json::Array& statuses = json::GetArray(pod, {"status", "containerStatuses"});
  for (size_t i = statuses.size(); i-- > 0;) {
    const json::Value& container = statuses[i];
    line.restarts += json::GetInt(container, {"restartCount"});
    NoteRestart(container, line.last_restart);
    const std::string_view waiting = json::GetString(container, {"state", "waiting", "reason"});
    const json::Value* terminated = Terminated(container);
    if (!waiting.empty()) {
      line.reason = waiting;
    } else if (terminated != nullptr) {
      const std::string_view why = json::GetString(*terminated, {"reason"});
      line.reason = why.empty() ? ExitText(*terminated) : std::string(why);
    } else if (json::GetBool(container, {"ready"}) &&
               json::Find(container, {"state", "running"}) != nullptr) {
      running = true;
      ++line.ready;
    }
  }
  // One container is over, another one still runs.
  if (line.reason == "Completed" && running) {
    line.reason = api::ConditionIsTrue(pod, "Ready") ? "Running" : "NotReady";
  }
}

PodLine ReadPod(const json::Value& pod) {
  PodLine line;
  const std::string phase(api::StatusPhase(pod));
  const std::string why(json::GetString(pod, {"status", "reason"}));
  line.reason = why.empty() ? phase : why;
  const std::optional<api::Condition> scheduled = api::FindCondition(pod, "PodScheduled");
  if (scheduled && scheduled->reason == "SchedulingGated") {
    line.reason = "SchedulingGated";
  }
  ReadInitContainers(pod, line);
  if (!line.initializing || api::ConditionIsTrue(pod, "Initialized")) ReadContainers(pod, line);
  if (api::IsDeleting(pod)) {
    if (why == "NodeLost") {
      line.reason = "Unknown";
    } else if (phase != "Succeeded" && phase != "Failed") {
      line.reason = "Terminating";
    }
  }
  return line;
}

std::string OrNone(std::string_view text) {
  return std::string(text.empty() ? std::string_view("<none>") : text);
}

std::string ReadinessGates(const json::Value& pod) {
  const json::Array& gates = json::GetArray(pod, {"spec", "readinessGates"});
  if (gates.empty()) return "<none>";
  const auto ready = std::count_if(gates.begin(), gates.end(), [&pod](const json::Value& gate) {
    return api::ConditionIsTrue(pod, json::GetString(gate, {"conditionType"}));
  });
  return StrCat(ready, "/", gates.size());
}

void PrintPod(const json::Value& pod, const CellContext& context, json::Array& cells) {
  const PodLine line = ReadPod(pod);
  size_t total = json::GetArray(pod, {"spec", "containers"}).size();
  for (const json::Value& container : json::GetArray(pod, {"spec", "initContainers"})) {
    if (json::GetString(container, {"restartPolicy"}) == "Always") ++total;
  }
  std::string restarts = std::to_string(line.restarts);
  if (line.restarts != 0 && line.last_restart) {
    restarts += StrCat(" (", api::HumanDuration(context.now - *line.last_restart), " ago)");
  }
  std::string_view ip = json::GetString(pod, {"status", "podIP"});
  const json::Array& ips = json::GetArray(pod, {"status", "podIPs"});
  if (!ips.empty()) ip = json::GetString(ips[0], {"ip"});
  cells.emplace_back(api::Name(pod));
  cells.emplace_back(StrCat(line.ready, "/", total));
  cells.emplace_back(line.reason);
  cells.emplace_back(restarts);
  cells.emplace_back(AgeCell(pod, context.now));
  cells.emplace_back(OrNone(ip));
  cells.emplace_back(OrNone(api::NodeName(pod)));
  cells.emplace_back(OrNone(api::NominatedNode(pod)));
  cells.emplace_back(ReadinessGates(pod));
}

std::string NodeStatus(const json::Value& node) {
  const std::optional<api::Condition> ready = api::FindCondition(node, "Ready");
  std::string text = "Unknown";
  if (ready) {
    text = ready->IsTrue() ? "Ready" : "NotReady";
  }
  if (json::GetBool(node, {"spec", "unschedulable"})) text += ",SchedulingDisabled";
  for (const api::Taint& taint : api::TaintsOf(node)) {
    if (taint.key == api::keys::kUnhealthyTaint) text += ",Unhealthy";
  }
  return text;
}

std::string NodeRoles(const json::Value& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::vector<std::string> roles;
  for (const auto& [key, value] : json::GetObject(node, {"metadata", "labels"})) {
    const std::string_view label(key.data(), key.size());
    if (label.substr(0, kPrefix.size()) == kPrefix && label.size() > kPrefix.size()) {
      roles.emplace_back(label.substr(kPrefix.size()));
    } else if (label == "kubernetes.io/role" && value.is_string() && !value.get_string().empty()) {
      roles.emplace_back(json::View(value.get_string()));
    }
  }
  std::sort(roles.begin(), roles.end());
  roles.erase(std::unique(roles.begin(), roles.end()), roles.end());
  return roles.empty() ? "<none>" : Join(roles, ",");
}

std::string NodeAddress(const json::Value& node, std::string_view type) {
  for (const json::Value& address : json::GetArray(node, {"status", "addresses"})) {
    if (json::GetString(address, {"type"}) == type) {
      return std::string(json::GetString(address, {"address"}));
    }
  }
  return "<none>";
}

std::string NodeInfo(const json::Value& node, const char* field) {
  const std::string_view text = json::GetString(node, {"status", "nodeInfo", field});
  return std::string(text.empty() ? std::string_view("<unknown>") : text);
}

void PrintNode(const json::Value& node, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(node));
  cells.emplace_back(NodeStatus(node));
  cells.emplace_back(NodeRoles(node));
  cells.emplace_back(AgeCell(node, context.now));
  cells.emplace_back(json::GetString(node, {"status", "nodeInfo", "kubeletVersion"}));
  cells.emplace_back(NodeAddress(node, "InternalIP"));
  cells.emplace_back(NodeAddress(node, "ExternalIP"));
  cells.emplace_back(NodeInfo(node, "osImage"));
  cells.emplace_back(NodeInfo(node, "kernelVersion"));
  cells.emplace_back(NodeInfo(node, "containerRuntimeVersion"));
}

}  // namespace

void AddPodAndNodePrinters(std::map<std::string, TablePrinter, std::less<>>& printers) {
  printers["pods"] = {
      {Column("Name", "string", 0, "name"), Column("Ready", "string"), Column("Status", "string"),
       Column("Restarts", "string"), Column("Age", "string"), Column("IP", "string", 1),
       Column("Node", "string", 1), Column("Nominated Node", "string", 1),
       Column("Readiness Gates", "string", 1)},
      PrintPod};
  printers["nodes"] = {
      {Column("Name", "string", 0, "name"), Column("Status", "string"), Column("Roles", "string"),
       Column("Age", "string"), Column("Version", "string"), Column("Internal-IP", "string", 1),
       Column("External-IP", "string", 1), Column("OS-Image", "string", 1),
       Column("Kernel-Version", "string", 1), Column("Container-Runtime", "string", 1)},
      PrintNode};
}

}  // namespace swell::apiserver
