// How fast cycles are: filling a cluster, gangs, doing nothing, preempting.
#include <benchmark/benchmark.h>

#include "base/strings.h"
#include "sched/cycle.h"
#include "sched/model.h"

namespace swell::sched {
namespace {

constexpr WallTime kNow{1767268800LL * 1'000'000'000LL};

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
    const CycleResult result = scheduler.RunCycle(*model, kNow);
    bench.PauseTiming();
    if (static_cast<int>(result.decisions.size()) != pods) bench.SkipWithError("not all placed");
    model.reset();
    bench.ResumeTiming();
  }
  bench.SetItemsProcessed(bench.iterations() * pods);
}
BENCHMARK(BM_PlaceSinglePods)->Arg(50'000)->Unit(benchmark::kMillisecond);

// One gang onto 5,000 nodes of 8 GPUs.
void BM_PlaceGang(benchmark::State& bench) {
  const int members = static_cast<int>(bench.range(0));
  for (auto _ : bench) {
    bench.PauseTiming();
    auto model = std::make_unique<Model>();
    AddNodes(*model, 5000, 8);
    AddGang(*model, "gang", members, 4, 50);
    Scheduler scheduler({});
    bench.ResumeTiming();
    const CycleResult result = scheduler.RunCycle(*model, kNow);
    bench.PauseTiming();
    if (static_cast<int>(result.decisions.size()) != members) bench.SkipWithError("not placed");
    model.reset();
    bench.ResumeTiming();
  }
  bench.SetItemsProcessed(bench.iterations() * members);
}
BENCHMARK(BM_PlaceGang)->Arg(1000)->Unit(benchmark::kMillisecond);

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
