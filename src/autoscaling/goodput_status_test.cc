#include "autoscaling/goodput_status.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::autoscaling {
namespace {

GoodputRole Worker() {
  GoodputRole role;
  role.role = "worker";
  role.replicas = 2;
  role.bounds = {1, 8};
  return role;
}

GoodputState TwoSizes() {
  GoodputState state;
  state.unit = "records";
  for (int i = 0; i < 3; ++i) {
    state.Add(
        1,
        {.nodes = 1, .speed = 100, .step_s = 0.5, .sync_s = 0, .batch = 50, .at_s = 1'799'999'000});
    state.Add(2, {.nodes = 1,
                  .speed = 180,
                  .step_s = 0.2777,
                  .sync_s = 0.02,
                  .batch = 50,
                  .at_s = 1'800'000'000});
  }
  state.noise = 350;
  state.members = state.measured_at = 2;
  state.resize_s = 0.31;
  state.gpu_type = "T4";
  state.decision = "Asks for 4 members instead of 2: +70 % goodput expected";
  state.decided_at = WallTime{1'800'000'000'000'000'000};
  return state;
}

TEST(GoodputStatus, IsReadAsItWasWritten) {
  const GoodputState state = TwoSizes();
  const GoodputRole role = Worker();
  const json::Value status = ToStatus(state, role, OutlookOf(state, role));
  const GoodputState read = GoodputState::FromStatus(status);
  EXPECT_TRUE(json::Equal(ToStatus(read, role, OutlookOf(read, role)), status))
      << json::Print(status);
  EXPECT_EQ(json::GetArray(status, {"points"}).size(), 2u);
  EXPECT_EQ(json::GetArray(status, {"curve"}).size(), 4u) << "up to twice what was tried";
  EXPECT_GT(json::GetInt(status, {"nextPercent"}), 10);
  EXPECT_TRUE(json::GetBool(status, {"fit", "healthy"})) << json::Print(status);
}

TEST(GoodputStatus, KeepsTheLastMove) {
  GoodputState state = TwoSizes();
  const GoodputRole role = Worker();
  state.restart_s = 3.2;
  state.held_to = "T4";
  state.type_decision = "Moves from 4 K80 to 2 T4: +61 % goodput expected, 3.2 s to restart";
  state.move = {.from = "K80",
                .to = "T4",
                .from_members = 4,
                .to_members = 2,
                .expected = 0.61,
                .count = 3,
                .at = WallTime{1'800'000'000'000'000'000}};
  const json::Value status = ToStatus(state, role, OutlookOf(state, role));
  const GoodputState read = GoodputState::FromStatus(status);
  EXPECT_TRUE(json::Equal(ToStatus(read, role, OutlookOf(read, role)), status))
      << json::Print(status);
  EXPECT_EQ(read.move.count, 3);
  EXPECT_EQ(read.move.at, state.move.at);
  EXPECT_EQ(json::GetInt(status, {"move", "expectedPercent"}), 61);
  EXPECT_EQ(json::GetString(status, {"heldTo"}), "T4");
}

TEST(GoodputStatus, AnotherTypeFollowsFromItsOwnSizesElseFromARatio) {
  GoodputState state = TwoSizes();
  const GoodputRole role = Worker();
  EXPECT_EQ(GoodputAt(OutlookOnType(state, role, "A100", 0), 2), 0) << "nothing is known of it";
  EXPECT_NEAR(GoodputAt(OutlookOnType(state, role, "A100", 3), 2), 540, 1);
  state.other_types["A100"].Restore(2, {{.nodes = 1, .speed = 270, .step_s = 0.185}, 3});
  EXPECT_NEAR(GoodputAt(OutlookOnType(state, role, "A100", 3), 2), 270, 1);
  EXPECT_NEAR(GoodputAt(OutlookOnType(state, role, "A100", 0), 1), 150, 1) << "in proportion";
  EXPECT_EQ(state.gpu_type, "T4") << "the state is as before";
}

TEST(GoodputStatus, EachTypeOfGpuHasItsOwnMeasurements) {
  GoodputState state = TwoSizes();
  const GoodputRole role = Worker();
  state.ChangeGpuType("A100");
  EXPECT_EQ(state.measured_at, 0) << "the size is measured anew";
  EXPECT_TRUE(OutlookOf(state, role).curve.empty()) << "no size says how much faster it is";
  for (int i = 0; i < 3; ++i) state.Add(2, {.nodes = 1, .speed = 540, .step_s = 0.0926});
  const GoodputOutlook outlook = OutlookOf(state, role);
  ASSERT_GE(outlook.speeds.size(), 2u);
  EXPECT_NEAR(outlook.speeds[0].speed, 300, 1);
  EXPECT_EQ(outlook.speeds[0].source, goodput::Source::kOtherType);

  const json::Value status = ToStatus(state, role, outlook);
  EXPECT_EQ(json::GetArray(status, {"points"}).size(), 1u);
  ASSERT_EQ(json::GetArray(status, {"otherTypes"}).size(), 1u);
  EXPECT_EQ(json::GetString(json::GetArray(status, {"otherTypes"})[0], {"gpuType"}), "T4");
  GoodputState read = GoodputState::FromStatus(status);
  EXPECT_TRUE(json::Equal(ToStatus(read, role, OutlookOf(read, role)), status))
      << json::Print(status);

  read.ChangeGpuType("T4");
  EXPECT_EQ(read.published.sizes().size(), 2u) << "they were measured before";
  EXPECT_EQ(read.published.sizes().at(2).speed, 180);
  // Those that were seen last are kept.
  int64_t now_s = 1'900'000'000;
  for (const char* type : {"H100", "L4", "V100", "P100"}) {
    read.ChangeGpuType(type);
    read.Add(1, {.nodes = 1, .speed = 10, .step_s = 1, .at_s = ++now_s});
  }
  EXPECT_EQ(read.other_types.size(), 3u);
  EXPECT_TRUE(read.other_types.contains("H100"));
  EXPECT_FALSE(read.other_types.contains("T4"));
}

TEST(GoodputStatus, EfficiencyIsOfABatchThatGrows) {
  GoodputState state = TwoSizes();
  GoodputRole role = Worker();
  const auto curve = [&] {
    const json::Value status = ToStatus(state, role, OutlookOf(state, role));
    std::string text;
    for (const json::Value& at : json::GetArray(status, {"curve"})) {
      text += StrCat(json::GetInt(at, {"members"}), ":",
                     json::GetInt(at, {"efficiencyPercent"}, -1), " ");
    }
    return text;
  };
  EXPECT_EQ(curve(), "1:-1 2:-1 3:-1 4:-1 ") << "the batch is constant";
  role.batch = goodput::BatchRule::kPerMember;
  // At two members, seen last, a step has 50 records: 25 of each.
  EXPECT_EQ(curve(), "1:100 2:94 3:88 4:83 ");
  role.others = 1;
  EXPECT_EQ(curve(), "1:100 2:96 3:92 4:88 ") << "the chief has a batch, too";
  state.AddNoise(355);
  EXPECT_EQ(state.noise, 350) << "no news";
  state.AddNoise(400);
  EXPECT_EQ(state.noise, 400);
  state.Forget();
  EXPECT_EQ(state.noise, 400) << "it is the model's";
}

TEST(GoodputStatus, NonsenseIsLeftOut) {
  for (const char* text :
       {"{}", "[]", R"({"points":7,"measuredAt":"x"})", R"({"points":[1,{},{"members":-1}]})",
        R"({"points":[{"members":1,"perSecond":-3}]})", R"({"resizeSeconds":-5})",
        R"({"noiseRecords":-5})"}) {
    const auto status = json::Parse(text);
    ASSERT_TRUE(status.ok());
    const GoodputState state = GoodputState::FromStatus(*status);
    EXPECT_TRUE(state.measured.sizes().empty()) << text;
    EXPECT_EQ(state.resize_s, 0) << text;
    EXPECT_EQ(state.noise, 0) << text;
  }
}

// What is told does not change with every look, so that an idle cluster writes nothing.
TEST(GoodputStatus, SmallChangesAreNotTold) {
  GoodputState state = TwoSizes();
  const GoodputRole role = Worker();
  for (int i = 0; i < 30; ++i) state.Add(2, {.nodes = 1, .speed = 180, .step_s = 0.278});
  const std::string before = json::Print(ToStatus(state, role, OutlookOf(state, role)));
  for (int i = 0; i < 30; ++i) state.Add(2, {.nodes = 1, .speed = 184, .step_s = 0.272});
  EXPECT_EQ(json::Print(ToStatus(state, role, OutlookOf(state, role))), before);
  for (int i = 0; i < 30; ++i) state.Add(2, {.nodes = 1, .speed = 220, .step_s = 0.23});
  EXPECT_NE(json::Print(ToStatus(state, role, OutlookOf(state, role))), before);
}

TEST(GoodputStatus, WithoutMeasurementsThereIsNoCurve) {
  const GoodputState state;
  const GoodputOutlook outlook = OutlookOf(state, Worker());
  EXPECT_TRUE(outlook.curve.empty());
  const json::Value status = ToStatus(state, Worker(), outlook);
  EXPECT_TRUE(json::GetArray(status, {"curve"}).empty());
  EXPECT_EQ(json::Find(status, {"nextPercent"}), nullptr);
}

TEST(GoodputTarget, ReadsTheJob) {
  auto read = [](const char* text) {
    const auto job = json::Parse(text);
    SWELL_CHECK(job.ok());
    return TrainingGoodputRole(*job, {});
  };
  auto none = read(R"({"spec":{"autoscaling":{"mode":"Metric"}}})");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
  auto role = read(R"({"spec":{"autoscaling":{"mode":"Goodput","intervalSeconds":5},
      "batch":{"effective":"PerReplica"},"roles":{"chief":{"replicas":1},
      "worker":{"replicas":2,"elastic":{"minReplicas":1,"maxReplicas":6}}}}})");
  ASSERT_TRUE(role.ok() && *role) << role.status().message();
  EXPECT_EQ((*role)->others, 1);
  EXPECT_EQ((*role)->bounds.most, 6);
  EXPECT_EQ((*role)->ranks_per_member, 1);
  EXPECT_EQ((*role)->interval, std::chrono::seconds(5));
  EXPECT_EQ((*role)->batch, goodput::BatchRule::kPerMember);
  for (const auto& [nproc, ranks] : {std::pair("4", 4), {R"("2")", 2}, {R"("gpu")", 0}}) {
    const std::string text =
        StrCat(R"({"spec":{"autoscaling":{"mode":"Goodput"},"rendezvous":{"nprocPerNode":)", nproc,
               R"(},"roles":{"worker":{"elastic":{"maxReplicas":2}}}}})");
    const auto with = read(text.c_str());
    ASSERT_TRUE(with.ok() && *with) << text;
    EXPECT_EQ((*with)->ranks_per_member, ranks) << text;
  }
  EXPECT_EQ(read(R"({"spec":{"autoscaling":{"mode":"Goodput"},"roles":{"worker":{}}}})")
                .status()
                .message(),
            "spec.autoscaling.role: Invalid value: \"worker\": must be a role with "
            "elastic.minReplicas and maxReplicas");
  EXPECT_NE(read(R"({"spec":{"autoscaling":{"mode":"Goodput","metrics":[{"name":"x"}]}}})")
                .status()
                .message()
                .find("spec.autoscaling.metrics: Forbidden"),
            std::string::npos);
}

TEST(GoodputTarget, TakesTheDefaultWhereTheJobSaysNothing) {
  const ScalingDefault lab{.mode = "Goodput", .said_by = "project lab"};
  auto role = [&lab](const char* spec) -> std::string {
    const auto job = json::Parse(StrCat(R"({"spec":)", spec, "}"));
    SWELL_CHECK(job.ok());
    const auto read = TrainingGoodputRole(*job, lab);
    if (!read.ok() || !*read) return StrCat("none", read.status().message());
    return StrCat((*read)->role, " of ", (*read)->default_of);
  };
  constexpr char kWorker[] = R"("roles":{"worker":{"elastic":{"minReplicas":1,"maxReplicas":2}}})";
  EXPECT_EQ(role(StrCat("{", kWorker, "}").c_str()), "worker of project lab");
  EXPECT_EQ(role(StrCat(R"({"autoscaling":{"observations":2},)", kWorker, "}").c_str()),
            "worker of project lab");
  EXPECT_EQ(role(StrCat(R"({"autoscaling":{"mode":"None"},)", kWorker, "}").c_str()), "none");
  EXPECT_EQ(role(StrCat(R"({"autoscaling":{"metrics":[{}]},)", kWorker, "}").c_str()), "none");
  EXPECT_EQ(role(StrCat(R"({"autoscaling":{"mode":"Goodput"},)", kWorker, "}").c_str()),
            "worker of ");
  EXPECT_EQ(role(R"({"roles":{"worker":{"elastic":{"minReplicas":2,"maxReplicas":2}}}})"), "none");
  EXPECT_EQ(role(R"({"roles":{"worker":{"replicas":2}}})"), "none");
  EXPECT_EQ(role(R"({"roles":{"trainer":{"elastic":{"maxReplicas":2}},"ps":{"replicas":1}}})"),
            "trainer of project lab");
  EXPECT_EQ(
      role(R"({"roles":{"a":{"elastic":{"maxReplicas":2}},"b":{"elastic":{"maxReplicas":2}}}})"),
      "none")
      << "it is not clear which";
}

}  // namespace
}  // namespace swell::autoscaling
