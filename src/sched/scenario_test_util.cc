#include "sched/scenario_test_util.h"

#include <algorithm>
#include <cstdlib>

#include "sched/actions/registry.h"
#include "sched/replay.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

std::string Short(const std::string& key) { return key.substr(key.find('/') + 1); }

std::string_view PhaseName(PodPhase phase) {
  constexpr std::string_view kNames[] = {"Pending",   "Bound",     "Running",
                                         "Releasing", "Succeeded", "Failed"};
  return kNames[static_cast<int>(phase)];
}

Duration Minutes(double minutes) {
  return Duration(static_cast<int64_t>(minutes * 60 * 1'000'000'000.0));
}

uint64_t FromEnvironment(const char* name, uint64_t usual) {
  const char* said = std::getenv(name);
  return said == nullptr ? usual : ParseUint(said).value_or(usual);
}

}  // namespace

uint64_t FirstSeed() { return FromEnvironment("SWELL_SEED", 1); }
uint64_t LastSeed(uint64_t usual) {
  return FirstSeed() + std::max<uint64_t>(1, FromEnvironment("SWELL_SEEDS", usual)) - 1;
}

void Scenario::Node(const std::string& name, const NodeSpec& spec) {
  NodeInfo node;
  node.name = name;
  node.labels = spec.labels;
  node.labels["kubernetes.io/hostname"] = name;
  node.taints = spec.taints;
  node.allocatable.cpu_milli = spec.cpu;
  node.allocatable.memory_bytes = spec.memory_gib << 30;
  node.allocatable.pods = spec.pods;
  node.allocatable.extended = spec.extended;
  if (spec.gpus > 0) node.allocatable.extended[kGpuResource] = spec.gpus;
  node.unschedulable = spec.cordoned;
  node.ready = spec.ready;
  node.gpu_memory_mib = spec.gpu_mib;
  nodes[name] = node;
  model.UpsertNode(node);
}

void Scenario::Group(const std::string& name, const GroupSpec& spec) {
  GroupInfo group;
  group.key = "default/" + name;
  group.uid = "uid-" + name;
  group.queue = spec.queue;
  group.priority = spec.priority;
  group.preemptible = spec.preemptible;
  group.creation = kNoon - Minutes(spec.minutes_old);
  group.pod_sets = spec.sets;
  group.groups = spec.subgroups;
  if (group.pod_sets.empty()) group.pod_sets = {PodSet{"default", spec.min, "", {}}};
  group.topology = spec.topology;
  group.preempt_unit = spec.unit;
  group.min_runtime = spec.min_runtime;
  group.may_preempt = spec.may_preempt;
  group.goodput = spec.goodput;
  groups[name] = group;
  model.UpsertGroup(group);
}

void Scenario::Pod(const std::string& name, const PodSpec& spec) {
  PodInfo pod;
  pod.key = "default/" + name;
  pod.uid = StrCat("uid-", name, "-", ++uids_);
  pod.labels = spec.labels;
  if (!spec.group.empty()) pod.group = "default/" + spec.group;
  pod.pod_set = spec.set;
  pod.user = spec.user;
  pod.requests.cpu_milli = spec.cpu;
  pod.requests.memory_bytes = spec.memory_mib << 20;
  pod.requests.extended = spec.extended;
  if (spec.gpus > 0) pod.requests.extended[kGpuResource] = spec.gpus;
  pod.gpu_fraction = spec.fraction;
  pod.gpu_memory_mib = spec.gpu_mib;
  pod.node_selector = spec.selector;
  pod.required_node_affinity = spec.required;
  pod.preferred_node_affinity = spec.preferred;
  pod.tolerations = spec.tolerations;
  pod.host_ports = spec.ports;
  pod.required_affinity = spec.affinity;
  pod.required_anti_affinity = spec.anti_affinity;
  pod.spread = spec.spread;
  pod.scheduling_gates = spec.gates;
  pod.obstacle = spec.obstacle;
  pod.may_preempt = spec.may_preempt;
  pod.comes_back = spec.comes_back;
  pod.gpu_fraction_devices = spec.fraction_devices;
  pod.volume_affinity = spec.volumes;
  pod.priority = spec.priority;
  pod.preemptible = spec.preemptible;
  pod.ours = spec.ours;
  pod.creation = kNoon - Minutes(spec.minutes_old);
  pod.member_priority = spec.member_priority;
  if (!spec.on.empty()) {
    pod.node = spec.on;
    pod.phase = PodPhase::kRunning;
    pod.start = kNoon - Minutes(spec.started_minutes_ago);
    pod.gpu_devices = spec.devices;
  }
  pods[name] = pod;
  model.UpsertPod(pod);
}

void Scenario::Pods(const std::string& name, int count, const PodSpec& spec) {
  for (int i = 0; i < count; ++i) Pod(StrCat(name, "-", i), spec);
}

void Scenario::Budget(const std::string& name, const Labels& labels, int allowed) {
  BudgetInfo budget{"default/" + name, {}, allowed};
  for (const auto& [key, value] : labels) {
    budget.selector.push_back({key, SelectorOp::kIn, {value}});
  }
  model.UpsertBudget(budget);
}

void Scenario::RemovePod(const std::string& name) {
  pods.erase(name);
  model.RemovePod("default/" + name);
}

QueueInfo MakeQueue(const std::string& name, double gpus, const std::string& parent) {
  QueueInfo queue;
  queue.name = name;
  queue.parent = parent;
  queue.gpu = {gpus, kUnlimited, 1};
  queue.cpu = {kUnlimited, kUnlimited, 1};
  queue.memory = {kUnlimited, kUnlimited, 1};
  return queue;
}

CycleOptions Only(std::initializer_list<std::string_view> actions) {
  CycleOptions options{.actions = 0};
  for (std::string_view name : actions) options.actions |= ActionBit(name);
  return options;
}

const CycleResult& Scenario::Cycle(const CycleOptions& options) {
  last = scheduler.RunCycle(model, now, options);
  for (const Decision& d : last.decisions) {
    PodInfo& pod = pods[Short(d.pod)];
    switch (d.type) {
      case Decision::Type::kBind:
        pod.node = d.node;
        pod.phase = PodPhase::kBound;
        pod.gpu_devices = d.gpu_devices;
        pod.nominated_node.clear();
        break;
      case Decision::Type::kNominate:
        pod.nominated_node = d.node;
        break;
      case Decision::Type::kEvict:
        pod.phase = PodPhase::kReleasing;
        break;
    }
    model.UpsertPod(pod);
  }
  for (const std::string& key : last.nominations_cleared) {
    pods[Short(key)].nominated_node.clear();
  }
  for (const std::string& key : last.moved) {
    auto group = groups.find(Short(key));
    if (group != groups.end()) group->second.moved_at = now;
  }
  return last;
}

void Scenario::AdvancePods() {
  for (auto& [name, pod] : pods) {
    if (pod.phase == PodPhase::kBound) {
      pod.phase = PodPhase::kRunning;
      pod.start = now;
      model.UpsertPod(pod);
    } else if (pod.phase == PodPhase::kReleasing) {
      model.RemovePod(pod.key);
      pod.phase = PodPhase::kPending;
      pod.node.clear();
      pod.gpu_devices.clear();
      pod.nominated_node.clear();
      pod.start = {};
      pod.uid = StrCat("uid-", name, "-", ++uids_);
      model.UpsertPod(pod);
    }
  }
}

int Scenario::Converge(int most) {
  int active = 0;
  for (int i = 0; i < most; ++i) {
    AdvancePods();
    Cycle();
    if (last.decisions.empty() && !last.more) return active;
    ++active;
  }
  return active;
}

std::string Scenario::Log() const {
  std::string out;
  for (const Decision& d : last.decisions) {
    std::vector<std::string> devices;
    for (int i : d.gpu_devices) devices.push_back(std::to_string(i));
    out += StrCat(DecisionTypeName(d.type), " ", Short(d.pod), " ", d.node, " [",
                  Join(devices, ","), "] ", d.rule, "\n");
  }
  return out;
}

std::string Scenario::Places() const {
  std::string out;
  for (const Model::PodView& pod : model.Pods()) {
    out += StrCat(Short(pod.key), ":", PhaseName(pod.phase));
    if (!pod.node.empty()) out += "@" + pod.node;
    if (!pod.nominated_node.empty()) out += ">" + pod.nominated_node;
    out += '\n';
  }
  return out;
}

std::string Scenario::PhaseOf(const std::string& pod) const {
  auto view = model.Pod("default/" + pod);
  return view ? std::string(PhaseName(view->phase)) : "absent";
}

std::string Scenario::NodeOf(const std::string& pod) const {
  auto view = model.Pod("default/" + pod);
  return view ? view->node : "";
}

const Waiting* Scenario::WaitingOf(const std::string& name) const {
  for (const Waiting& w : last.waiting) {
    if (w.group == "default/" + name) return &w;
    if (w.group.empty() && w.pods.front() == "default/" + name) return &w;
  }
  return nullptr;
}

int Scenario::CountDecisions(Decision::Type type) const {
  return static_cast<int>(std::count_if(last.decisions.begin(), last.decisions.end(),
                                        [type](const Decision& d) { return d.type == type; }));
}

std::string Scenario::Violations() const {
  struct Sum {
    int64_t cpu = 0, memory = 0, pods = 0;
    std::map<int, double> devices;
  };
  std::map<std::string, Sum> sums;
  std::map<std::string, std::map<std::string, int>> members;  // group → set → holding
  std::string wrong;
  for (const auto& [name, pod] : pods) {
    auto view = model.Pod(pod.key);
    if (!view) return "the model lost " + name;
    if (view->node.empty()) continue;
    Sum& sum = sums[view->node];
    sum.cpu += pod.requests.cpu_milli;
    sum.memory += pod.requests.memory_bytes;
    ++sum.pods;
    auto gpus = pod.requests.extended.find(kGpuResource);
    const size_t whole = gpus == pod.requests.extended.end() ? 0 : gpus->second;
    if (whole > 0 && view->gpu_devices.size() != whole) {
      wrong += StrCat(name, " has ", view->gpu_devices.size(), " devices, not ", whole, "\n");
    }
    for (int d : view->gpu_devices) sum.devices[d] += whole > 0 ? 1.0 : pod.gpu_fraction;
    if (pod.phase != PodPhase::kReleasing && !pod.group.empty()) {
      ++members[Short(pod.group)][pod.pod_set.empty() ? "default" : pod.pod_set];
    }
  }
  for (const auto& [node, sum] : sums) {
    const NodeInfo& info = nodes.at(node);
    if (sum.cpu > info.allocatable.cpu_milli) wrong += node + " is over its CPU\n";
    if (sum.memory > info.allocatable.memory_bytes) wrong += node + " is over its memory\n";
    if (sum.pods > info.allocatable.pods) wrong += node + " has too many pods\n";
    auto gpus = info.allocatable.extended.find(kGpuResource);
    const int count = gpus == info.allocatable.extended.end() ? 0 : static_cast<int>(gpus->second);
    for (const auto& [device, used] : sum.devices) {
      if (device >= count) wrong += StrCat(node, " has no device ", device, "\n");
      if (used > 1.0001) wrong += StrCat(node, " device ", device, " is doubly owned\n");
    }
  }
  for (const auto& [group, by_set] : members) {
    for (const PodSet& set : groups.at(group).pod_sets) {
      auto it = by_set.find(set.name);
      const int holding = it == by_set.end() ? 0 : it->second;
      if (holding < set.min_member) wrong += StrCat("gang ", group, " is half alive\n");
    }
  }
  return wrong;
}

void Scenario::KeepRecords(size_t segment_bytes) {
  Recorder::Options options{.segment_bytes = segment_bytes};
  recorder_ = std::make_unique<Recorder>(
      options, 1, [this](std::string record, bool) { records.push_back(std::move(record)); });
  model.Record(recorder_.get());
  scheduler.Record(recorder_.get());
}

std::string Scenario::ReplayDifference() const {
  Replay replay;
  uint64_t expected = 1;
  for (const std::string& record : records) {
    auto cycle = replay.Next(record);
    if (!cycle.ok()) return cycle.status().message();
    if (!*cycle) continue;
    if ((*cycle)->number != expected++) return StrCat("cycle ", (*cycle)->number, " out of order");
    if (!(*cycle)->difference.empty()) {
      return StrCat("cycle ", (*cycle)->number, ": ", (*cycle)->difference);
    }
  }
  return "";
}

void Scenario::FillModel(Model& other, bool backwards) const {
  auto each = [backwards](const auto& map, auto fn) {
    if (backwards) {
      for (auto it = map.rbegin(); it != map.rend(); ++it) fn(it->second);
    } else {
      for (const auto& [name, value] : map) fn(value);
    }
  };
  auto add_nodes = [&] { each(nodes, [&](const NodeInfo& n) { other.UpsertNode(n); }); };
  auto add_groups = [&] { each(groups, [&](const GroupInfo& g) { other.UpsertGroup(g); }); };
  if (!backwards) add_nodes(), add_groups();
  each(pods, [&](const PodInfo& p) { other.UpsertPod(p); });
  if (backwards) add_groups(), add_nodes();
}

}  // namespace swell::sched
