// How fast documents of the size of a pod are parsed and printed.
#include <benchmark/benchmark.h>

#include "json/value.h"

namespace swell::json {
namespace {

std::string PodText() {
  Value pod = *Parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"worker-0","namespace":"team",)"
      R"("uid":"7f9c24e8-3b12-4b2f-9c3a-000000000000","resourceVersion":"123456","labels":{)"
      R"("app":"resnet","role":"worker"},"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{)"
      R"("containers":[],"nodeName":"node-1","schedulerName":"swell"},"status":{"phase":"Running"}})");
  Value container = *Parse(
      R"({"name":"main","image":"registry.example/team/train:1.2.3","command":["python3",)"
      R"("-m","train"],"env":[{"name":"WORLD_SIZE","value":"8"},{"name":"RANK","value":"0"}],)"
      R"("resources":{"limits":{"nvidia.com/gpu":"1","cpu":"4","memory":"16Gi"}}})");
  while (Print(pod).size() < 2000) {
    pod.at("spec").at("containers").get_array().push_back(container);
  }
  return Print(pod);
}

void BM_Print(benchmark::State& state) {
  Value pod = *Parse(PodText());
  size_t bytes = 0;
  for ([[maybe_unused]] auto _ : state) {
    std::string text = Print(pod);
    bytes += text.size();
    benchmark::DoNotOptimize(text);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_Print);

void BM_Parse(benchmark::State& state) {
  std::string text = PodText();
  size_t bytes = 0;
  for ([[maybe_unused]] auto _ : state) {
    auto value = Parse(text);
    bytes += text.size();
    benchmark::DoNotOptimize(value);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(BM_Parse);

}  // namespace
}  // namespace swell::json
