// Swell's own scheduler over the trace: its model, its queues, its gangs, its actions. Jobs are
// gangs of pods with one GPU each, as many as they requested.
//
// `fifo` has one project: jobs start in the order of their submission, and smaller ones behind a
// job that waits where they fit. `fair` has a project for each tenant of the trace, with the
// quota and weight that the shape has for it, else with no quota and equal weight: idle GPUs are
// lent, and reclaimed from projects beyond their fair share.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"
#include "sched/model.h"
#include "sched/scheduler.h"

namespace swell::lab {
namespace {

constexpr WallTime kStart{1'767'268'800LL * 1'000'000'000LL};
constexpr int kCyclesMax = 64;  // until nothing more is decided at one instant

class Scheduled final : public Policy {
 public:
  Scheduled(const ClusterShape& shape, bool by_tenant)
      : by_tenant_(by_tenant), shares_(shape.tenants), scheduler_(sched::Settings{}) {
    for (int i = 0; i < shape.nodes(); ++i) {
      sched::NodeInfo node;
      node.name = StrCat("node-", i);
      node.labels["kubernetes.io/hostname"] = node.name;
      node.allocatable.cpu_milli = 1'000'000;
      node.allocatable.memory_bytes = int64_t{1} << 42;
      node.allocatable.pods = 10'000;
      node.allocatable.extended[sched::kGpuResource] = shape.gpus_per_node();
      model_.UpsertNode(node);
      numbers_[node.name] = i;
      nodes_.push_back(std::move(node));
    }
  }

  void Submitted(const ActiveJob& active) override {
    const TraceJob& job = active.job->trace();
    sched::GroupInfo group;
    group.key = StrCat("lab/job-", active.number);
    group.uid = StrCat("uid-", active.number);
    group.creation = kStart + std::chrono::seconds(job.submitted_s);
    group.priority = job.priority;
    group.pod_sets = {sched::PodSet{"default", job.gpus, "", {}}};
    if (by_tenant_ && !job.tenant.empty()) group.queue = QueueOf(job.tenant);
    model_.UpsertGroup(group);
    Gang& gang = gangs_[active.number];
    gang.group = group.key;
    for (int rank = 0; rank < job.gpus; ++rank) {
      sched::PodInfo& pod = gang.pods.emplace_back();
      pod.key = StrCat(group.key, "-", rank);
      pod.uid = StrCat(group.uid, "-", rank, "-0");
      pod.group = group.key;
      pod.requests.cpu_milli = 100;
      pod.requests.memory_bytes = 1 << 20;
      pod.requests.extended[sched::kGpuResource] = 1;
      pod.creation = group.creation;
      members_[pod.key] = {active.number, rank};
      model_.UpsertPod(pod);
    }
  }

  void Ended(int number) override {
    whole_.erase(number);
    const auto found = gangs_.find(number);
    for (const sched::PodInfo& pod : found->second.pods) {
      model_.RemovePod(pod.key);
      members_.erase(pod.key);
    }
    model_.RemoveGroup(found->second.group);
    gangs_.erase(found);
  }

  // Its jobs are stopped whole: they are rigid.
  void Leaves(int node) override {
    const std::set<int> whole = whole_;
    for (int number : whole) {
      Gang& gang = gangs_.at(number);
      if (!std::binary_search(gang.allocation.begin(), gang.allocation.end(), node)) continue;
      for (size_t rank = 0; rank < gang.pods.size(); ++rank) Evict(number, static_cast<int>(rank));
    }
    model_.RemoveNode(nodes_[node].name);
  }

  void Returns(int node) override { model_.UpsertNode(nodes_[node]); }

  Allocations Decide(int64_t now_s, const ActiveJobs&, const Allocations&) override {
    now_ = kStart + std::chrono::seconds(now_s);
    for (int i = 0; i < kCyclesMax; ++i) {
      const sched::CycleResult result = scheduler_.RunCycle(model_, now_, {.explain = false});
      for (const sched::Decision& decision : result.decisions) Carry(decision);
      if (result.decisions.empty() && !result.more) break;
    }
    return Placed();
  }

  std::string Reason(const ActiveJob& active) const override {
    const TraceJob& job = active.job->trace();
    const std::string order = StrCat("submitted at ", job.submitted_s, " s");
    if (!by_tenant_ || job.tenant.empty()) return StrCat("in the order of submission, ", order);
    const auto known = shares_.find(job.tenant);
    const TenantShare share = known == shares_.end() ? TenantShare{} : known->second;
    char text[64];
    std::snprintf(text, sizeof text, " (quota %g, weight %g), ", share.quota, share.weight);
    return StrCat("fair shares of projects, it is of ", job.tenant, text, order);
  }

 private:
  struct Gang {
    std::string group;
    std::vector<sched::PodInfo> pods;
    size_t bound = 0;       // pods on nodes
    Allocation allocation;  // once all are
  };

  std::string QueueOf(const std::string& tenant) {
    if (!tenants_.insert(tenant).second) return tenant;
    sched::QueueInfo queue;
    queue.name = tenant;
    const auto known = shares_.find(tenant);
    const TenantShare share = known == shares_.end() ? TenantShare{} : known->second;
    queue.gpu = {share.quota, sched::kUnlimited, share.weight};
    model_.UpsertQueue(queue);
    return tenant;
  }

  // Pods start and stop at the instant of the decision; a resize's cost is the simulator's.
  void Carry(const sched::Decision& decision) {
    const auto member = members_.find(decision.pod);
    SWELL_CHECK(member != members_.end());
    const auto [number, rank] = member->second;
    Gang& gang = gangs_.at(number);
    sched::PodInfo& pod = gang.pods.at(rank);
    if (decision.type == sched::Decision::Type::kBind) {
      pod.node = decision.node;
      pod.gpu_devices = decision.gpu_devices;
      pod.phase = sched::PodPhase::kRunning;
      pod.start = now_;
      model_.UpsertPod(pod);
      if (++gang.bound == gang.pods.size()) BecomesWhole(number, gang);
    } else if (decision.type == sched::Decision::Type::kEvict) {
      Evict(number, rank);
    }
  }

  void Evict(int number, int rank) {
    Gang& gang = gangs_.at(number);
    sched::PodInfo& pod = gang.pods.at(rank);
    --gang.bound;
    whole_.erase(number);
    model_.RemovePod(pod.key);
    pod.node.clear();
    pod.gpu_devices.clear();
    pod.phase = sched::PodPhase::kPending;
    pod.start = {};
    pod.uid = StrCat("uid-", number, "-", rank, "-", ++incarnations_);
    model_.UpsertPod(pod);
  }

  void BecomesWhole(int number, Gang& gang) {
    whole_.insert(number);
    gang.allocation.clear();
    for (const sched::PodInfo& pod : gang.pods) gang.allocation.push_back(numbers_.at(pod.node));
    std::sort(gang.allocation.begin(), gang.allocation.end());  // ranks lie in runs on nodes
  }

  // A gang trains whole or not at all.
  Allocations Placed() const {
    Allocations placed;
    for (int number : whole_) {
      placed.emplace_hint(placed.end(), number, gangs_.at(number).allocation);
    }
    return placed;
  }

  const bool by_tenant_;
  const std::map<std::string, TenantShare> shares_;
  sched::Model model_;
  sched::Scheduler scheduler_;
  std::vector<sched::NodeInfo> nodes_;
  std::map<std::string, int> numbers_;   // of nodes
  std::unordered_map<int, Gang> gangs_;  // of all active jobs
  std::set<int> whole_;                  // those whose pods are all on nodes
  std::unordered_map<std::string, std::pair<int, int>> members_;  // pod → job's number, rank
  std::set<std::string> tenants_;
  WallTime now_;
  int64_t incarnations_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeFifo(const ClusterShape& shape) {
  return std::make_unique<Scheduled>(shape, false);
}

std::unique_ptr<Policy> MakeFair(const ClusterShape& shape) {
  return std::make_unique<Scheduled>(shape, true);
}

}  // namespace swell::lab
