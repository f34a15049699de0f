// Gangs go to few nodes, and whole idle nodes stay whole.
#include <deque>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/scenario_test_util.h"

namespace swell::sched {
namespace {

// Nodes of eight GPUs, n0, n1, ..., each with this number idle.
void Nodes(Scenario& s, const std::vector<int>& idle) {
  for (size_t i = 0; i < idle.size(); ++i) {
    const std::string name = StrCat("n", i);
    s.Node(name, {.gpus = 8});
    if (idle[i] < 8)
      s.Pod(StrCat("old", i), {.gpus = 8 - idle[i], .on = name, .preemptible = false});
  }
}

// The nodes of a gang of pods with one GPU each, as it starts.
std::set<std::string> NodesOfGang(Scenario& s, int members) {
  s.Group("gang", {.min = members});
  s.Pods("gang", members, {.group = "gang", .gpus = 1});
  s.Cycle();
  std::set<std::string> nodes;
  for (int i = 0; i < members; ++i) nodes.insert(s.NodeOf(StrCat("gang-", i)));
  return nodes;
}

using Names = std::set<std::string>;

TEST(Packing, AGangGoesToTheSmallestPieceThatHoldsIt) {
  Scenario s;
  Nodes(s, {1, 1, 8, 6, 4, 2});
  EXPECT_EQ(NodesOfGang(s, 4), Names{"n4"});
}

TEST(Packing, OfALargeGangTheRestGoesToAPieceThatHoldsIt) {
  Scenario s;
  Nodes(s, {1, 1, 1, 1, 8, 8, 5});
  EXPECT_EQ(NodesOfGang(s, 12), (Names{"n4", "n6"}));
}

TEST(Packing, AWholeNodeIsNotBrokenForLittle) {
  Scenario s;
  Nodes(s, {1, 1, 1, 8});
  EXPECT_EQ(NodesOfGang(s, 3), (Names{"n0", "n1", "n2"}));
}

TEST(Packing, AWholeNodeIsBrokenForHalfOfIt) {
  Scenario s;
  Nodes(s, {1, 1, 1, 1, 8});
  EXPECT_EQ(NodesOfGang(s, 4), Names{"n4"});
}

TEST(Packing, AWholeNodeIsBrokenWhereTheOthersAreTooLittle) {
  Scenario s;
  Nodes(s, {1, 1, 8});
  EXPECT_EQ(NodesOfGang(s, 3), Names{"n2"});
}

TEST(Packing, AGangGoesToFewNodesOfItsDomain) {
  Scenario s;
  const std::vector<int> idle = {1, 1, 4, 2, 4};
  for (size_t i = 0; i < idle.size(); ++i) {
    const std::string name = StrCat("n", i);
    s.Node(name, {.gpus = 8, .labels = {{"rack", i < 4 ? "r0" : "r1"}}});
    s.Pod(StrCat("old", i), {.gpus = 8 - idle[i], .on = name, .preemptible = false});
  }
  s.Group("gang", {.min = 6, .topology = {"", "rack", ""}});
  s.Pods("gang", 6, {.group = "gang", .gpus = 1});
  s.Cycle();
  Names nodes;
  for (int i = 0; i < 6; ++i) nodes.insert(s.NodeOf(StrCat("gang-", i)));
  EXPECT_EQ(nodes, (Names{"n2", "n3"}));
}

TEST(Packing, ANodeWithoutCpuForTheRestGetsWhatItHolds) {
  Scenario s;
  s.Node("n0", {.gpus = 8, .cpu = 2000});
  s.Node("n1", {.gpus = 4});
  s.Group("gang", {.min = 4});
  s.Pods("gang", 4, {.group = "gang", .gpus = 1, .cpu = 900});
  s.Cycle();
  EXPECT_EQ(s.NodeOf("gang-3"), "n1");
  EXPECT_EQ(s.CountDecisions(Decision::Type::kBind), 4);
  s.Group("more", {.min = 3});
  s.Pods("more", 3, {.group = "more", .gpus = 1, .cpu = 900});
  s.Cycle();
  EXPECT_EQ(s.Log(), "") << "GPUs are left, CPU for three is not";
}

// Days of a cluster on which jobs come and end.
struct Days {
  double nodes_per_gang = 0;
  double whole_nodes = 0;  // idle on average: each could start a gang of eight at once
};

Days Play(uint64_t seed, bool packed) {
  Scenario s;
  const int nodes = 24;
  for (int i = 0; i < nodes; ++i) s.Node(StrCat("n", i), {.gpus = 8});
  // Where some node is to be avoided, each pod looks for its own place.
  if (!packed) s.Node("no-gpus", {.taints = {{"slow", "", TaintEffect::kPreferNoSchedule}}});
  Random random(seed);
  std::deque<std::pair<int, std::vector<std::string>>> running;  // until when
  int gangs = 0;
  Days days;
  const int steps = 120;
  for (int step = 0; step < steps; ++step) {
    std::erase_if(running, [&](const auto& job) {
      if (job.first > step) return false;
      for (const std::string& pod : job.second) s.RemovePod(pod);
      return true;
    });
    for (int job = 0; job < 4; ++job) {
      const int kMembers[] = {1, 1, 1, 2, 3, 4, 6, 12};
      const int members = kMembers[random.Below(8)];
      const std::string name = StrCat("j", step, "x", job);
      s.Group(name, {.min = members});
      s.Pods(name, members, {.group = name, .gpus = 1});
      const int end = step + 4 + static_cast<int>(random.Below(16));
      std::vector<std::string> pods;
      for (int i = 0; i < members; ++i) pods.push_back(StrCat(name, "-", i));
      running.emplace_back(end, std::move(pods));
    }
    s.Cycle(Only({"allocate"}));
    std::map<std::string, std::pair<int, std::set<std::string>>> started;
    for (const Decision& d : s.last.decisions) {
      ++started[d.group].first;
      started[d.group].second.insert(d.node);
    }
    for (const auto& [name, where] : started) {
      if (where.first < 2) continue;
      ++gangs;
      days.nodes_per_gang += static_cast<double>(where.second.size());
    }
    s.AdvancePods();
    for (const Model::NodeView& node : s.model.Nodes()) {
      days.whole_nodes += node.name != "no-gpus" && node.idle_gpus == 8;
    }
  }
  days.nodes_per_gang /= gangs;
  days.whole_nodes /= steps;
  return days;
}

TEST(Packing, GangsAreOnFewerNodesAndAsManyNodesStayWhole) {
  Days one_by_one;
  Days packed;
  for (uint64_t seed = FirstSeed(); seed <= LastSeed(5); ++seed) {
    for (const auto& [sum, is_packed] : {std::pair(&one_by_one, false), std::pair(&packed, true)}) {
      const Days days = Play(seed, is_packed);
      sum->nodes_per_gang += days.nodes_per_gang;
      sum->whole_nodes += days.whole_nodes;
    }
  }
  const double seeds = static_cast<double>(LastSeed(5) - FirstSeed() + 1);
  EXPECT_LT(packed.nodes_per_gang, 0.8 * one_by_one.nodes_per_gang);
  EXPECT_GT(packed.whole_nodes, one_by_one.whole_nodes - 0.5 * seeds);
  RecordProperty("one_by_one", StrCat(one_by_one.nodes_per_gang / seeds, " nodes for a gang, ",
                                      one_by_one.whole_nodes / seeds, " whole"));
  RecordProperty("packed", StrCat(packed.nodes_per_gang / seeds, " nodes for a gang, ",
                                  packed.whole_nodes / seeds, " whole"));
}

}  // namespace
}  // namespace swell::sched
