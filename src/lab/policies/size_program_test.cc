#include "lab/policies/size_program.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "base/strings.h"
#include "lab/trace/csv.h"

namespace swell::lab {
namespace {

using Jobs = std::vector<std::vector<SizeOption>>;

// The least cost by trying everything.
double LeastCost(const Jobs& jobs, std::vector<int> left, size_t job = 0) {
  if (job == jobs.size()) return 0;
  double least = LeastCost(jobs, left, job + 1);
  for (const SizeOption& option : jobs[job]) {
    if (option.gpus > left[option.group]) continue;
    left[option.group] -= option.gpus;
    least = std::min(least, option.cost + LeastCost(jobs, left, job + 1));
    left[option.group] += option.gpus;
  }
  return least;
}

// The cost of a choice; the test fails if it uses more GPUs than there are.
double CostOf(const Jobs& jobs, const std::vector<int>& capacity, const SizeChoice& choice) {
  std::vector<int> left = capacity;
  double cost = 0;
  for (size_t job = 0; job < jobs.size(); ++job) {
    if (choice.chosen[job] < 0) continue;
    const SizeOption& option = jobs[job][choice.chosen[job]];
    left[option.group] -= option.gpus;
    cost += option.cost;
  }
  for (int gpus : left) EXPECT_GE(gpus, 0);
  return cost;
}

TEST(SizeProgram, NothingToChooseCostsNothing) {
  EXPECT_EQ(ChooseSizes({}, {4}, 1).cost, 0);
  const SizeChoice choice = ChooseSizes({{}, {{0, 1, 5}}}, {4}, 1);
  EXPECT_EQ(choice.chosen, (std::vector<int>{-1, -1})) << "a size that costs is not taken";
  EXPECT_TRUE(choice.exact);
}

TEST(SizeProgram, TheDearerTypeGoesToWhoMakesMostOfIt) {
  // Both jobs prefer the one GPU of group 1; the second gains more by it.
  const Jobs jobs{{{0, 1, -4}, {1, 1, -5}}, {{0, 1, -2}, {1, 1, -6}}};
  const SizeChoice choice = ChooseSizes(jobs, {2, 1}, 1);
  EXPECT_EQ(choice.chosen, (std::vector<int>{0, 1}));
  EXPECT_EQ(choice.cost, -10);
}

TEST(SizeProgram, NoChoiceCostsLess) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const size_t groups = 1 + random.Below(3);
    std::vector<int> capacity;
    for (size_t g = 0; g < groups; ++g) capacity.push_back(static_cast<int>(2 + random.Below(7)));
    Jobs jobs(1 + random.Below(6));
    for (auto& options : jobs) {
      const uint64_t count = random.Below(6);
      for (uint64_t i = 0; i < count; ++i) {
        const int group = static_cast<int>(random.Below(groups));
        const int gpus = 1 + static_cast<int>(random.Below(capacity[group]));
        options.push_back({group, gpus, -static_cast<double>(random.Below(100)) * gpus / 3});
      }
    }
    const SizeChoice choice = ChooseSizes(jobs, capacity, 1);
    ASSERT_TRUE(choice.exact) << "seed " << seed;
    ASSERT_NEAR(choice.cost, CostOf(jobs, capacity, choice), 1e-9) << "seed " << seed;
    ASSERT_NEAR(choice.cost, LeastCost(jobs, capacity), 1e-6) << "seed " << seed;
    ASSERT_LE(choice.bound, choice.cost + 1e-6) << "seed " << seed;
  }
}

std::string DataFolder() {
  const char* said = std::getenv("SWELL_LAB_DATA");
  if (said != nullptr) return said;
  const std::string here = __FILE__;
  return here.substr(0, here.rfind("/src/lab/")) + "/../shared/data";
}

// 29 configurations: powers of two within a node, then whole nodes, on 4-, 8- and 8-GPU nodes.
std::vector<SizeOption> Configurations() {
  std::vector<SizeOption> all;
  const int counts[] = {18, 5, 6};
  for (int group = 0; group < 3; ++group) {
    const int per_node = group == 0 ? 4 : 8;
    for (int i = 0, gpus = 1; i < counts[group]; ++i) {
      all.push_back({group, gpus, 0});
      gpus += gpus < per_node ? gpus : per_node;
    }
  }
  return all;
}

// Rounds of Sia's program, recorded with the optima that HiGHS found.
TEST(SizeProgram, FindsTheRecordedOptima) {
  const std::string folder = DataFolder() + "/ilp-instances";
  if (!FileExists(folder)) GTEST_SKIP() << "no " << folder;
  const auto instances = CsvTable::Read(folder + "/instances.csv");
  ASSERT_TRUE(instances.ok());
  int compared = 0;
  for (size_t row = 0; row < instances->rows(); ++row) {
    const int scale = static_cast<int>(*instances->Integer(row, *instances->Column("scale")));
    const int64_t count = *instances->Integer(row, *instances->Column("jobs"));
    if (count > 480) continue;  // takes a quarter of a minute
    const auto text = ReadFile(StrCat(folder, "/s", scale, "_j", count, "_cost.csv"));
    ASSERT_TRUE(text.ok());
    Jobs jobs;
    for (std::string_view line : Split(*text, '\n')) {
      if (line.empty()) continue;
      std::vector<SizeOption> options;
      const std::vector<SizeOption> all = Configurations();
      const std::vector<std::string_view> costs = Split(line, ',');
      ASSERT_EQ(costs.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        const double cost = std::rint(100 * std::strtod(std::string(costs[i]).c_str(), nullptr));
        if (cost < 0) options.push_back({all[i].group, all[i].gpus, cost});
      }
      jobs.push_back(std::move(options));
    }
    ASSERT_EQ(static_cast<int64_t>(jobs.size()), count);
    const std::vector<int> capacity{24 * scale, 16 * scale, 24 * scale};
    for (auto& options : jobs) {
      std::erase_if(options, [&](const SizeOption& o) { return o.gpus > capacity[o.group]; });
    }
    const SizeChoice choice = ChooseSizes(jobs, capacity, 1);
    const double optimum = *instances->Number(row, *instances->Column("highs_obj"));
    EXPECT_NEAR(choice.cost / 100, optimum, 1e-6) << scale << " " << count;
    EXPECT_TRUE(choice.exact) << scale << " " << count;
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

}  // namespace
}  // namespace swell::lab
