// Durable writes per second, and how fast a store of 50,000 objects opens.
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "base/clock.h"
#include "kube/store/store_test_util.h"

namespace swell::store {
namespace {

std::unique_ptr<Store> OpenAt(LoopExecutor& executor, const std::string& path) {
  auto backend = OpenSqliteBackend(executor, path);
  SWELL_CHECK_MSG(backend.ok(), backend.status().message());
  auto store = Store::Open(executor, std::move(*backend));
  SWELL_CHECK_MSG(store.ok(), store.status().message());
  return std::move(*store);
}

// range(0) writers, each waiting for its write before the next; objects of 2 KB, 1,000 names.
void BM_DurableWrites(benchmark::State& state) {
  TempDir dir;
  LoopExecutor executor;
  auto store = OpenAt(executor, dir.File("store.db"));
  const size_t writers = static_cast<size_t>(state.range(0));
  const std::string payload(1900, 'x');
  RealClock clock;
  size_t waiting = 0;
  uint64_t n = 0;
  int64_t worst_ns = 0;
  for ([[maybe_unused]] auto _ : state) {
    executor.RunUntil([&] { return waiting < writers; });
    ++waiting;
    SteadyTime begin = clock.Steady();
    Put(*store, {"pods", "ns", StrCat("p", n++ % 1000)}, payload, [&, begin](const Status& s) {
      SWELL_CHECK(s.ok());
      worst_ns = std::max(worst_ns, (clock.Steady() - begin).count());
      --waiting;
    });
  }
  executor.RunUntil([&] { return waiting == 0; });
  state.SetItemsProcessed(static_cast<int64_t>(n));
  state.counters["worst_ms"] = static_cast<double>(worst_ns) / 1e6;
}
BENCHMARK(BM_DurableWrites)->Arg(1)->Arg(16)->Arg(64)->UseRealTime();

void BM_Load50000(benchmark::State& state) {
  TempDir dir;
  std::string path = dir.File("store.db");
  {
    LoopExecutor executor;
    auto store = OpenAt(executor, path);
    const std::string payload(1900, 'x');
    size_t waiting = 0;
    for (int i = 0; i < 50'000; ++i) {
      ++waiting;
      Put(*store, {"pods", StrCat("ns", i % 50), StrCat("p", i)}, payload,
          [&](const Status&) { --waiting; });
      executor.RunUntil([&] { return waiting < 5000; });
    }
    executor.RunUntil([&] { return waiting == 0; });
  }
  for ([[maybe_unused]] auto _ : state) {
    LoopExecutor executor;
    auto store = OpenAt(executor, path);
    SWELL_CHECK(store->Count("pods") == 50'000);
  }
}
BENCHMARK(BM_Load50000)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_MemoryWritesWithWatchers(benchmark::State& state) {
  LoopExecutor executor;
  auto store = std::move(*Store::Open(executor, MakeMemoryBackend(executor)));
  std::vector<std::unique_ptr<Watch>> watches;
  uint64_t events = 0;
  for (int64_t i = 0; i < state.range(0); ++i) {
    watches.push_back(std::move(*store->WatchFrom("pods", "", 0, [&](const Event&) { ++events; })));
  }
  const std::string payload(1900, 'x');
  uint64_t n = 0;
  for ([[maybe_unused]] auto _ : state) {
    bool done = false;
    Put(*store, {"pods", "ns", StrCat("p", n++ % 1000)}, payload,
        [&](const Status&) { done = true; });
    executor.RunUntil([&] { return done; });
  }
  state.SetItemsProcessed(static_cast<int64_t>(n));
}
BENCHMARK(BM_MemoryWritesWithWatchers)->Arg(0)->Arg(100);

}  // namespace
}  // namespace swell::store
