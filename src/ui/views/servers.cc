#include "ui/views/servers.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "cli/arena/serve.h"
#include "cli/views/pod_view.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::ui {
namespace {

// No job's definition has this kind: it has neither roles nor a switch that suspends it.
const cli::JobKindInfo& ServerKind() {
  static const cli::JobKindInfo kind{client::resources::kDeployments, "Deployment", "", "",
                                     "inference"};
  return kind;
}

// As `arena serve list` finds them.
bool IsServer(const json::Value& deployment) {
  return !api::Label(deployment, cli::kServingName).empty() &&
         !api::Label(deployment, cli::arena::kServingType).empty();
}

std::vector<json::SharedValue> PodsOf(const json::Value& deployment, const ViewInput& input) {
  std::vector<json::SharedValue> own;
  const auto selector = api::LabelSelector::FromJson(json::Find(deployment, {"spec", "selector"}));
  if (!selector.ok()) return own;
  for (json::SharedValue& pod : input.Inside(IndexOf(Kind::kPod), api::Namespace(deployment))) {
    const json::Value* labels = json::Find(*pod, {"metadata", "labels"});
    if (labels != nullptr && selector->Matches(*labels)) own.push_back(std::move(pod));
  }
  return own;
}

// Why it has fewer pods than it should; empty: nothing is known.
std::string WaitsOf(const cli::JobView& server) {
  for (const json::SharedValue& pod : server.pods) {
    const auto placed = api::FindCondition(*pod, "PodScheduled");
    if (placed && placed->IsFalse()) return std::string(placed->message);
  }
  const auto refused = api::FindCondition(*server.object, "ReplicaFailure");
  return refused && refused->IsTrue() ? std::string(refused->message) : "";
}

std::string_view StatusOf(const cli::JobView& server) {
  if (server.replicas == 0) return "Suspended";
  const int64_t available = json::GetInt(*server.object, {"status", "availableReplicas"});
  return available > 0 ? "Running" : "Pending";
}

cli::JobView ViewOf(json::SharedValue deployment, const ViewInput& input) {
  static const json::Value kNone;
  cli::JobView view;
  const json::Value* const pod_template = json::Find(*deployment, {"spec", "template"});
  const json::Value& pod = pod_template == nullptr ? kNone : *pod_template;
  view.kind = &ServerKind();
  view.name = api::Name(*deployment);
  view.ns = api::Namespace(*deployment);
  view.workload = ServerKind().workload;
  view.priority = api::PriorityClassName(pod);
  view.project = api::Label(pod, api::keys::kProject);
  view.user = api::Annotation(*deployment, api::keys::kUser);
  view.replicas = json::GetInt(*deployment, {"spec", "replicas"}, 1);
  view.least = view.most = view.replicas;
  view.milli_gpus = view.replicas * cli::MilliGpus(pod);
  view.created = api::ParseTime(api::CreationTimestamp(*deployment));
  view.pods = PodsOf(*deployment, input);
  view.object = std::move(deployment);
  int64_t of_pods = 0;
  for (const json::SharedValue& one : view.pods) {
    of_pods += cli::MilliGpus(*one);
    const auto start = api::StartTime(*one);
    if (start && (!view.started || *start < *view.started)) view.started = start;
  }
  // An amount of GPU memory is known in GPUs once the pods are placed.
  if (view.milli_gpus == 0) view.milli_gpus = of_pods;
  view.status = StatusOf(view);
  view.waits = WaitsOf(view);
  if (view.RunningPods() < view.replicas) view.why = view.waits;
  cli::ReadFailure(view);
  return view;
}

json::Array PortsOf(const json::Value& service) {
  json::Array ports;
  for (const json::Value& port : json::GetArray(service, {"spec", "ports"})) {
    const int64_t of_nodes = json::GetInt(port, {"nodePort"});
    ports.push_back(json::Object{{"name", TextOrNull(json::GetString(port, {"name"}))},
                                 {"port", json::GetInt(port, {"port"})},
                                 {"nodePort", of_nodes > 0 ? json::Value(of_nodes) : nullptr}});
  }
  return ports;
}

}  // namespace

KindSet ServerKinds() { return Bit(Kind::kDeployment); }

bool IsServer(const cli::JobView& job) { return job.kind == &ServerKind(); }

std::vector<cli::JobView> ServersOf(const ViewInput& input, bool& partial, std::string_view ns) {
  std::vector<cli::JobView> servers;
  for (const auto& [key, deployment] : input.state.Of(Kind::kDeployment)) {
    if (!IsServer(*deployment)) continue;
    if (!ns.empty() && api::Namespace(*deployment) != ns) continue;
    if (input.rights.May(Kind::kDeployment, api::Namespace(*deployment))) {
      servers.push_back(ViewOf(deployment, input));
    } else {
      partial = true;
    }
  }
  return servers;
}

json::Array AddressesOf(const cli::JobView& job, const ViewInput& input) {
  json::Array rows;
  for (const json::SharedValue& service : input.Inside(IndexOf(Kind::kService), job.ns)) {
    const json::Object& wanted = json::GetObject(*service, {"spec", "selector"});
    const std::string_view ip = json::GetString(*service, {"spec", "clusterIP"});
    // One without an address of its own only gives its pods names.
    if (wanted.empty() || ip.empty() || ip == "None") continue;
    const bool leads = std::any_of(
        job.pods.begin(), job.pods.end(),
        [&wanted](const json::SharedValue& pod) { return api::HasLabels(*pod, wanted); });
    const json::Value* pod_template =
        IsServer(job) ? json::Find(*job.object, {"spec", "template"}) : nullptr;
    if (!leads && (pod_template == nullptr || !api::HasLabels(*pod_template, wanted))) continue;
    rows.push_back(json::Object{{"service", boost::json::string_view(api::Name(*service))},
                                {"ip", boost::json::string_view(ip)},
                                {"ports", PortsOf(*service)}});
  }
  return rows;
}

}  // namespace swell::ui
