// CPU costs of the calls a busy cluster makes.
#include <benchmark/benchmark.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

std::string RealisticPod(const std::string& name) {
  return StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
      R"(","labels":{"app":"train","swell.dev/pod-group":"g1","role":"worker"},)",
      R"("annotations":{"swell.dev/member-priority":"3"}},"spec":{"containers":[{)",
      R"("name":"pytorch","image":"registry.example.com/train:1.2","command":["python"],)",
      R"("args":["train.py","--epochs","10"],"env":[{"name":"MASTER_ADDR","value":"m-0"},)",
      R"({"name":"MASTER_PORT","value":"23456"},{"name":"RANK","value":"3"}],)",
      R"("ports":[{"containerPort":23456,"name":"rdzv"}],)",
      R"("resources":{"requests":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"},)",
      R"("limits":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"}}}],)",
      R"("restartPolicy":"Never","priorityClassName":"train"}})");
}

// Calls without waiting for the executor in between.
void Fire(TestServer& server,
          const std::string& method,
          const std::string& path,
          const std::string& body = {}) {
  auto sink = std::make_shared<TestSink>();
  auto call = server.server->Handle(server.Request(method, path, body), sink);
  server.executor.RunPosted();
  benchmark::DoNotOptimize(sink->answer.status);
}

void BM_CreatePod(benchmark::State& state) {
  TestServer server;
  server.Boot();
  int64_t number = 0;
  for ([[maybe_unused]] auto _ : state)
    Fire(server, "POST", kPods, RealisticPod(StrCat("p", number++)));
}
BENCHMARK(BM_CreatePod)->Unit(benchmark::kMicrosecond);

void BM_GetPod(benchmark::State& state) {
  TestServer server;
  server.Boot();
  server.Post(kPods, RealisticPod("p"));
  const std::string path = StrCat(kPods, "/p");
  for ([[maybe_unused]] auto _ : state) Fire(server, "GET", path);
}
BENCHMARK(BM_GetPod)->Unit(benchmark::kMicrosecond);

void BM_List1000(benchmark::State& state) {
  TestServer server;
  server.Boot();
  for (int i = 0; i < 1000; ++i) server.Post(kPods, RealisticPod(StrCat("p", i)));
  for ([[maybe_unused]] auto _ : state) Fire(server, "GET", kPods);
}
BENCHMARK(BM_List1000)->Unit(benchmark::kMicrosecond);

void BM_Table1000(benchmark::State& state) {
  TestServer server;
  server.Boot();
  for (int i = 0; i < 1000; ++i) server.Post(kPods, RealisticPod(StrCat("p", i)));
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(
        server.Get(kPods, "application/json;as=Table;v=v1;g=meta.k8s.io").status);
  }
}
BENCHMARK(BM_Table1000)->Unit(benchmark::kMicrosecond);

void BM_PatchStatus(benchmark::State& state) {
  TestServer server;
  server.Boot();
  server.Post(kPods, RealisticPod("p"));
  const std::string path = StrCat(kPods, "/p/status");
  int64_t number = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(
        server.Merge(path, StrCat(R"({"status":{"message":")", number++, "\"}}")).status);
  }
}
BENCHMARK(BM_PatchStatus)->Unit(benchmark::kMicrosecond);

// One write seen by many watchers: the cost per watcher is what grows.
void BM_WatchFanOut(benchmark::State& state) {
  TestServer server;
  server.Boot();
  server.Post(kPods, RealisticPod("p"));
  class Counter final : public api::RestSink {
   public:
    void OnResponse(api::RestResponse) override {}
    void OnStreamStart(int, std::string) override {}
    bool OnChunk(const api::Chunk& chunk) override {
      bytes += chunk->size();
      return true;
    }
    void OnStreamEnd(const Status&) override {}
    size_t bytes = 0;
  };
  std::vector<std::unique_ptr<api::RestCall>> calls;
  auto sink = std::make_shared<Counter>();
  for (int64_t i = 0; i < state.range(0); ++i) {
    calls.push_back(server.server->Handle(
        server.Request("GET", StrCat(kPods, "?watch=1&timeoutSeconds=1000000")), sink));
  }
  int64_t number = 0;
  for ([[maybe_unused]] auto _ : state) {
    server.Merge(StrCat(kPods, "/p/status"), StrCat(R"({"status":{"message":")", number++, "\"}}"));
  }
  benchmark::DoNotOptimize(sink->bytes);
}
BENCHMARK(BM_WatchFanOut)->Arg(1)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace swell::apiserver
