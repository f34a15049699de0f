#include "scheduling/simulate.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "sched/cycle/disruptions.h"
#include "sched/scheduler.h"

namespace swell::scheduling {
namespace {

using sched::Model;
using sched::PodPhase;

std::string_view StatusWord(const Model::PodView& pod) {
  switch (pod.phase) {
    case PodPhase::kPending:
      return pod.nominated_node.empty() ? "Pending" : "Nominated";
    case PodPhase::kBound:
      return "Bound";
    case PodPhase::kRunning:
      return "Running";
    case PodPhase::kReleasing:
      return pod.nominated_node.empty() ? "Releasing" : "Nominated";
    case PodPhase::kSucceeded:
      return "Succeeded";
    case PodPhase::kFailed:
      return "Failed";
  }
  return "";
}

json::Value NameOrNull(const std::string& name) {
  return name.empty() ? json::Value(nullptr) : json::Value(name);
}

json::Array Indices(const std::vector<int>& devices) {
  json::Array out;
  for (int device : devices) out.emplace_back(device);
  return out;
}

class Simulation {
 public:
  Simulation(StateInputs inputs, const SimulateOptions& options)
      : inputs_(std::move(inputs)), options_(options), scheduler_(options.settings) {
    FillModel(inputs_, model_);
    sched::AddPastUses(model_, options.settings, inputs_.past_uses, options.now);
    for (size_t i = 0; i < inputs_.pods.size(); ++i) pod_of_[inputs_.pods[i].key] = i;
    for (sched::BudgetInfo& budget : inputs_.budgets) budget.allowed -= Healthy(budget);
  }

  json::Value Run() {
    json::Array cycles;
    for (int i = 0; i < options_.cycles; ++i) {
      json::Object cycle = Cycle();
      CompleteTransitions();
      cycle["settled"] = json::Object{{"pods", Pods()}, {"nodes", Nodes()}};
      cycles.emplace_back(std::move(cycle));
    }
    return json::Object{{"now", api::FormatTime(options_.now)}, {"cycles", std::move(cycles)}};
  }

 private:
  json::Object Cycle() {
    const sched::CycleResult result = scheduler_.RunCycle(model_, options_.now, options_.cycle);
    for (const sched::Waiting& waiting : result.waiting) {
      std::string reason = waiting.reason;
      if (!waiting.least_change.empty()) {
        reason += StrCat(" Would start with: ", waiting.least_change);
      }
      for (const std::string& pod : waiting.pods) reasons_[pod] = reason;
    }
    json::Array decisions;
    for (const sched::Decision& decision : result.decisions) {
      const std::string reason = decision.Reason();
      reasons_[decision.pod] = reason;
      Apply(decision);
      decisions.push_back(json::Object{{"type", sched::DecisionTypeName(decision.type)},
                                       {"pod", decision.pod},
                                       {"node", decision.node},
                                       {"gpus", Indices(decision.gpu_devices)},
                                       {"rule", decision.rule},
                                       {"reason", reason}});
    }
    return {{"decisions", std::move(decisions)},
            {"pods", Pods()},
            {"nodes", Nodes()},
            {"queues", Queues()}};
  }

  // What the API would show of a decision that was carried out.
  void Apply(const sched::Decision& decision) {
    sched::PodInfo& pod = inputs_.pods[pod_of_.at(decision.pod)];
    switch (decision.type) {
      case sched::Decision::Type::kBind:
        pod.node = decision.node;
        pod.phase = PodPhase::kBound;
        pod.gpu_devices = decision.gpu_devices;
        break;
      case sched::Decision::Type::kNominate:
        break;
      case sched::Decision::Type::kEvict:
        pod.phase = PodPhase::kReleasing;
        break;
    }
  }

  int32_t Healthy(const sched::BudgetInfo& budget) const {
    return static_cast<int32_t>(
        std::count_if(inputs_.pods.begin(), inputs_.pods.end(), [&](const sched::PodInfo& pod) {
          return pod.phase == PodPhase::kRunning && sched::Covers(budget, pod);
        }));
  }

  void CompleteTransitions() {
    for (sched::PodInfo& pod : inputs_.pods) {
      if (pod.phase == PodPhase::kBound) {
        pod.phase = PodPhase::kRunning;
        model_.UpsertPod(pod);
      } else if (pod.phase == PodPhase::kReleasing && !options_.keep_terminating) {
        model_.RemovePod(pod.key);
        pod.phase = PodPhase::kPending;
        pod.node.clear();
        pod.gpu_devices.clear();
        pod.start = {};
        model_.UpsertPod(pod);
        reasons_.erase(pod.key);
      } else {
        model_.UpsertPod(pod);
        model_.LiftPromise(pod.key);
      }
    }
    for (const sched::BudgetInfo& budget : inputs_.budgets) {
      sched::BudgetInfo now = budget;
      now.allowed = std::max(0, budget.allowed + Healthy(budget));
      model_.UpsertBudget(now);
    }
  }

  json::Array Pods() const {
    json::Array out;
    for (const Model::PodView& pod : model_.Pods()) {
      const bool moved = pod.phase == PodPhase::kReleasing && !pod.nominated_node.empty();
      auto reason = reasons_.find(pod.key);
      out.push_back(json::Object{
          {"name", pod.key},
          {"podGroup", NameOrNull(pod.group)},
          {"node", NameOrNull(pod.node.empty() || moved ? pod.nominated_node : pod.node)},
          {"gpus", Indices(moved ? std::vector<int>{} : pod.gpu_devices)},
          {"status", StatusWord(pod)},
          {"reason", reason == reasons_.end() ? "" : reason->second}});
    }
    return out;
  }

  json::Array Nodes() const {
    json::Array out;
    for (const Model::NodeView& node : model_.Nodes()) {
      out.push_back(json::Object{{"name", node.name},
                                 {"idleGpus", node.idle_gpus},
                                 {"releasingGpus", node.releasing_gpus}});
    }
    return out;
  }

  json::Array Queues() const {
    json::Array out;
    for (const Model::QueueView& queue : model_.Queues()) {
      for (const Model::QueueView::Resource& resource : queue.resources) {
        out.push_back(json::Object{{"project", queue.name},
                                   {"resource", resource.name},
                                   {"fairShare", resource.fair_share},
                                   {"allocated", resource.allocated},
                                   {"requested", resource.requested}});
      }
    }
    return out;
  }

  StateInputs inputs_;  // budgets: what each lets go less its pods that ran at first
  const SimulateOptions& options_;
  Model model_;
  sched::Scheduler scheduler_;
  std::map<std::string, size_t, std::less<>> pod_of_;
  std::map<std::string, std::string, std::less<>> reasons_;
};

}  // namespace

json::Value Simulate(StateInputs inputs, const SimulateOptions& options) {
  return Simulation(std::move(inputs), options).Run();
}

}  // namespace swell::scheduling
