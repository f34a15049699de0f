// How fast cycles are: filling a cluster, gangs, doing nothing, preempting.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <tuple>

#include <benchmark/benchmark.h>

#include "base/strings.h"
#include "sched/model.h"
#include "sched/record/keyframe.h"
#include "sched/record/recorder.h"
#include "sched/scheduler.h"

namespace swell::sched {
namespace {

constexpr WallTime kNow{1767268800LL * 1'000'000'000LL};

// CPU time: what others do on the machine does not count.
double CpuMs() { return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC; }

// What is allocated, whatever the allocator keeps beside it.
double HeapMiB() {
  return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / (1 << 20);
}

void AddNodes(Model& model, int count, int gpus) {
  for (int i = 0; i < count; ++i) {
    NodeInfo node;
    node.name = StrCat("node-", 10'000 + i);
    node.labels = {{"kubernetes.io/hostname", node.name}};
    node.allocatable.cpu_milli = 96'000;
    node.allocatable.memory_bytes = int64_t{1024} << 30;
    node.allocatable.pods = 110;
    node.allocatable.extended[kGpuResource] = gpus;
    model.UpsertNode(node);
  }
}

PodInfo MakePod(const std::string& name, int gpus, int priority) {
  PodInfo pod;
  pod.key = "default/" + name;
  pod.uid = "uid-" + name;
  pod.requests.cpu_milli = 100;
  pod.requests.memory_bytes = int64_t{1} << 30;
  if (gpus > 0) pod.requests.extended[kGpuResource] = gpus;
  pod.priority = priority;
  pod.creation = kNow - std::chrono::minutes(10);
  return pod;
}

void AddRunning(Model& model, int nodes, int per_node, int gpus) {
  for (int n = 0; n < nodes; ++n) {
    for (int i = 0; i < per_node; ++i) {
      PodInfo pod = MakePod(StrCat("run-", n, "-", i), gpus, 50);
      pod.node = StrCat("node-", 10'000 + n);
      pod.phase = PodPhase::kRunning;
      pod.start = kNow - std::chrono::seconds(60 + (n * 7919 + i * 104'729) % 3600);
      for (int d = 0; d < gpus; ++d) pod.gpu_devices.push_back(i * gpus + d);
      model.UpsertPod(pod);
    }
  }
}

void AddGang(Model& model, const std::string& name, int members, int gpus, int priority) {
  GroupInfo group;
  group.key = "default/" + name;
  group.uid = "uid-" + name;
  group.priority = priority;
  group.pod_sets = {PodSet{"worker", members, "", {}}};
  model.UpsertGroup(group);
  for (int i = 0; i < members; ++i) {
    PodInfo pod = MakePod(StrCat(name, "-", i), gpus, priority);
    pod.group = group.key;
    model.UpsertPod(pod);
  }
}

// 50,000 single-GPU pods, each a group of its own, onto 5,000 nodes of 10 GPUs.
void BM_PlaceSinglePods(benchmark::State& bench) {
  const int pods = static_cast<int>(bench.range(0));
  for (auto _ : bench) {
    bench.PauseTiming();
    auto model = std::make_unique<Model>();
    AddNodes(*model, 5000, 10);
    for (int i = 0; i < pods; ++i) model->UpsertPod(MakePod(StrCat("p-", i), 1, 50));
    Scheduler scheduler({});
    bench.ResumeTiming();
    auto result = std::make_unique<CycleResult>(scheduler.RunCycle(*model, kNow));
    bench.PauseTiming();
    if (static_cast<int>(result->decisions.size()) != pods) {
      return bench.SkipWithError("not all placed");
    }
    result.reset();
    model.reset();
    bench.ResumeTiming();
  }
  bench.SetItemsProcessed(bench.iterations() * pods);
}
BENCHMARK(BM_PlaceSinglePods)->Arg(50'000)->Unit(benchmark::kMillisecond);

// A mix of nodes of four kinds, some of them tainted, and pods of six kinds, each a group of its
// own.
struct MixedNode {
  int64_t cpu_milli = 0;
  int gpus = 0;
  int kind = 0;
  bool tainted = false;
};
MixedNode MixedNodeOf(int i) {
  return {i % 4 == 0 ? 128'000 : 96'000, i % 4 != 0 ? 4 << (i % 3) : 0, i % 4, i % 12 == 3};
}
struct MixedPod {
  int64_t cpu_milli = 100;
  int gpus = 0;
  double fraction = 0;
  int node_kind = -1;  // only there; -1: anywhere
  bool tolerates = false;
};
MixedPod MixedPodOf(int i) {
  const int kind = i % 10;
  MixedPod pod;
  if (kind > 6) pod.cpu_milli = 1000 * (kind - 6);
  pod.gpus = kind < 4 ? 1 : (kind == 4 ? 2 : 0);
  pod.fraction = kind == 6 ? 0.5 : 0;
  pod.node_kind = kind == 5 ? 1 : -1;
  pod.tolerates = kind == 3;
  return pod;
}

void FillMixed(Model& model, int nodes, int pods) {
  for (int i = 0; i < nodes; ++i) {
    const MixedNode mixed = MixedNodeOf(i);
    NodeInfo node;
    node.name = StrCat("node-", 100'000 + i);
    node.labels = {{"kubernetes.io/hostname", node.name}, {"kind", StrCat("k", mixed.kind)}};
    node.allocatable.cpu_milli = mixed.cpu_milli;
    node.allocatable.memory_bytes = int64_t{1024} << 30;
    node.allocatable.pods = 110;
    if (mixed.gpus > 0) node.allocatable.extended[kGpuResource] = mixed.gpus;
    if (mixed.tainted) node.taints = {{"gpu", "large", TaintEffect::kNoSchedule}};
    model.UpsertNode(node);
  }
  for (int i = 0; i < pods; ++i) {
    const MixedPod mixed = MixedPodOf(i);
    PodInfo pod = MakePod(StrCat("p-", i), mixed.gpus, 50);
    pod.requests.cpu_milli = mixed.cpu_milli;
    pod.gpu_fraction = mixed.fraction;
    if (mixed.node_kind >= 0) pod.node_selector = {{"kind", StrCat("k", mixed.node_kind)}};
    if (mixed.tolerates) pod.tolerations = {{"gpu", true, "", std::nullopt}};
    model.UpsertPod(pod);
  }
}

// Ten pods for each node: how many, and what is allocated for model and decisions.
void BM_PlaceMixedPods(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  const int pods = 10 * nodes;
  for (auto _ : bench) {
    bench.PauseTiming();
    const double before = HeapMiB();
    auto model = std::make_unique<Model>();
    FillMixed(*model, nodes, pods);
    Settings settings;
    settings.binds_per_cycle_max = pods;
    Scheduler scheduler(settings);
    bench.ResumeTiming();
    auto result = std::make_unique<CycleResult>(scheduler.RunCycle(*model, kNow));
    bench.PauseTiming();
    if (static_cast<int>(result->decisions.size()) != pods) {
      return bench.SkipWithError("not all placed");
    }
    bench.counters["MiB_with_decisions"] = HeapMiB() - before;
    result.reset();
    bench.counters["MiB"] = HeapMiB() - before;
    model.reset();
    bench.ResumeTiming();
  }
  bench.SetItemsProcessed(bench.iterations() * pods);
}
BENCHMARK(BM_PlaceMixedPods)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

// How many fitting nodes kube-scheduler looks for before it takes the best of them.
int Sampled(int nodes) { return std::max(100, nodes * std::max(5, 50 - nodes / 125) / 100); }

// The same pods on the same nodes by looking at every node for every pod, as a scheduler without an
// index does, or at a sample of them from where the last look ended, as kube-scheduler does. Only
// the bare search, without what a scheduler does beside it.
class Scanner {
 public:
  explicit Scanner(int nodes, int looked_at) : looked_at_(looked_at) {
    for (int i = 0; i < nodes; ++i) {
      const MixedNode node = MixedNodeOf(i);
      nodes_.push_back({node, node.cpu_milli, node.gpus, 0, 110});
    }
  }
  bool Place(const MixedPod& pod) {
    const int count = static_cast<int>(nodes_.size());
    Node* best = nullptr;
    int seen = 0;
    for (int fitting = 0; seen < count && fitting < looked_at_; ++seen) {
      Node& node = nodes_[(next_ + seen) % count];
      if (!Fits(pod, node)) continue;
      ++fitting;
      if (best == nullptr || Rank(pod, node) < Rank(pod, *best)) best = &node;
    }
    next_ = (next_ + seen) % count;
    if (best == nullptr) return false;
    best->cpu -= pod.cpu_milli;
    best->gpus -= pod.gpus;
    --best->pods;
    if (pod.fraction > 0) {
      if (best->halves == 0) --best->gpus, best->halves = 2;
      --best->halves;
    }
    return true;
  }

 private:
  struct Node {
    MixedNode is;
    int64_t cpu = 0;
    int gpus = 0;
    int halves = 0;
    int pods = 0;
  };
  static bool Fits(const MixedPod& pod, const Node& node) {
    return node.cpu >= pod.cpu_milli && node.gpus >= pod.gpus && node.pods > 0 &&
           (pod.fraction == 0 || node.halves > 0 || node.gpus > 0) &&
           (pod.node_kind < 0 || pod.node_kind == node.is.kind) &&
           (!node.is.tainted || pod.tolerates);
  }
  static std::tuple<bool, int64_t> Rank(const MixedPod& pod, const Node& node) {
    if (pod.gpus > 0 || pod.fraction > 0) return {false, node.gpus};
    return {node.is.gpus > 0, node.cpu};
  }

  std::vector<Node> nodes_;
  int looked_at_;
  int next_ = 0;
};

void PlaceByScanning(benchmark::State& bench, bool all) {
  const int nodes = static_cast<int>(bench.range(0));
  for (auto _ : bench) {
    Scanner scanner(nodes, all ? nodes : Sampled(nodes));
    for (int i = 0; i < 10 * nodes; ++i) {
      if (!scanner.Place(MixedPodOf(i))) return bench.SkipWithError("not all placed");
    }
  }
  bench.SetItemsProcessed(bench.iterations() * 10 * nodes);
}
void BM_PlaceMixedPodsNaively(benchmark::State& bench) { PlaceByScanning(bench, true); }
BENCHMARK(BM_PlaceMixedPodsNaively)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);
void BM_PlaceMixedPodsSampling(benchmark::State& bench) { PlaceByScanning(bench, false); }
BENCHMARK(BM_PlaceMixedPodsSampling)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

// Gangs onto 5,000 nodes of 8 GPUs: how many, of how many members.
void BM_PlaceGangs(benchmark::State& bench) {
  const int gangs = static_cast<int>(bench.range(0));
  const int members = static_cast<int>(bench.range(1));
  for (auto _ : bench) {
    bench.PauseTiming();
    auto model = std::make_unique<Model>();
    AddNodes(*model, 5000, 10);
    for (int i = 0; i < gangs; ++i) AddGang(*model, StrCat("gang-", i), members, 1, 50);
    Scheduler scheduler({});
    bench.ResumeTiming();
    const CycleResult result = scheduler.RunCycle(*model, kNow);
    bench.PauseTiming();
    if (static_cast<int>(result.decisions.size()) != gangs * members) {
      bench.SkipWithError("not placed");
    }
    model.reset();
    bench.ResumeTiming();
  }
  bench.SetItemsProcessed(bench.iterations() * gangs * members);
}
BENCHMARK(BM_PlaceGangs)
    ->Args({1, 1000})
    ->Args({3000, 3})
    ->Args({9, 1000})
    ->Args({10, 5000})
    ->Unit(benchmark::kMillisecond);

// 4,000 nodes and 140,000 pods, nothing changed.
void BM_EmptyCycle(benchmark::State& bench) {
  Model model;
  AddNodes(model, 4000, 8);
  AddRunning(model, 4000, 35, 0);
  Scheduler scheduler({});
  scheduler.RunCycle(model, kNow);
  for (auto _ : bench) {
    const CycleResult result = scheduler.RunCycle(model, kNow);
    benchmark::DoNotOptimize(result.decisions.size());
  }
}
BENCHMARK(BM_EmptyCycle);

// The same cluster with 4,000 pods waiting that nothing can be done for: one pod leaves and is
// replaced, and everyone is looked at again.
void BM_SmallChangeInLargeCluster(benchmark::State& bench) {
  Model model;
  AddNodes(model, 4000, 8);
  AddRunning(model, 4000, 35, 0);
  for (int i = 0; i < 4000; ++i) model.UpsertPod(MakePod(StrCat("wait-", i), 9, 50));
  Scheduler scheduler({});
  scheduler.RunCycle(model, kNow);
  int number = 0;
  for (auto _ : bench) {
    model.RemovePod(StrCat("default/", number == 0 ? "run-17-3" : StrCat("new-", number)));
    model.UpsertPod(MakePod(StrCat("new-", ++number), 0, 50));
    const CycleResult result = scheduler.RunCycle(model, kNow);
    if (result.decisions.size() != 1) bench.SkipWithError("the new pod was not placed");
  }
}
BENCHMARK(BM_SmallChangeInLargeCluster)->Unit(benchmark::kMicrosecond);

// A full cluster of 1,000 nodes with 8 single-GPU pods each; a gang of whole nodes preempts.
void BM_PreemptOnFullCluster(benchmark::State& bench) {
  const int members = static_cast<int>(bench.range(0));
  for (auto _ : bench) {
    bench.PauseTiming();
    auto model = std::make_unique<Model>();
    AddNodes(*model, 1000, 8);
    AddRunning(*model, 1000, 8, 1);
    Scheduler scheduler({});
    scheduler.RunCycle(*model, kNow);
    AddGang(*model, "urgent", members, 8, 90);
    bench.ResumeTiming();
    const CycleResult result = scheduler.RunCycle(*model, kNow);
    bench.PauseTiming();
    if (static_cast<int>(result.decisions.size()) != members * 9) bench.SkipWithError("no plan");
    model.reset();
    bench.ResumeTiming();
  }
}
BENCHMARK(BM_PreemptOnFullCluster)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);

void AddQueues(Model& model, int count, double gpus) {
  for (int i = 0; i < count; ++i) {
    QueueInfo queue;
    queue.name = StrCat("q-", i);
    queue.gpu.quota = gpus;
    model.UpsertQueue(queue);
  }
}

// Jobs of `members` single-GPU pods, and one without where they have a launcher, that fill `nodes`
// nodes of 8 GPUs, handed to queues in turn.
void FillWithJobs(Model& model, int nodes, int members, int queues, bool launchers = false) {
  const int jobs = nodes * 8 / members;
  for (int j = 0; j < jobs; ++j) {
    GroupInfo group;
    group.key = StrCat("default/job-", j);
    group.uid = group.key;
    group.priority = 50;
    group.queue = queues > 0 ? StrCat("q-", j * members / 8 % queues) : "";
    group.pod_sets = {PodSet{"worker", members + launchers, "", {}}};
    group.creation = kNow - std::chrono::minutes(10);
    model.UpsertGroup(group);
    for (int m = 0; m < members + launchers; ++m) {
      const int slot = j * members + std::min(m, members - 1);
      PodInfo pod = MakePod(StrCat("job-", j, "-", m), m < members, 50);
      pod.group = group.key;
      pod.node = StrCat("node-", 10'000 + slot / 8);
      pod.phase = PodPhase::kRunning;
      pod.start = kNow - std::chrono::seconds(60 + (j * 7919) % 36'000);
      if (m < members) pod.gpu_devices = {slot % 8};
      model.UpsertPod(pod);
    }
  }
}

// 10,000 nodes full with jobs of 15 tenants who have all they are due, and 4,000 jobs of theirs
// that wait for more than the time after which nodes are held; one of them goes and another one
// comes.
void BM_SmallChangeBesideOldBacklog(benchmark::State& bench) {
  Model model;
  AddNodes(model, 10'000, 8);
  AddQueues(model, 15, 5000);
  FillWithJobs(model, 10'000, 4, 15);
  auto wait = [&model](int j) {
    GroupInfo group;
    group.key = StrCat("default/wait-", j);
    group.uid = group.key;
    group.queue = StrCat("q-", j % 15);
    group.priority = 50;
    group.pod_sets = {PodSet{"worker", 8, "", {}}};
    group.creation = kNow - std::chrono::hours(1);
    model.UpsertGroup(group);
    for (int m = 0; m < 8; ++m) {
      PodInfo pod = MakePod(StrCat("wait-", j, "-", m), 8, 50);
      pod.group = group.key;
      model.UpsertPod(pod);
    }
  };
  int number = 0;
  while (number < 4000) wait(number++);
  Scheduler scheduler({});
  scheduler.RunCycle(model, kNow);
  for (auto _ : bench) {
    model.RemoveGroup(StrCat("default/wait-", number - 4000));
    for (int m = 0; m < 8; ++m) {
      model.RemovePod(StrCat("default/wait-", number - 4000, "-", m));
    }
    wait(number++);
    const CycleResult result = scheduler.RunCycle(model, kNow);
    if (!result.decisions.empty()) bench.SkipWithError("somebody was placed");
  }
}
BENCHMARK(BM_SmallChangeBesideOldBacklog)->Unit(benchmark::kMillisecond);

// The i-th urgent gang: how many GPUs, and whose. Large ones are spread so that each tenant has
// what its own need.
std::pair<int, int> UrgentGang(int i) {
  const int power = i < 50 ? i % 10 : i % 7;
  const int round = i / 10;
  const int tenant = power == 9   ? round
                     : power == 8 ? 5 + round
                     : power == 7 ? 10 + round
                                  : 5 + i % 10;
  return {8 << power, tenant};
}

// 10,000 nodes full with 100,000 pods of 20,000 preemptible jobs of 15 tenants; gangs of 8 to 4,096
// GPUs of higher priority arrive one by one.
void BM_PreemptDecisions(benchmark::State& bench) {
  std::vector<double> times;
  for (auto _ : bench) {
    bench.PauseTiming();
    auto model = std::make_unique<Model>();
    AddNodes(*model, 10'000, 8);
    AddQueues(*model, 15, 10'000);
    FillWithJobs(*model, 10'000, 4, 15, true);
    Settings settings;
    settings.search_budget = int64_t{1} << 40;
    Scheduler scheduler(settings);
    scheduler.RunCycle(*model, kNow);
    bench.ResumeTiming();
    for (int i = 0; i < 100; ++i) {
      bench.PauseTiming();
      const auto [gpus, tenant] = UrgentGang(i);
      GroupInfo group;
      group.key = StrCat("default/urgent-", i);
      group.uid = group.key;
      group.priority = 90;
      group.queue = StrCat("q-", tenant);
      group.pod_sets = {PodSet{"worker", gpus / 8, "", {}}};
      group.creation = kNow;
      model->UpsertGroup(group);
      for (int m = 0; m < gpus / 8; ++m) {
        PodInfo pod = MakePod(StrCat("urgent-", i, "-", m), 8, 90);
        pod.group = group.key;
        model->UpsertPod(pod);
      }
      bench.ResumeTiming();
      const double begin = CpuMs();
      const CycleResult result = scheduler.RunCycle(*model, kNow);
      times.push_back(CpuMs() - begin);
      // A node's two jobs of five pods each for every member, and not one more.
      const size_t expected = static_cast<size_t>(gpus / 8) * 11;
      if (result.decisions.size() != expected) {
        return bench.SkipWithError(StrCat("gang ", i, " of ", gpus, " GPUs: ",
                                          result.decisions.size(), " decisions, not ", expected)
                                       .c_str());
      }
    }
    bench.PauseTiming();
    model.reset();
    bench.ResumeTiming();
  }
  std::sort(times.begin(), times.end());
  if (times.empty()) return;
  bench.counters["p50_ms"] = times[times.size() / 2];
  bench.counters["p99_ms"] = times[times.size() * 99 / 100];
}
BENCHMARK(BM_PreemptDecisions)->Iterations(1)->Unit(benchmark::kMillisecond);

// One gang takes the places of 39,000 pods.
void BM_HugeReclaim(benchmark::State& bench) {
  for (auto _ : bench) {
    bench.PauseTiming();
    auto model = std::make_unique<Model>();
    AddNodes(*model, 5000, 8);
    AddQueues(*model, 2, 40'000);
    for (int i = 0; i < 2; ++i) {
      QueueInfo queue;
      queue.name = StrCat("q-", i);
      queue.gpu.quota = i == 0 ? 0 : 40'000;
      model->UpsertQueue(queue);
    }
    FillWithJobs(*model, 5000, 1, 1);
    Settings settings;
    settings.search_budget = int64_t{1} << 40;
    Scheduler scheduler(settings);
    scheduler.RunCycle(*model, kNow);
    AddGang(*model, "claim", 39'000 / 8, 8, 50);
    GroupInfo group;
    group.key = "default/claim";
    group.uid = group.key;
    group.queue = "q-1";
    group.priority = 50;
    group.pod_sets = {PodSet{"worker", 39'000 / 8, "", {}}};
    model->UpsertGroup(group);
    bench.ResumeTiming();
    auto result = std::make_unique<CycleResult>(scheduler.RunCycle(*model, kNow));
    bench.PauseTiming();
    if (result->decisions.size() != 39'000 + 39'000 / 8) return bench.SkipWithError("no plan");
    result.reset();
    model.reset();
    bench.ResumeTiming();
  }
}
BENCHMARK(BM_HugeReclaim)->Unit(benchmark::kMillisecond);

// 500 nodes, 4,000 jobs running over quota, 4,000 of another queue waiting for theirs.
void BM_ReclaimManyJobs(benchmark::State& bench) {
  for (auto _ : bench) {
    bench.PauseTiming();
    auto model = std::make_unique<Model>();
    AddNodes(*model, 500, 8);
    AddQueues(*model, 2, 2000);
    FillWithJobs(*model, 500, 1, 1);
    for (int j = 0; j < 4000; ++j) {
      GroupInfo group;
      group.key = StrCat("default/wait-", j);
      group.uid = group.key;
      group.queue = "q-1";
      group.priority = 50;
      group.pod_sets = {PodSet{"worker", 1, "", {}}};
      model->UpsertGroup(group);
      PodInfo pod = MakePod(StrCat("wait-", j, "-0"), 1, 50);
      pod.group = group.key;
      model->UpsertPod(pod);
    }
    Settings settings;
    settings.search_budget = int64_t{1} << 40;
    Scheduler scheduler(settings);
    bench.ResumeTiming();
    const CycleResult result = scheduler.RunCycle(*model, kNow);
    bench.PauseTiming();
    if (result.decisions.size() != 4000) bench.SkipWithError("not half of it reclaimed");
    model.reset();
    bench.ResumeTiming();
  }
}
BENCHMARK(BM_ReclaimManyJobs)->Unit(benchmark::kMillisecond);

void NodeCounts(benchmark::internal::Benchmark* bench) {
  for (int nodes : {1000, 3000, 10'000, 30'000, 100'000}) bench->Arg(nodes);
  bench->Unit(benchmark::kMicrosecond);
}

// Measures the cycle that places one more pod. Returns how many there were.
int PlaceOneByOne(benchmark::State& bench, Model& model, Scheduler& scheduler) {
  int number = 0;
  for (auto _ : bench) {
    model.UpsertPod(MakePod(StrCat("new-", ++number), 1, 50));
    const CycleResult result = scheduler.RunCycle(model, kNow);
    if (result.decisions.size() != 1) bench.SkipWithError("not placed");
    bench.PauseTiming();
    model.RemovePod(StrCat("default/new-", number));
    bench.ResumeTiming();
  }
  return number;
}

// What one more pod costs as nodes grow.
void BM_OneMorePod(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  Model model;
  AddNodes(model, nodes, 8);
  AddRunning(model, nodes, 4, 1);
  Scheduler scheduler({});
  scheduler.RunCycle(model, kNow);
  PlaceOneByOne(bench, model, scheduler);
}
BENCHMARK(BM_OneMorePod)->Apply(NodeCounts);

void OneMoreByScanning(benchmark::State& bench, bool all) {
  const int nodes = static_cast<int>(bench.range(0));
  Scanner scanner(nodes, all ? nodes : Sampled(nodes));
  const MixedPod pod;
  int placed = 0;
  for (auto _ : bench) {
    if (!scanner.Place(pod)) return bench.SkipWithError("not placed");
    if (++placed < 50 * nodes) continue;
    bench.PauseTiming();
    scanner = Scanner(nodes, all ? nodes : Sampled(nodes));
    placed = 0;
    bench.ResumeTiming();
  }
}
void BM_OneMorePodNaively(benchmark::State& bench) { OneMoreByScanning(bench, true); }
void BM_OneMorePodSampling(benchmark::State& bench) { OneMoreByScanning(bench, false); }
BENCHMARK(BM_OneMorePodNaively)->Apply(NodeCounts);
BENCHMARK(BM_OneMorePodSampling)->Apply(NodeCounts);

// What keeping a record costs: a keyframe of 4,000 nodes and 140,000 pods, and one more pod's
// cycle.
void BM_Keyframe(benchmark::State& bench) {
  Model model;
  AddNodes(model, 4000, 8);
  AddRunning(model, 4000, 35, 0);
  Scheduler scheduler({});
  scheduler.RunCycle(model, kNow);
  size_t bytes = 0;
  for (auto _ : bench) {
    SharedOut shared;
    Packer out(shared);
    WriteKeyframe(out, model.state(), scheduler.settings(), {});
    bytes = out.bytes().size();
  }
  bench.counters["MiB"] = static_cast<double>(bytes) / (1 << 20);
}
BENCHMARK(BM_Keyframe)->Unit(benchmark::kMillisecond);

void BM_OneMorePodRecorded(benchmark::State& bench) {
  Model model;
  size_t bytes = 0;
  Recorder recorder({}, 1, [&bytes](const std::string& record, bool) { bytes += record.size(); });
  model.Record(&recorder);
  AddNodes(model, 10'000, 8);
  AddRunning(model, 10'000, 4, 1);
  Scheduler scheduler({});
  scheduler.Record(&recorder);
  scheduler.RunCycle(model, kNow);
  const int number = PlaceOneByOne(bench, model, scheduler);
  bench.counters["bytes"] = static_cast<double>(bytes) / std::max(1, number);
}
BENCHMARK(BM_OneMorePodRecorded)->Unit(benchmark::kMicrosecond);

// Filling the model: what a restart costs.
void BM_FillModel(benchmark::State& bench) {
  for (auto _ : bench) {
    Model model;
    AddNodes(model, 4000, 8);
    AddRunning(model, 4000, 35, 0);
    benchmark::DoNotOptimize(model.pod_count());
  }
}
BENCHMARK(BM_FillModel)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace swell::sched
