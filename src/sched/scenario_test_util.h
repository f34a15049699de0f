// A small language for scheduling scenarios in tests.
//
//   Scenario s;
//   s.Node("n0", {.gpus = 4});
//   s.Group("low", {.priority = 50, .min = 2});
//   s.Pod("low-0", {.group = "low", .gpus = 2, .on = "n0"});
//   s.Cycle();
//   EXPECT_EQ(s.Log(), "bind a-0 n0 [0,1] allocate\n");
//
// Names stand for "default/<name>". AdvancePods() plays the rest of the cluster: bound pods run,
// evicted pods are gone and come back pending as their controllers would make them.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "sched/model.h"
#include "sched/record/recorder.h"
#include "sched/scheduler.h"

namespace swell::sched {

inline constexpr WallTime kNoon{1767268800LL * 1'000'000'000LL};

struct NodeSpec {
  int gpus = 0;
  int64_t cpu = 64'000;
  int64_t memory_gib = 512;
  int64_t pods = 110;
  int64_t gpu_mib = 0;
  Labels labels = {};
  std::vector<Taint> taints = {};
  bool cordoned = false;
  bool ready = true;
  std::map<std::string, int64_t> extended = {};
};

struct GroupSpec {
  int priority = 50;
  int min = 1;
  bool preemptible = true;
  std::string queue = {};
  PreemptUnit unit = PreemptUnit::kGang;
  int minutes_old = 10;
  std::vector<PodSet> sets = {};
  std::vector<SubGroup> subgroups = {};
  TopologyConstraint topology = {};
  Duration min_runtime{0};
  bool may_preempt = true;
  GoodputInfo goodput = {};
};

struct PodSpec {
  std::string group = {};
  std::string user = {};
  std::string set = {};
  int gpus = 0;
  int64_t cpu = 100;
  int64_t memory_mib = 64;
  double fraction = 0;
  int64_t gpu_mib = 0;
  std::string on = {};  // running there
  std::vector<int> devices = {};
  int priority = 50;
  bool preemptible = true;
  bool ours = true;
  int minutes_old = 10;
  double started_minutes_ago = 1;
  std::optional<int> member_priority = {};
  Labels labels = {};
  Labels selector = {};
  std::vector<Toleration> tolerations = {};
  std::vector<HostPort> ports = {};
  std::vector<PodAffinityTerm> affinity = {};
  std::vector<PodAffinityTerm> anti_affinity = {};
  std::vector<SpreadConstraint> spread = {};
  std::vector<NodeSelectorTerm> required = {};
  std::vector<PreferredNodeTerm> preferred = {};
  std::vector<std::string> gates = {};
  std::string obstacle = {};
  bool may_preempt = true;
  bool comes_back = true;
  std::map<std::string, int64_t> extended = {};
  int fraction_devices = 1;
  std::vector<std::vector<NodeSelectorTerm>> volumes = {};
};

// Seeds of a property test: from SWELL_SEED on, else from 1; SWELL_SEEDS of them, else `usual`.
uint64_t FirstSeed();
uint64_t LastSeed(uint64_t usual);

// A queue with a quota of so many GPUs; everything else has no bound.
QueueInfo MakeQueue(const std::string& name, double gpus, const std::string& parent = "");

// Options of a cycle that runs these actions and no others.
CycleOptions Only(std::initializer_list<std::string_view> actions);

class Scenario {
 public:
  explicit Scenario(Settings settings = {}) : scheduler(settings) {}

  void Node(const std::string& name, const NodeSpec& spec);
  void Group(const std::string& name, const GroupSpec& spec);
  void Pod(const std::string& name, const PodSpec& spec);
  // `count` pods name-0, name-1, ...
  void Pods(const std::string& name, int count, const PodSpec& spec);
  void RemovePod(const std::string& name);
  void Queue(const QueueInfo& queue) { model.UpsertQueue(queue); }
  void Pool(const PoolInfo& pool) { model.UpsertPool(pool); }
  // Over pods with these labels.
  void Budget(const std::string& name, const Labels& labels, int allowed);

  const CycleResult& Cycle(const CycleOptions& options = {});
  // Bound pods run; terminating pods are gone and pending again under the same name (another uid).
  void AdvancePods();
  // Advances pods and cycles until a cycle decides nothing; returns how many cycles decided
  // something.
  int Converge(int most = 20);

  // "bind p n0 [0,1] allocate\nevict q n1 [] preempt\n", in the order decided.
  std::string Log() const;
  // "p:Running@n0", ... for every pod, one per line, by name.
  std::string Places() const;
  std::string PhaseOf(const std::string& pod) const;
  std::string NodeOf(const std::string& pod) const;
  const Waiting* WaitingOf(const std::string& group_or_pod) const;
  int CountDecisions(Decision::Type type) const;
  // Empty, or what is wrong with the model: capacity, devices, half gangs.
  std::string Violations() const;

  // Records every cycle from now on, in segments of about so many bytes.
  void KeepRecords(size_t segment_bytes);
  // Replays what was recorded; empty, or where it differs.
  std::string ReplayDifference() const;

  // The same cluster in a fresh model, as a restarted scheduler would read it from the API.
  void FillModel(Model& other, bool backwards) const;

  Model model;
  Scheduler scheduler;
  WallTime now = kNoon;
  CycleResult last;
  std::map<std::string, NodeInfo> nodes;
  std::map<std::string, GroupInfo> groups;
  std::map<std::string, PodInfo> pods;
  std::vector<std::string> records;

 private:
  std::unique_ptr<Recorder> recorder_;
  int uids_ = 0;
};

}  // namespace swell::sched
