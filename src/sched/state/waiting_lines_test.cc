// Jobs that stand in one line are served as if each stood alone.
#include "sched/state/waiting_lines.h"

#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/scenario_test_util.h"
#include "sched/state/needs.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

size_t LinesIn(Scenario& s) {
  State& state = s.model.state();
  state.lists.waiting.Settle(state);
  size_t lines = 0;
  for (const WaitingLine& line : state.lists.waiting.lines()) lines += !line.jobs.empty();
  return lines;
}

std::string InOrder(Scenario& s) {
  State& state = s.model.state();
  state.lists.waiting.Settle(state);
  std::string names;
  for (GroupId id : state.lists.waiting.InOrder(state)) {
    names += StrCat(names.empty() ? "" : " ", state.groups[id].key);
  }
  return names;
}

void Gang(Scenario& s, const std::string& name, int members, const GroupSpec& group) {
  GroupSpec spec = group;
  spec.min = members;
  s.Group(name, spec);
  s.Pods(name, members, {.group = name, .gpus = 1});
}

// The jobs whose line says something else of them than their pods; empty: none.
std::string WronglyTold(Scenario& s) {
  State& state = s.model.state();
  state.lists.waiting.Settle(state);
  std::string wrong;
  for (const WaitingLine& line : state.lists.waiting.lines()) {
    for (GroupId id : line.jobs) {
      const std::vector<PodId> pods = NeededPods(state, id).pods;
      if (line.need.complete != !pods.empty() || line.need.amounts != NeedOf(state, pods) ||
          line.need.gpu_ppm != GpuPpmOf(state, pods) ||
          line.need.may_preempt != MayPreempt(state, id, pods)) {
        wrong += StrCat(state.groups[id].key, " ");
      }
    }
  }
  return wrong;
}

TEST(WaitingLines, AlikeJobsShareALineOthersDoNot) {
  Scenario s;
  s.Queue(MakeQueue("a", 4));
  s.Queue(MakeQueue("b", 4));
  Gang(s, "j0", 2, {.queue = "a"});
  Gang(s, "j1", 2, {.queue = "a", .minutes_old = 20});
  EXPECT_EQ(LinesIn(s), 1u);
  EXPECT_EQ(InOrder(s), "default/j1 default/j0");
  Gang(s, "j2", 2, {.queue = "b"});
  Gang(s, "j3", 3, {.queue = "a"});
  Gang(s, "j4", 2, {.priority = 60, .queue = "a"});
  EXPECT_EQ(LinesIn(s), 4u);
  // A member that waits for something else sets its job apart.
  s.Pod("j0-0", {.group = "j0", .gpus = 1, .obstacle = "no volume"});
  EXPECT_EQ(InOrder(s), "default/j4 default/j1 default/j0 default/j2 default/j3");
  EXPECT_EQ(s.model.state().lists.waiting.LineOf(s.model.state().FindGroup("default/j0")), nullptr);
}

// Whatever their uids are: those are random.
TEST(WaitingLines, JobsOfOneSecondStandInTheOrderOfTheirNames) {
  Scenario s;
  for (const char* name : {"sweep-of-rates-10", "sweep-of-rates-9", "b-2", "b-11", "a"}) {
    Gang(s, name, 1, {});
  }
  EXPECT_EQ(InOrder(s),
            "default/a default/b-2 default/b-11 default/sweep-of-rates-9 "
            "default/sweep-of-rates-10");
}

TEST(WaitingLines, ReadsTheOrderAnewWhenAJobChanges) {
  Scenario s;
  for (int i = 0; i < 40; ++i) Gang(s, StrCat("j", i), 1, {.minutes_old = 100 - i});
  EXPECT_EQ(LinesIn(s), 1u);
  s.Group("j7", {.minutes_old = 200});
  s.Group("j5", {.priority = 40, .minutes_old = 200});
  for (int i = 20; i < 40; ++i) s.RemovePod(StrCat("j", i, "-0"));
  EXPECT_EQ(LinesIn(s), 2u);
  EXPECT_EQ(InOrder(s).substr(0, 23), "default/j7 default/j0 d");
  EXPECT_TRUE(InOrder(s).ends_with("default/j19 default/j5"));
}

TEST(WaitingLines, TellWhatTheirJobsNeedNow) {
  Scenario s;
  s.Node("n0", {.gpus = 1, .gpu_mib = 40'000});
  const auto need = [&s] {
    State& state = s.model.state();
    state.Refresh();
    state.lists.waiting.Settle(state);
    return state.lists.waiting.LineOf(state.FindGroup("default/j0"))->need;
  };
  Gang(s, "j0", 3, {});
  EXPECT_TRUE(need().complete && need().may_preempt);
  EXPECT_EQ(need().gpu_ppm, 3 * kPpm);
  EXPECT_EQ(need().amounts, (QueueAmounts{3 * kPpm, 300, int64_t{3 * 64} << 20}));
  s.RemovePod("j0-2");
  EXPECT_FALSE(need().complete);
  // The record of the former request is free, and the new one gets it: the key stays equal.
  Gang(s, "j0", 3, {});
  for (int i = 0; i < 3; ++i) s.RemovePod(StrCat("j0-", i));
  s.Pods("j0", 3, {.group = "j0", .gpu_mib = 10'000});
  EXPECT_EQ(need().amounts[kQueueGpu], 3 * kPpm / 4);
  // The part of a GPU that so much memory is follows from the smallest one there is.
  s.Node("n1", {.gpus = 1, .gpu_mib = 20'000});
  EXPECT_EQ(need().amounts[kQueueGpu], 3 * kPpm / 2);
}

// Queues in a tree, with users here and there, and many jobs of few kinds.
void FillWorld(Random& random, Scenario& s, std::vector<std::string>& leaves) {
  const int nodes = 2 + static_cast<int>(random.Below(4));
  for (int i = 0; i < nodes; ++i)
    s.Node(StrCat("n", i), {.gpus = 2 + 2 * static_cast<int>(random.Below(3))});
  for (int d = 0; d < 2; ++d) {
    const std::string above = StrCat("d", d);
    s.Queue(MakeQueue(above, static_cast<double>(random.Below(8))));
    for (int p = 0; p < 1 + static_cast<int>(random.Below(3)); ++p) {
      leaves.push_back(StrCat(above, "p", p));
      QueueInfo queue = MakeQueue(leaves.back(), static_cast<double>(random.Below(6)), above);
      queue.gpu.weight = static_cast<double>(random.Below(3));
      queue.fair_to_users = random.OneIn(3);
      if (random.OneIn(4)) queue.user_gpu_limit = 3;
      if (random.OneIn(3)) queue.gpu.limit = queue.gpu.quota + 2;
      s.Queue(queue);
    }
  }
}

struct Kind {
  GroupSpec group;
  PodSpec pod;
  int members = 1;
};

Kind RandomKind(Random& random, const std::vector<std::string>& leaves) {
  Kind kind;
  kind.group.queue = leaves[random.Below(leaves.size())];
  kind.group.priority = 50 + 25 * static_cast<int>(random.Below(3));
  kind.group.preemptible = kind.group.priority < 100;
  kind.members = 1 + static_cast<int>(random.Below(3));
  kind.group.min = random.OneIn(4) ? 1 : kind.members;
  kind.pod.gpus = 1 + static_cast<int>(random.Below(3));
  if (random.OneIn(6)) kind.pod.gpus = 0, kind.pod.fraction = 0.5;
  if (random.OneIn(3)) kind.pod.user = random.OneIn(2) ? "alice" : "bob";
  return kind;
}

// Two clusters that hear the same; in one of them each job stands alone.
struct Pair {
  Scenario lines, apart;
  template <class Fn>
  void Both(Fn&& fn) {
    fn(lines);
    fn(apart);
  }
};

std::string Difference(uint64_t seed, size_t& alike) {
  Pair both;
  both.apart.model.state().lists.waiting.KeepApart(true);
  std::vector<std::string> leaves;
  both.Both([&](Scenario& s) {
    Random random(seed);
    leaves.clear();
    FillWorld(random, s, leaves);
  });
  Random random(seed + 1'000'000);
  std::vector<Kind> kinds;
  for (int i = 0; i < 5; ++i) kinds.push_back(RandomKind(random, leaves));
  std::vector<std::pair<std::string, int>> there;
  int jobs = 0;
  for (int round = 0; round < 8; ++round) {
    for (uint64_t i = random.Below(12); i > 0; --i) {
      Kind kind = kinds[random.Below(kinds.size())];
      kind.group.minutes_old = static_cast<int>(random.Below(90));
      const std::string name = StrCat("j", jobs++);
      kind.pod.group = name;
      both.Both([&](Scenario& s) {
        s.Group(name, kind.group);
        s.Pods(name, kind.members, kind.pod);
      });
      there.emplace_back(name, kind.members);
    }
    for (size_t i = there.size(); i-- > 0;) {
      if (!random.OneIn(5)) continue;
      both.Both([&](Scenario& s) {
        for (int pod = 0; pod < there[i].second; ++pod)
          s.RemovePod(StrCat(there[i].first, "-", pod));
      });
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (int cycle = 0; cycle < 3; ++cycle) {
      both.Both([](Scenario& s) { s.Cycle(); });
      if (both.lines.Log() != both.apart.Log() || both.lines.Places() != both.apart.Places()) {
        return StrCat("round ", round, " cycle ", cycle, "\n", both.lines.Log(), "instead of\n",
                      both.apart.Log());
      }
      for (const WaitingLine& line : both.lines.model.state().lists.waiting.lines()) {
        alike = std::max(alike, line.jobs.size());
      }
      if (const std::string wrong = WronglyTold(both.lines); !wrong.empty()) {
        return StrCat("round ", round, " cycle ", cycle, ": needs of ", wrong);
      }
      both.Both([](Scenario& s) { s.AdvancePods(); });
    }
  }
  return "";
}

TEST(WaitingLines, DecideAsIfEachJobStoodAlone) {
  size_t alike = 0;
  for (uint64_t seed = FirstSeed(); seed <= LastSeed(150); ++seed) {
    const std::string difference = Difference(seed, alike);
    ASSERT_EQ(difference, "") << "seed " << seed;
  }
  EXPECT_GT(alike, 4u);
}

}  // namespace
}  // namespace swell::sched
