// The views `nodes` and `nodepools`: machines, their GPUs one by one, and who holds them.
#include "ui/views/nodes.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cli/views/node_faults.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/node_pool.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "ui/views/node_health.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

// The name of the job that a pod belongs to; a pod of its own is its own job.
std::string JobOf(const json::Value& pod) {
  const std::string_view named = api::Label(pod, api::keys::kJobName);
  if (!named.empty()) return std::string(named);
  const std::string_view group = api::Label(pod, api::keys::kPodGroup);
  if (!group.empty()) return std::string(group);
  const auto owner = api::ControllerOf(pod);
  return owner ? owner->name : std::string(api::Name(pod));
}

json::Object PodRow(const json::Value& pod, const NamespaceProjects& projects) {
  return json::Object{{"namespace", boost::json::string_view(api::Namespace(pod))},
                      {"name", boost::json::string_view(api::Name(pod))},
                      {"status", cli::PodStatusWord(pod)},
                      {"project", TextOrNull(ProjectOf(pod, projects))},
                      {"job", JobOf(pod)},
                      {"gpus", GpuNumber(cli::MilliGpus(pod))}};
}

// Why a node gets no pods, or fewer than it could: its fault, or why it is not ready.
std::string ReasonOf(const json::Value& node, bool ready) {
  if (ready) {
    const cli::NodeHealthState health = cli::HealthOfNode(node);
    if (!health.faults.empty()) return health.faults;
    return api::IsUnschedulable(node) ? "cordoned" : "";
  }
  const auto condition = api::FindCondition(node, "Ready");
  if (!condition) return "its agent has not reported yet";
  return std::string(condition->message.empty() ? condition->reason : condition->message);
}

}  // namespace

std::string ProjectOf(const json::Value& pod, const NamespaceProjects& projects) {
  const auto found = projects.find(api::Namespace(pod));
  return found != projects.end() ? found->second
                                 : std::string(api::Label(pod, api::keys::kProject));
}

NamespaceProjects ProjectsOfNamespaces(const ViewInput& input) {
  NamespaceProjects projects;
  bool partial = false;
  for (const auto& project : cli::ViewProjects(input.Of(Kind::kProject, partial)).projects) {
    if (!project.department && !project.ns.empty()) projects[project.ns] = project.name;
  }
  return projects;
}

bool MaySeePod(const ViewInput& input, const json::Value& pod) {
  return input.rights.May(Kind::kPod, api::Namespace(pod));
}

std::vector<cli::NodeView> NodesOf(const ViewInput& input, bool& partial) {
  std::vector<json::SharedValue> pods;
  for (const auto& [key, pod] : input.state.Of(Kind::kPod)) {
    pods.push_back(pod);
    partial = partial || !MaySeePod(input, *pod);
  }
  return cli::ViewNodes(input.Of(Kind::kNode, partial), pods);
}

std::vector<GpuUse> GpusOf(const cli::NodeView& node,
                           const NamespaceProjects& projects,
                           const ViewInput& input) {
  std::vector<GpuUse> gpus(static_cast<size_t>(std::clamp<int64_t>(node.gpus(), 0, 1024)));
  for (const json::SharedValue& pod : node.pods) {
    const std::string_view devices = api::Annotation(*pod, api::keys::kGpuDevices);
    if (devices.empty()) continue;
    const auto indices = Split(devices, ',');
    const int64_t each = cli::MilliGpus(*pod) / static_cast<int64_t>(indices.size());
    for (std::string_view text : indices) {
      const auto index = ParseUint(Trim(text));
      if (!index || *index >= gpus.size()) continue;
      GpuUse& gpu = gpus[*index];
      gpu.milli += each;
      if (!MaySeePod(input, *pod)) continue;
      gpu.pod = pod;
      gpu.project = ProjectOf(*pod, projects);
      gpu.job = JobOf(*pod);
    }
  }
  return gpus;
}

std::string PoolOfNode(const json::Value& node, const std::vector<json::SharedValue>& pools) {
  for (const json::SharedValue& pool : pools) {
    if (api::NodePoolSpec(*pool).Selects(node)) return std::string(api::Name(*pool));
  }
  return "";
}

namespace {

json::Array Devices(const cli::NodeView& node,
                    const NamespaceProjects& projects,
                    const ViewInput& input) {
  const PodUsage& usage = input.state.usage();
  json::Array devices;
  const std::vector<GpuUse> gpus = GpusOf(node, projects, input);
  const std::vector<GpuHealth> health = HealthOfGpus(*node.object, gpus.size());
  // Some device plugins only count unhealthy GPUs. Then the last ones that nobody holds are shown.
  const size_t usable = api::UnhealthyGpus(*node.object).empty()
                            ? static_cast<size_t>(std::max<int64_t>(0, node.healthy_gpus()))
                            : gpus.size();
  for (size_t i = 0; i < gpus.size(); ++i) {
    const GpuUse& gpu = gpus[i];
    const bool unhealthy = !health[i].healthy || (i >= usable && gpu.milli == 0);
    const auto part = gpu.pod ? usage.GpuPart(*gpu.pod) : std::nullopt;
    const auto idle = gpu.pod ? usage.IdleSince(*gpu.pod) : std::nullopt;
    devices.push_back(json::Object{
        {"index", static_cast<int64_t>(i)},
        {"uuid", nullptr},
        {"model", TextOrNull(node.gpu_type)},
        {"health", unhealthy ? "Unhealthy" : "Healthy"},
        {"healthReason", TextOrNull(health[i].reason)},
        {"utilization", part ? json::Value(*part) : json::Value(nullptr)},
        {"memoryUsed", nullptr},
        {"share", static_cast<double>(gpu.milli) / 1000},
        {"project", TextOrNull(gpu.project)},
        {"job", TextOrNull(gpu.job)},
        {"namespace", gpu.pod ? json::Value(boost::json::string_view(api::Namespace(*gpu.pod)))
                              : json::Value(nullptr)},
        {"pod", gpu.pod ? json::Value(boost::json::string_view(api::Name(*gpu.pod)))
                        : json::Value(nullptr)},
        {"idleSince", TimeOrNull(idle)}});
  }
  return devices;
}

json::Object NodeRow(const cli::NodeView& node,
                     const std::vector<json::SharedValue>& pools,
                     const NamespaceProjects& projects,
                     const ViewInput& input) {
  const PodUsage& usage = input.state.usage();
  json::Array pods;
  PodUsage::Use used;
  for (const json::SharedValue& pod : node.pods) {
    if (MaySeePod(input, *pod)) pods.push_back(PodRow(*pod, projects));
    if (const PodUsage::Use* use = usage.Find(*pod)) {
      used.cores += use->cores;
      used.memory += use->memory;
    }
  }
  auto amounts = [&usage](double total, double held, double use) {
    return json::Object{{"total", total},
                        {"held", held},
                        {"used", usage.empty() ? json::Value(nullptr) : json::Value(use)}};
  };
  return json::Object{{"name", node.name},
                      {"status", node.StatusWord()},
                      {"reason", ReasonOf(*node.object, node.ready)},
                      {"role", node.role},
                      {"pool", TextOrNull(PoolOfNode(*node.object, pools))},
                      {"gpuType", TextOrNull(node.gpu_type)},
                      {"gpus", json::Object{{"total", node.gpus()},
                                            {"held", GpuNumber(node.used.milli_gpus)},
                                            {"free", GpuNumber(node.FreeMilliGpus())}}},
                      {"gpuDevices", Devices(node, projects, input)},
                      {"cpu", amounts(static_cast<double>(node.total.milli_cpu) / 1000,
                                      static_cast<double>(node.used.milli_cpu) / 1000, used.cores)},
                      {"memory", amounts(static_cast<double>(node.total.memory),
                                         static_cast<double>(node.used.memory), used.memory)},
                      {"pods", std::move(pods)},
                      {"conditions", ConditionRows(*node.object)},
                      {"health", HealthOfNode(*node.object, input)},
                      {"unschedulable", node.unschedulable},
                      {"created", TextOrNull(api::CreationTimestamp(*node.object))}};
}

// `nodes`: those that are counted in the pool.
json::Object PoolRow(const json::Value& pool,
                     const std::vector<const cli::NodeView*>& nodes,
                     int64_t projects) {
  const api::NodePoolSpec spec(pool);
  json::Array names;
  cli::Amounts total, held;
  for (const cli::NodeView* node : nodes) {
    names.push_back(json::Value(node->name));
    total.Add(node->total);
    held.Add(node->used);
  }
  json::Value label = nullptr;
  for (const auto& one : *spec.node_selector) {
    const std::string_view value =
        one.value().is_string() ? json::View(one.value().get_string()) : std::string_view();
    label = json::Object{{"key", one.key()}, {"value", boost::json::string_view(value)}};
    break;  // the pages' form knows one
  }
  const double gpus = static_cast<double>(total.milli_gpus) / 1000;
  const double gpus_held = static_cast<double>(held.milli_gpus) / 1000;
  return json::Object{{"name", boost::json::string_view(api::Name(pool))},
                      {"status", names.empty() ? "Empty" : "Ready"},
                      {"label", std::move(label)},
                      {"nodes", std::move(names)},
                      {"gpus", json::Object{{"total", gpus},
                                            {"held", gpus_held},
                                            {"free", std::max(0.0, gpus - gpus_held)}}},
                      {"cpus", json::Object{{"total", static_cast<double>(total.milli_cpu) / 1000},
                                            {"held", static_cast<double>(held.milli_cpu) / 1000}}},
                      {"memory", json::Object{{"total", static_cast<double>(total.memory)},
                                              {"held", static_cast<double>(held.memory)}}},
                      {"strategy", json::Object{{"gpu", spec.spreads_gpu ? "Spread" : "Pack"},
                                                {"cpu", spec.spreads_cpu ? "Spread" : "Pack"}}},
                      {"created", TextOrNull(api::CreationTimestamp(pool))},
                      {"projects", projects}};
}

}  // namespace

Result<json::Value> NodesView(const ViewInput& input) {
  bool partial = false;
  const auto pools = input.Of(Kind::kNodePool, partial);
  const NamespaceProjects projects = ProjectsOfNamespaces(input);
  json::Array rows;
  for (const cli::NodeView& node : NodesOf(input, partial)) {
    rows.push_back(NodeRow(node, pools, projects, input));
  }
  json::Object out{{"rows", std::move(rows)}};
  if (partial) out["partial"] = true;
  return json::Value(std::move(out));
}

Result<json::Value> NodePoolsView(const ViewInput& input) {
  bool partial = false;
  const auto pools = input.Of(Kind::kNodePool, partial);
  const auto projects = input.Of(Kind::kProject, partial);
  const auto nodes = NodesOf(input, partial);
  std::map<std::string, std::vector<const cli::NodeView*>, std::less<>> nodes_of;
  for (const cli::NodeView& node : nodes)
    nodes_of[PoolOfNode(*node.object, pools)].push_back(&node);
  json::Array rows;
  for (const json::SharedValue& pool : pools) {
    int64_t users = 0;
    for (const json::SharedValue& project : projects) {
      const api::ProjectSpec spec(*project);
      users += std::any_of(spec.pools.begin(), spec.pools.end(),
                           [&pool](const auto& one) { return one.name == api::Name(*pool); });
    }
    rows.push_back(PoolRow(*pool, nodes_of[std::string(api::Name(*pool))], users));
  }
  json::Object out{{"rows", std::move(rows)}};
  if (partial) out["partial"] = true;
  return json::Value(std::move(out));
}

}  // namespace swell::ui
