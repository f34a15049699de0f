// swell_decisions: how fast the scheduler's decisions become durable; prints one JSON line.
//
//   swell_decisions DIR PODS NODES
//
// Everything that `swell up` has behind its sockets, in one process: the store in DIR with its
// fsyncs, the API server, informers, the scheduler. The clock runs from the scheduler's first cycle
// until the last binding is on disk and acknowledged; its events are written beside them. What the
// core thread computed meanwhile is told, too: where other things run, the time says less.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/apiserver/api_server.h"
#include "kube/client/client.h"
#include "kube/controllers/context.h"
#include "kube/net/reactor/reactor.h"
#include "kube/store/backend.h"
#include "kube/store/store.h"
#include "scheduling/capacity_guard.h"
#include "scheduling/scheduler_loop.h"

namespace swell {
namespace {

const api::UserInfo kSystem{"system:swell", "", {"system:masters", "system:authenticated"}};
constexpr Duration kLimit = std::chrono::minutes(10);
constexpr int kOpenMax = 2'000;

// Of this thread.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Pace {
  double per_second = 0;
  double core_us = 0;  // for each
};

json::Value NodeObject(int number) {
  const json::Object room{
      {"cpu", "96"}, {"memory", "1Ti"}, {"pods", "110"}, {"nvidia.com/gpu", "8"}};
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", json::Object{{"name", StrCat("node-", number)}}},
      {"status", json::Object{{"capacity", room},
                              {"allocatable", room},
                              {"conditions",
                               json::Array{json::Object{{"type", "Ready"}, {"status", "True"}}}}}}};
}

json::Value PodObject(int number) {
  const json::Object asks{{"cpu", "100m"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}};
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", json::Object{{"name", StrCat("pod-", number)}, {"namespace", "default"}}},
      {"spec",
       json::Object{{"schedulerName", "swell"},
                    {"containers",
                     json::Array{json::Object{
                         {"name", "main"},
                         {"image", "bench"},
                         {"resources", json::Object{{"requests", asks}, {"limits", asks}}}}}}}}};
}

class Bench {
 public:
  explicit Bench(std::unique_ptr<store::Store> store, net::Reactor& core)
      : core_(core),
        store_(std::move(store)),
        server_(apiserver::ApiServer::Create(core_, clock_, random_, *store_, Guarded())),
        client_(core_, server_, kSystem, "bench") {}

  bool Boot() {
    bool ready = false;
    server_->Bootstrap([&ready](const Status& status) { ready = status.ok(); });
    return core_.RunUntil([&ready] { return ready; }, kLimit);
  }

  // Creates objects 0 to count - 1, a few thousand at a time; false: one of them was refused.
  bool Create(const client::Resource& resource,
              const std::string& ns,
              int count,
              json::Value (*make)(int)) {
    int next = 0;
    int open = 0;
    bool refused = false;
    auto done = [&] {
      for (; next < count && open < kOpenMax && !refused; ++next) {
        ++open;
        client_.Create(resource, ns, make(next), [&](const Result<json::SharedValue>& made) {
          --open;
          if (made.ok()) return;
          refused = true;
          std::fprintf(stderr, "%s\n", made.status().ToString().c_str());
        });
      }
      return open == 0;
    };
    return core_.RunUntil(done, kLimit) && !refused;
  }

  Pace Schedule(int pods) {
    controllers::Informers informers(core_, server_, kSystem, random_.Next());
    const controllers::Context context{core_, clock_, random_, server_, kSystem, informers};
    scheduling::CapacityGuard guard(context);
    guard_ = &guard;
    scheduling::SchedulerLoop loop(context);
    SteadyTime begin{};
    double computed = 0;
    informers.Start();
    informers.WhenSynced([&] {
      begin = clock_.Steady();
      computed = CpuSeconds();
    });
    loop.Start();
    const bool all = core_.RunUntil([&] { return loop.stats().binds >= pods; }, kLimit);
    const Duration took = clock_.Steady() - begin;
    guard_ = nullptr;
    if (!all) return {};
    return {pods / std::chrono::duration<double>(took).count(),
            (CpuSeconds() - computed) * 1e6 / pods};
  }

 private:
  apiserver::Options Guarded() {
    apiserver::Options options;
    options.bind_check = [this](const json::Value& pod, const std::string& node) {
      return guard_ == nullptr ? Status::Ok() : guard_->CheckBind(pod, node);
    };
    return options;
  }

  net::Reactor& core_;
  RealClock clock_;
  Random random_{1};
  std::unique_ptr<store::Store> store_;
  scheduling::CapacityGuard* guard_ = nullptr;  // while decisions are made
  std::shared_ptr<apiserver::ApiServer> server_;
  client::Client client_;
};

int Run(const std::string& dir, int pods, int nodes) {
  net::Reactor core;
  RealClock clock;
  auto backend = store::OpenSqliteBackend(core, StrCat(dir, "/decisions.db"), &clock);
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.status().ToString().c_str());
    return 1;
  }
  auto store = store::Store::Open(core, std::move(*backend));
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    return 1;
  }
  Bench bench(std::move(*store), core);
  if (!bench.Boot() || !bench.Create(client::resources::kNodes, "", nodes, NodeObject) ||
      !bench.Create(client::resources::kPods, "default", pods, PodObject)) {
    return 1;
  }
  const Pace pace = bench.Schedule(pods);
  if (pace.per_second == 0) {
    std::fprintf(stderr, "not all pods were bound: has every one of them a GPU?\n");
    return 1;
  }
  std::printf("{\"pods\": %d, \"nodes\": %d, \"per_second\": %.0f, \"core_us\": %.1f}\n", pods,
              nodes, pace.per_second, pace.core_us);
  return 0;
}

}  // namespace
}  // namespace swell

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: swell_decisions DIR PODS NODES\n");
    return 2;
  }
  return swell::Run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
