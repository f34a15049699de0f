#include "lab/model/plan_curve.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "lab/model/profile.h"

namespace swell::lab {
namespace {

const std::vector<PlanStep> kSteps{{"ga", {1}, 4.0},       {"ga", {2}, 2.0},
                                   {"ga", {1, 1}, 3.0},    {"zero-dp", {2}, 1.5},
                                   {"122", {2, 2}, 1.0},   {"122", {1, 1, 1, 1}, 2.5},
                                   {"124", {4, 4}, 0.625}, {"212", {1, 1, 1, 1}, 2.0}};

TEST(PlanCurve, HasTheSizesAndTimesOfOnePlan) {
  const PlanCurve curve(kSteps, "ga");
  EXPECT_EQ(curve.sizes(), (std::vector<int>{1, 2}));
  EXPECT_EQ(curve.StepSeconds({2}), 2.0);
  EXPECT_EQ(curve.StepSeconds({1, 1}), 3.0);
  EXPECT_EQ(curve.StepSeconds(1, 2), 2.0);
  EXPECT_EQ(curve.StepSeconds(4, 4), 3.0) << "two GPUs idle, on the most nodes that were measured";
  EXPECT_TRUE(std::isinf(curve.StepSeconds({})));
  EXPECT_TRUE(curve.NeededPlacement(2, 8).empty()) << "data parallel jobs train anywhere";
}

TEST(PlanCurve, ASplitModelChangesItsDataParallelPartOnly) {
  const PlanCurve curve(kSteps, "122");
  EXPECT_EQ(curve.sizes(), (std::vector<int>{4, 8}));
  EXPECT_EQ(curve.StepSeconds({4, 4}), 0.625) << "plan 124";
  EXPECT_EQ(curve.StepSeconds({1, 1, 1, 1}), 2.5) << "not plan 212";
  EXPECT_EQ(curve.StepSeconds(1, 2), 2.0) << "the time of four GPUs, in turns";
}

TEST(PlanCurve, ASplitModelNeedsAPlacementThatWasMeasured) {
  const PlanCurve curve(kSteps, "122");
  EXPECT_EQ(curve.NeededPlacement(4, 8), (Placement{2, 2})) << "the fastest";
  EXPECT_EQ(curve.NeededPlacement(4, 1), (Placement{1, 1, 1, 1})) << "nodes have one GPU";
  EXPECT_EQ(curve.SizesOn(4), (std::vector<int>{4, 8}));
  EXPECT_EQ(curve.SizesOn(2), (std::vector<int>{4})) << "8 were measured as 4 on a node";
  EXPECT_EQ(PlanCurve(kSteps, "ga").SizesOn(1), (std::vector<int>{1, 2})) << "trains anywhere";
}

TEST(PlanCurve, APlanOfWholeCopiesDoesNotSplitTheState) {
  EXPECT_FALSE(PlanCurve(kSteps, "ga").splits_state());
  EXPECT_TRUE(PlanCurve(kSteps, "122").splits_state());
  EXPECT_TRUE(PlanCurve(kSteps, "zero-dp").splits_state()) << "the optimizer's state is in parts";
  EXPECT_TRUE(PlanCurve(kSteps, "").splits_state()) << "the fastest plan may be any of them";
}

TEST(PlanCurve, WithoutAPlanTheFastestOneCounts) {
  const PlanCurve curve(kSteps, "");
  EXPECT_EQ(curve.sizes(), (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(curve.StepSeconds({2}), 1.5) << "zero-dp";
  EXPECT_EQ(curve.StepSeconds({1, 1, 1, 1}), 2.0) << "212";
}

TEST(PlanCurve, IsReadFromAFolderOfApplications) {
  const TempDir dir;
  const std::string file = StrCat(dir.path(), "/vit/placements.csv");
  ASSERT_TRUE(MakeDirs(StrCat(dir.path(), "/vit")).ok());
  auto load = [&](const std::string& rows) {
    SWELL_CHECK(
        WriteFileAtomically(file, StrCat("exec_plan,placement,iter_time,forward\n", rows)).ok());
    return ProfileLibrary::Load(dir.path(), {"aws"});
  };
  const auto library = load("ga,12,0.5,0\nga,1,1,0\ngc,1,2,0\n");
  ASSERT_TRUE(library.ok()) << library.status().message();
  const PlanCurve* curve = library->FindPlan("vit", "ga");
  ASSERT_NE(curve, nullptr);
  EXPECT_EQ(curve->sizes(), (std::vector<int>{1, 3}));
  EXPECT_EQ(curve->StepSeconds({2, 1}), 0.5);
  EXPECT_EQ(library->FindPlan("vit", "zero-dp"), nullptr);
  EXPECT_EQ(library->FindPlan("bert", "ga"), nullptr);
  EXPECT_EQ(load("ga,10,0.5,0\n").status().message(),
            StrCat(file, ":2: placement \"10\": expected GPUs on each node as digits"));
  EXPECT_EQ(load("ga,1,0,0\n").status().message(),
            StrCat(file, ":2: iter_time \"0\": expected seconds, more than 0"));
}

}  // namespace
}  // namespace swell::lab
