#include "sim/foreign_scheduler.h"

#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "sim/sim_invariants.h"

namespace swell::sim {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kLookMaxMs = 3000;
constexpr uint64_t kThinkMaxMs = 1500;
constexpr Duration kRetryAfter = std::chrono::seconds(1);

api::UserInfo Itself() {
  return {std::string(ForeignScheduler::kName), "", {"system:masters", "system:authenticated"}};
}

}  // namespace

ForeignScheduler::ForeignScheduler(Executor& executor,
                                   std::shared_ptr<api::RestHandler> server,
                                   std::map<std::string, int> gpus_of_nodes,
                                   uint64_t seed)
    : executor_(executor),
      gpus_of_nodes_(std::move(gpus_of_nodes)),
      random_(seed),
      client_(executor, std::move(server), Itself(), std::string(kName)) {}

void ForeignScheduler::Submit(const std::string& name, int gpus, uint64_t run_s) {
  const json::Value pod = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       json::Object{{"name", name},
                    {"namespace", "default"},
                    {"annotations", json::Object{{"swell.dev/run-seconds", StrCat(run_s)}}}}},
      {"spec",
       json::Object{
           {"schedulerName", kName},
           {"restartPolicy", "Never"},
           {"containers",
            json::Array{json::Object{
                {"name", "main"},
                {"image", "x"},
                {"resources",
                 json::Object{{"limits", json::Object{{"nvidia.com/gpu", StrCat(gpus)}}}}}}}}}}};
  client_.Create(client::resources::kPods, "default", pod,
                 [this, name, gpus, run_s](const Result<json::SharedValue>& made) {
                   if (made.ok() || made.status().code() == Code::kAlreadyExists) return;
                   executor_.After(kRetryAfter, scope_.Wrap([this, name, gpus, run_s] {
                     Submit(name, gpus, run_s);
                   }));
                 });
}

void ForeignScheduler::ScheduleLater() {
  timer_.Start(milliseconds(random_.Below(kLookMaxMs)), [this] {
    client_.List(client::resources::kPods, "", {}, [this](const Result<client::ObjectList>& pods) {
      if (pods.ok()) OnPods(*pods);
      ScheduleLater();
    });
  });
}

void ForeignScheduler::OnPods(const client::ObjectList& pods) {
  std::map<std::string, int> room = gpus_of_nodes_;
  std::vector<std::pair<std::string, int>> waiting;
  for (const json::SharedValue& pod : pods.items) {
    const std::string node(api::NodeName(*pod));
    const std::string name(api::Name(*pod));
    if (!node.empty()) {
      if (!api::HasEnded(*pod)) room[node] -= GpusOf(*pod);
    } else if (api::SchedulerName(*pod) == kName && !api::IsDeleting(*pod) &&
               !under_way_.contains(name)) {
      waiting.emplace_back(name, GpusOf(*pod));
    }
  }
  for (const auto& [name, gpus] : waiting) {
    for (auto& [node, free] : room) {
      if (free < gpus) continue;
      free -= gpus;
      under_way_.insert(name);
      executor_.After(milliseconds(random_.Below(kThinkMaxMs)),
                      scope_.Wrap([this, name = name, node = node] { Bind(name, node); }));
      break;
    }
  }
}

void ForeignScheduler::Bind(const std::string& name, const std::string& node) {
  const json::Value binding = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Binding"},
      {"metadata", json::Object{{"name", name}, {"namespace", "default"}}},
      {"target", json::Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  client_.CreateSubresource(client::resources::kPods, "default", name, "binding", binding,
                            [this, name](const Result<json::SharedValue>& bound) {
                              under_way_.erase(name);
                              bindings_ += bound.ok();
                            });
}

}  // namespace swell::sim
