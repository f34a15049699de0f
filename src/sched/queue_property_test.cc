// Properties of sharing between queues, on random clusters, trees and workloads. A failure is
// shrunk to the fewest nodes, queues and jobs that still show it, and printed with its seed.
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/queues/fair_share.h"
#include "sched/scenario_test_util.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

struct Job {
  std::string name;
  GroupSpec group;
  PodSpec pod;
  int members = 1;
  int arrives = 0;  // round
};

struct World {
  std::vector<PoolInfo> pools;
  std::vector<std::pair<std::string, NodeSpec>> nodes;
  std::vector<QueueInfo> queues;
  std::vector<Job> jobs;
};

QueueInfo RandomQueue(Random& random, const std::string& name, const std::string& parent) {
  QueueInfo queue;
  queue.name = name;
  queue.parent = parent;
  queue.priority = random.OneIn(5) ? 110 : 100;
  queue.gpu.quota = static_cast<double>(random.Below(7));
  queue.gpu.limit = random.OneIn(4) ? queue.gpu.quota + static_cast<double>(random.Below(4)) : -1;
  queue.gpu.weight = static_cast<double>(random.Below(4));
  if (random.OneIn(4)) queue.gpu.lending_limit = static_cast<double>(random.Below(4));
  queue.creation = kNoon - std::chrono::hours(1 + random.Below(50));
  return queue;
}

World RandomWorld(Random& random) {
  World world;
  const int nodes = 1 + static_cast<int>(random.Below(4));
  for (int i = 0; i < nodes; ++i) {
    world.nodes.emplace_back(StrCat("n", i),
                             NodeSpec{.gpus = 2 + 2 * static_cast<int>(random.Below(4))});
  }
  std::vector<std::string> leaves;
  const int departments = 1 + static_cast<int>(random.Below(3));
  for (int d = 0; d < departments; ++d) {
    const std::string department = StrCat("d", d);
    world.queues.push_back(RandomQueue(random, department, ""));
    const int projects = 1 + static_cast<int>(random.Below(3));
    for (int p = 0; p < projects; ++p) {
      leaves.push_back(StrCat(department, "p", p));
      world.queues.push_back(RandomQueue(random, leaves.back(), department));
    }
  }
  const int jobs = 2 + static_cast<int>(random.Below(14));
  for (int i = 0; i < jobs; ++i) {
    Job job;
    job.name = StrCat("j", i);
    job.group.queue = leaves[random.Below(leaves.size())];
    job.group.priority = 50 + 25 * static_cast<int>(random.Below(4));
    job.group.preemptible = job.group.priority < 100;
    job.group.minutes_old = static_cast<int>(random.Below(20));
    job.members = 1 + static_cast<int>(random.Below(4));
    job.group.min = random.OneIn(2) ? job.members : 1 + static_cast<int>(random.Below(job.members));
    job.pod.gpus = 1 + static_cast<int>(random.Below(3));
    if (random.OneIn(5)) job.pod.gpus = 0, job.pod.fraction = 0.5;
    job.arrives = static_cast<int>(random.Below(4));
    world.jobs.push_back(job);
  }
  return world;
}

// Node pools of two kinds, nodes in no pool, and queues that list several pools, one, or a missing
// one.
void AddPools(Random& random, World& world) {
  for (const char* kind : {"old", "new"}) {
    world.pools.push_back({.name = kind, .node_selector = {{"kind", kind}}});
  }
  for (auto& [name, node] : world.nodes) {
    const uint64_t kind = random.Below(5);
    if (kind < 4) node.labels = {{"kind", kind < 2 ? "old" : "new"}};
  }
  for (QueueInfo& queue : world.queues) {
    for (const char* pool : {"new", "old", "gone"}) {
      if (!random.OneIn(3)) continue;
      const double quota = static_cast<double>(random.Below(5));
      const double limit = random.OneIn(2) ? -1 : quota + static_cast<double>(random.Below(3));
      queue.pools.push_back({pool, {quota, limit, 1}, {}, {}});
      if (random.OneIn(4)) {
        queue.pools.back().gpu.lending_limit = static_cast<double>(random.Below(3));
      }
    }
    if (!queue.pools.empty() && random.OneIn(2)) queue.gpu = queue.cpu = queue.memory = {0, 0, 1};
  }
}

void SetUp(Scenario& s, const World& world) {
  for (const PoolInfo& pool : world.pools) s.Pool(pool);
  for (const auto& [name, spec] : world.nodes) s.Node(name, spec);
  for (const QueueInfo& queue : world.queues) s.Queue(queue);
}

void Arrive(Scenario& s, const Job& job) {
  s.Group(job.name, job.group);
  PodSpec pod = job.pod;
  pod.group = job.name;
  s.Pods(job.name, job.members, pod);
}

std::string GroupName(const std::string& key) { return key.substr(key.find('/') + 1); }

// Limits hold, and non-preemptible work is within quota, at every level.
std::string QueueViolations(const Scenario& s) {
  const State& state = s.model.state();
  std::string wrong;
  for (const QueueState& queue : state.queues) {
    if (!queue.known) continue;
    for (size_t p = 0; p < queue.pools.size(); ++p) {
      const QueuePool& own = queue.pools[p];
      for (int r = 0; r < kQueueResources; ++r) {
        const int64_t limit = queue.LimitIn(p, r);
        const int64_t quota = queue.QuotaIn(p, r);
        if (limit >= 0 && queue.Counted(&QueuePool::used, p, r) > limit) {
          wrong += StrCat("queue ", queue.name, " is over its limit\n");
        }
        if (quota >= 0 && queue.Counted(&QueuePool::used_protected, p, r) > quota) {
          wrong += StrCat("queue ", queue.name, " has non-preemptible work beyond its quota\n");
        }
        if (own.used[r] < 0 || own.pending[r] < 0 || own.leaving[r] < 0) {
          wrong += StrCat("queue ", queue.name, " counts below zero\n");
        }
      }
    }
  }
  return wrong;
}

// GPUs that the queue, or those below it, keep and do not hold.
int64_t KeptIdle(const State& state, const QueueState& queue, int pool) {
  int64_t below = 0;
  for (QueueId child : queue.children) below += KeptIdle(state, state.queues[child], pool);
  const QueuePool& own = queue.pools[pool];
  return std::max({int64_t{0}, own.kept[kQueueGpu] - own.used[kQueueGpu], below});
}

// Work that started beyond a quota left what the queues keep of theirs.
std::string LendingViolations(const Scenario& s) {
  const State& state = s.model.state();
  if (state.pools.size() > 1) return "";
  const int pool = state.pool_facts.live.front();
  int64_t left = state.pool_facts.totals[pool][kQueueGpu];
  for (const QueueState& queue : state.queues) {
    if (queue.parent != kNone) continue;
    left -= queue.pools[pool].used[kQueueGpu] + KeptIdle(state, queue, pool);
  }
  if (left >= 0) return "";
  std::string wrong;
  for (const Decision& d : s.last.decisions) {
    if (d.type != Decision::Type::kBind) continue;
    const GroupState& group = state.groups[state.FindGroup(d.group)];
    for (QueueId id = group.queue; id != kNone; id = state.queues[id].parent) {
      const QueuePool& own = state.queues[id].pools[pool];
      if (own.quota[kQueueGpu] >= own.used[kQueueGpu]) continue;
      wrong += StrCat(d.pod, " took what another queue keeps\n");
    }
  }
  return wrong;
}

// Everyone evicted may be, makes room for someone who gets it, and is told why.
std::string EvictionViolations(const Scenario& s) {
  std::string wrong;
  std::set<std::string> gets;
  for (const Decision& d : s.last.decisions) {
    if (d.type == Decision::Type::kNominate) gets.insert(d.group);
  }
  for (const Decision& d : s.last.decisions) {
    if (d.type != Decision::Type::kEvict || d.rule == "stale-gangs") continue;
    const GroupInfo& victim = s.groups.at(GroupName(d.group));
    const GroupInfo& winner = s.groups.at(GroupName(d.beneficiary->group));
    if (!victim.preemptible) wrong += StrCat(d.pod, " is not preemptible\n");
    if (d.rule == "preempt" &&
        !(victim.queue == winner.queue && victim.priority < winner.priority)) {
      wrong += StrCat(d.pod, " was preempted by no better\n");
    }
    if (d.rule == "reclaim" && victim.queue == winner.queue) {
      wrong += StrCat(d.pod, " was reclaimed inside its own queue\n");
    }
    const auto pod = s.model.Pod(d.beneficiary->pod);
    if (!gets.contains(d.beneficiary->group) && (!pod || pod->nominated_node.empty())) {
      wrong += StrCat(d.pod, " was evicted for nobody\n");
    }
    if (!d.Reason().starts_with("Preempted")) wrong += StrCat(d.pod, ": ", d.Reason(), "\n");
  }
  return wrong;
}

// A queue that reclaims stays within what it is due.
std::string ReclaimViolations(const Scenario& s) {
  const State& state = s.model.state();
  const QueueShares shares(state);
  std::string wrong;
  for (const Decision& d : s.last.decisions) {
    if (d.type != Decision::Type::kEvict || d.rule != "reclaim") continue;
    const auto pod = s.model.Pod(d.pod);
    if (pod && !pod->nominated_node.empty()) continue;  // moved
    const GroupId group = state.FindGroup(d.beneficiary->group);
    const QueueId queue = state.groups[group].queue;
    const NodeId node = state.FindNode(d.node);
    const int pool = state.nodes[node].pool;
    int64_t used = state.queues[queue].pools[pool].used[kQueueGpu];
    for (const Decision& other : s.last.decisions) {  // what it took without taking from anyone
      const PodId id = state.FindPod(other.pod);
      const bool own = id != kNone && state.groups[state.pods[id].group].queue == queue &&
                       state.nodes[state.FindNode(other.node)].pool == pool;
      if (own && other.rule != "reclaim" && other.type != Decision::Type::kEvict) {
        used -= state.pods[id].charge[kQueueGpu];
      }
    }
    if (used > shares.Due(pool, queue)[kQueueGpu]) {
      wrong += StrCat("queue ", state.queues[queue].name, " reclaimed beyond what it is due\n");
    }
  }
  return wrong;
}

// Plays a world; empty, or what went wrong.
std::string Play(const World& world) {
  Scenario s;
  s.KeepRecords(2000);
  SetUp(s, world);
  auto check = [&]() -> std::string {
    std::string wrong = StrCat(s.Violations(), QueueViolations(s), LendingViolations(s),
                               EvictionViolations(s), ReclaimViolations(s));
    return wrong.empty() ? "" : StrCat(wrong, s.Places(), s.Log());
  };
  for (int round = 0; round < 4; ++round) {
    for (const Job& job : world.jobs) {
      if (job.arrives == round) Arrive(s, job);
    }
    for (int i = 0; i < 3; ++i) {
      s.now = s.now + std::chrono::seconds(20);
      s.Cycle();
      if (std::string wrong = check(); !wrong.empty()) return wrong;
      s.AdvancePods();
    }
  }
  for (int i = 0; i < 30; ++i) {
    s.Cycle();
    if (std::string wrong = check(); !wrong.empty()) return wrong;
    if (s.last.decisions.empty() && !s.last.more) return s.ReplayDifference();
    s.AdvancePods();
  }
  return StrCat("never comes to rest\n", s.Places(), s.Log());
}

std::string Describe(const World& world) {
  std::string text;
  for (const auto& [name, spec] : world.nodes) {
    text += StrCat("node ", name, " gpus ", spec.gpus,
                   spec.labels.empty() ? "" : StrCat(" ", spec.labels.begin()->second), "\n");
  }
  for (const QueueInfo& q : world.queues) {
    text +=
        StrCat("queue ", q.name, " in ", q.parent, " quota ", q.gpu.quota, " limit ", q.gpu.limit,
               " lends ", q.gpu.lending_limit, " weight ", q.gpu.weight, " priority ", q.priority);
    for (const QueuePoolInfo& pool : q.pools) {
      text += StrCat(", in ", pool.pool, " quota ", pool.gpu.quota, " limit ", pool.gpu.limit);
    }
    text += "\n";
  }
  for (const Job& j : world.jobs) {
    text += StrCat("job ", j.name, " queue ", j.group.queue, " priority ", j.group.priority, " ",
                   j.members, " pods, min ", j.group.min, ", gpus ", j.pod.gpus, " fraction ",
                   j.pod.fraction, " arrives ", j.arrives, "\n");
  }
  return text;
}

// Plays a world in which every running job ends. Returns the jobs that never run though they could.
std::string Starve(const World& world) {
  Scenario s;
  SetUp(s, world);
  std::map<std::string, const Job*> waiting;
  for (const Job& job : world.jobs) Arrive(s, job), waiting[job.name] = &job;
  for (bool progress = true; progress && !waiting.empty();) {
    progress = false;
    s.Converge(40);
    for (auto it = waiting.begin(); it != waiting.end();) {
      if (s.PhaseOf(StrCat(it->first, "-0")) != "Running") {
        ++it;
        continue;
      }
      for (int i = 0; i < it->second->members; ++i) s.RemovePod(StrCat(it->first, "-", i));
      it = waiting.erase(it);
      progress = true;
    }
  }
  std::string wrong;
  for (const auto& [name, job] : waiting) {
    Scenario alone;
    SetUp(alone, world);
    Arrive(alone, *job);
    alone.Cycle();
    if (!alone.last.decisions.empty()) wrong += StrCat(name, " starves\n");
  }
  return wrong.empty() ? "" : StrCat(wrong, s.Places(), s.Log());
}

// Leaves out whatever the failure does not need.
World Shrunk(World world, const std::function<std::string(const World&)>& play) {
  auto drop = [](auto list, size_t i) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return list;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = world.jobs.size(); i-- > 0;) {
      World less = world;
      less.jobs = drop(less.jobs, i);
      if (play(less).empty()) continue;
      world = less;
      smaller = true;
    }
    for (size_t i = world.nodes.size(); world.nodes.size() > 1 && i-- > 0;) {
      World less = world;
      less.nodes = drop(less.nodes, i);
      if (play(less).empty()) continue;
      world = less;
      smaller = true;
    }
  }
  return world;
}

TEST(QueueProperty, RandomTreesAndWorkloadsKeepTheRules) {
  for (uint64_t seed = FirstSeed(); seed <= LastSeed(150); ++seed) {
    Random random(seed);
    World world = RandomWorld(random);
    if (random.OneIn(3)) AddPools(random, world);
    const std::string wrong = Play(world);
    if (wrong.empty()) continue;
    const World small = Shrunk(world, Play);
    FAIL() << "seed " << seed << "\n" << Describe(small) << Play(small);
  }
}

// If every running job ends, every job that fits the cluster runs some day.
TEST(QueueProperty, NobodyStarves) {
  for (uint64_t seed = FirstSeed(); seed <= LastSeed(50); ++seed) {
    Random random(seed);
    World world = RandomWorld(random);
    if (random.OneIn(3)) AddPools(random, world);
    if (Starve(world).empty()) continue;
    const World small = Shrunk(world, Starve);
    ADD_FAILURE() << "seed " << seed << "\n" << Describe(small) << Starve(small);
  }
}

// Projects whose quotas promise twice what there is, all of which want more than that: elastic jobs
// and whole ones, up to a whole quota.
World OverpromisedWorld(Random& random) {
  World world;
  int gpus = 0;
  const int nodes = 1 + static_cast<int>(random.Below(3));
  for (int i = 0; i < nodes; ++i) {
    const int own = 4 + 4 * static_cast<int>(random.Below(2));
    world.nodes.emplace_back(StrCat("n", i), NodeSpec{.gpus = own});
    gpus += own;
  }
  const int projects = 2 + static_cast<int>(random.Below(3));
  const bool departments = random.OneIn(3);
  for (const char* name : {"d0", "d1"}) {
    if (!departments) break;
    world.queues.push_back(MakeQueue(name, random.OneIn(3) ? kUnlimited : gpus));
  }
  int left = 2 * gpus;
  for (int p = 0; p < projects; ++p) {
    int quota = p + 1 == projects ? left : static_cast<int>(random.Below(left + 1));
    quota = std::min(quota, gpus);
    left -= quota;
    const std::string name = StrCat("p", p);
    world.queues.push_back(MakeQueue(name, quota, departments ? StrCat("d", p % 2) : ""));
    if (random.OneIn(4)) world.queues.back().priority = 110;
    if (random.OneIn(6)) world.queues.back().gpu.quota = kUnlimited;
    world.queues.back().gpu.weight = static_cast<double>(random.Below(3));
    const int jobs = 3 + static_cast<int>(random.Below(4));
    for (int j = 0; j < jobs; ++j) {
      Job job;
      job.name = StrCat(name, "j", j);
      job.group.queue = name;
      job.group.minutes_old = static_cast<int>(random.Below(20));
      job.members = 1 + static_cast<int>(random.Below(std::max(quota, 3)));
      job.group.min = random.OneIn(2) ? job.members : 1;
      job.group.unit = random.OneIn(4) ? PreemptUnit::kPod : PreemptUnit::kGang;
      job.pod.gpus = random.OneIn(3) ? 2 : 1;
      job.arrives = static_cast<int>(random.Below(4));
      world.jobs.push_back(job);
    }
  }
  return world;
}

// Plays a world in which no job ends, and a node is cordoned meanwhile. Empty, or how its projects
// take from each other for ever.
std::string TakeInTurns(const World& world, int& takings) {
  constexpr int kCycles = 200;
  constexpr int kCordons = 50;
  constexpr int kSettled = 100;
  Scenario s;
  SetUp(s, world);
  std::string late;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    for (const Job& job : world.jobs) {
      if (job.arrives * 10 == cycle) Arrive(s, job);
    }
    if (cycle == kCordons) {
      NodeSpec cordoned = world.nodes.back().second;
      cordoned.cordoned = true;
      s.Node(world.nodes.back().first, cordoned);
    }
    s.now = s.now + std::chrono::seconds(20);
    s.Cycle();
    const bool evicts = s.CountDecisions(Decision::Type::kEvict) > 0;
    takings += evicts ? 1 : 0;
    if (evicts && cycle >= kSettled) late += StrCat("cycle ", cycle, "\n", s.Log());
    s.AdvancePods();
  }
  return late.empty() ? "" : StrCat(late.substr(0, 4000), s.Places());
}

TEST(QueueProperty, QuotasThatPromiseTwiceWhatThereIsAreNotTakenInTurns) {
  int takings = 0;
  const auto play = [&takings](const World& world) { return TakeInTurns(world, takings); };
  for (uint64_t seed = FirstSeed(); seed <= LastSeed(60); ++seed) {
    Random random(seed);
    const World world = OverpromisedWorld(random);
    if (play(world).empty()) continue;
    const World small = Shrunk(world, play);
    FAIL() << "seed " << seed << "\n" << Describe(small) << play(small);
  }
  EXPECT_GT(takings, 0) << "these worlds try nothing";
}

struct Running {
  int gpus = 1;
  int priority = 50;
  double minutes = 1;
  int node = 0;
};

// Whether the job starts at once when only the chosen ones run.
bool StartsBeside(const std::vector<Running>& running, uint32_t gone, int nodes, const Job& job) {
  Scenario s;
  for (int i = 0; i < nodes; ++i) s.Node(StrCat("n", i), {.gpus = 4});
  for (size_t i = 0; i < running.size(); ++i) {
    if ((gone >> i) & 1u) continue;
    s.Pod(StrCat("r", i), {.gpus = running[i].gpus, .on = StrCat("n", running[i].node)});
  }
  Arrive(s, job);
  s.Cycle(Only({"allocate"}));
  return s.CountDecisions(Decision::Type::kBind) == job.members;
}

// What is lost is at most a tenth more than the least that would do.
TEST(VictimCost, IsNearTheCheapestOfAllCombinations) {
  for (uint64_t seed = FirstSeed(); seed <= LastSeed(100); ++seed) {
    Random random(seed);
    const int nodes = 1 + static_cast<int>(random.Below(3));
    Scenario s;
    std::vector<Running> running;
    for (int n = 0; n < nodes; ++n) {
      s.Node(StrCat("n", n), {.gpus = 4});
      for (int left = 4; left > 0 && running.size() < 8;) {
        Running r;
        r.gpus = 1 + static_cast<int>(random.Below(std::min(left, 3)));
        r.minutes = 1 + static_cast<double>(random.Below(600));
        r.priority = 50 + 10 * static_cast<int>(random.Below(4));
        r.node = n;
        left -= r.gpus;
        s.Pod(StrCat("r", running.size()), {.gpus = r.gpus,
                                            .on = StrCat("n", n),
                                            .priority = r.priority,
                                            .started_minutes_ago = r.minutes});
        running.push_back(r);
      }
    }
    Job job;
    job.name = "urgent";
    job.group.priority = 75;
    job.members = 1 + static_cast<int>(random.Below(2));
    job.group.min = job.members;
    job.pod.gpus = 1 + static_cast<int>(random.Below(4));
    Arrive(s, job);
    s.Cycle(Only({"preempt"}));
    double cost = 0;
    for (const Decision& d : s.last.decisions) cost += d.lost_gpu_seconds;
    double least = -1;
    for (uint32_t gone = 1; gone < (1u << running.size()); ++gone) {
      double loss = 0;
      bool allowed = true;
      for (size_t i = 0; i < running.size(); ++i) {
        if (((gone >> i) & 1u) == 0) continue;
        loss += running[i].gpus * running[i].minutes * 60;
        allowed &= running[i].priority < job.group.priority;
      }
      if (!allowed || (least >= 0 && loss >= least)) continue;
      if (StartsBeside(running, gone, nodes, job)) least = loss;
    }
    const bool starts_now = StartsBeside(running, 0, nodes, job);
    if (starts_now) continue;
    ASSERT_EQ(least >= 0, cost > 0) << "seed " << seed << " least " << least << "\n" << s.Log();
    // Losses below twenty GPU-minutes count as none.
    EXPECT_LE(cost, std::max(1.1 * least, 1200.0)) << "seed " << seed << "\n" << s.Log();
  }
}

}  // namespace
}  // namespace swell::sched
