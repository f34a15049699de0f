// Jobs' objects and accounts as a trace: fixed objects in, an exact trace out.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "ops/lab/lab_cluster.h"
#include "ops/lab/lab_past_jobs.h"

namespace swell::ops {
namespace {

const PriorityValues kClasses{{"train", 50}, {"interactive", 75}};

WallTime At(std::string_view time) { return *api::ParseTime(StrCat("2026-11-20T", time, "Z")); }

// A TrainingJob of 2 replicas with 2 GPUs, created at 10:00, that is over.
json::Value Job(std::string_view name, std::string_view status) {
  auto job = json::ParseYaml(StrCat(R"(
apiVersion: swell.dev/v1
kind: TrainingJob
metadata:
  name: )",
                                    name, R"(
  namespace: vision
  uid: uid-)",
                                    name, R"(
  creationTimestamp: '2026-11-20T10:00:00Z'
spec:
  project: vision
  roles:
    worker:
      replicas: 2
      elastic: {minReplicas: 1, maxReplicas: 4}
      template: {spec: {containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}}
status:
)",
                                    status));
  EXPECT_TRUE(job.ok()) << job.status().message();
  return std::move(job->front());
}

constexpr std::string_view kOver = R"(
  startTime: '2026-11-20T10:05:00Z'
  completionTime: '2026-11-20T10:25:00Z'
  conditions: [{type: Succeeded, status: 'True'}]
)";

std::vector<cli::JobView> Views(std::vector<json::Value> jobs) {
  cli::JobObjects objects;
  objects.jobs.resize(cli::JobKinds().size());
  for (json::Value& job : jobs) {
    const cli::JobKindInfo* kind = cli::KindOfJob(job);
    objects.jobs[static_cast<size_t>(kind - cli::JobKinds().data())].push_back(
        std::make_shared<const json::Value>(std::move(job)));
  }
  return cli::ViewJobs(objects);
}

void Held(client::UsageDay& day,
          const std::string& job,
          double training_gpu_s,
          const client::UsageJobFacts& facts) {
  client::UsageRow& row = day.Job("vision", "ann", job);
  row.gpu_s = training_gpu_s + 40;
  row.Of(client::GpuUse::kTraining) = training_gpu_s;
  row.Of(client::GpuUse::kLoading) = 40;
  row.started = 2;
  day.NoteJob({"vision", "ann", job}, facts);
}

std::string Whole(double value) { return std::to_string(static_cast<int64_t>(value)); }

std::string Text(const PastJobs& past) {
  std::string text;
  for (const lab::PastJob& job : past.jobs) {
    text += StrCat(job.name, " of ", job.tenant, " at ",
                   job.submitted_s - At("10:00:00").unix_ns / 1'000'000'000, " from ",
                   job.started_s - job.submitted_s, " to ", job.ended_s - job.submitted_s, " gpus ",
                   Whole(job.gpus_min), "-", Whole(job.gpus), "-", Whole(job.gpus_max),
                   " priority ", job.priority, " work ", Whole(job.work_gpu_s), " held ",
                   Whole(job.held_gpu_s), " restarts ", job.restarts, "\n");
  }
  return StrCat(text, "left out ", past.left_out, ", unclear ", past.unclear);
}

TEST(PastJobs, ComeFromObjects) {
  const std::string measured = StrCat(kOver, R"(
  gpuTime: {heldSeconds: 4800, seconds: {loading: 200, training: 4400}, lostSeconds: 400}
  attempts:
  - {member: measured-worker-0, started: '2026-11-20T10:02:00Z', ended: '2026-11-20T10:03:00Z', result: Preempted}
  - {member: measured-worker-1, started: '2026-11-20T10:02:00Z', ended: '2026-11-20T10:03:00Z', result: Preempted}
)");
  const auto views =
      Views({Job("measured", measured), Job("plain", kOver), Job("waits", "  conditions: []\n")});
  EXPECT_EQ(Text(PastJobsOf(views, {}, kClasses, {}, At("09:00:00"))),
            "vision/measured of vision at 0 from 120 to 1500 gpus 2-4-8 priority 50 work 4000 held "
            "4800 restarts 1\n"
            "vision/plain of vision at 0 from 300 to 1500 gpus 2-4-8 priority 50 work 4800 held "
            "4800 restarts 0\n"
            "left out 1, unclear 0");
  EXPECT_EQ(Text(PastJobsOf(views, {}, kClasses, {}, At("10:00:01"))), "left out 0, unclear 0");
}

// Its replicas are what it asked for at its end.
TEST(PastJobs, AnElasticJobDidItsWorkOnWhatItHeld) {
  const std::string shrank = StrCat(kOver, R"(
  gpuTime: {heldSeconds: 2600, seconds: {training: 2500}}
)");
  EXPECT_EQ(Text(PastJobsOf(Views({Job("shrank", shrank)}), {}, kClasses, {}, At("09:00:00"))),
            "vision/shrank of vision at 0 from 300 to 1500 gpus 2-2-8 priority 50 work 2500 held "
            "2600 restarts 0\n"
            "left out 0, unclear 0");
}

TEST(PastJobs, ComeFromTheAccountsWhenTheirObjectsAreGone) {
  client::UsageDay first, second;
  first.date = "2026-11-19";
  second.date = "2026-11-20";
  first.until = *api::ParseTime("2026-11-20T00:00:00Z");
  second.until = At("18:00:00");
  const WallTime evening = *api::ParseTime("2026-11-19T22:00:00Z");
  // Over midnight.
  Held(first, "vision/gone", 100, {"u1", evening, 4, evening, first.until});
  Held(second, "vision/gone", 300, {"u1", evening, 2, first.until, At("01:00:00")});
  // The same name again.
  Held(second, "vision/again", 10, {"u2", At("02:00:00"), 1, At("02:00:00"), At("02:01:00")});
  // Its object is there, and comes first.
  Held(second, "vision/plain", 999,
       {"uid-plain", At("10:00:00"), 4, At("10:00:00"), At("11:00:00")});
  Held(second, "vision/runs", 10, {"u3", At("10:00:00"), 4, At("10:00:00"), At("18:00:00")});
  Held(second, "vision/two", 10, {"u4", At("10:00:00"), 4, At("10:00:00"), At("11:00:00"), true});
  Held(second, "vision/old-record", 10, {});
  const std::string expected =
      "vision/again of vision at -28800 from 0 to 60 gpus 1-1-1 priority 50 work 10 held 50 "
      "restarts 1\n"
      "vision/gone of vision at -43200 from 0 to 10800 gpus 4-4-4 priority 50 work 400 held 480 "
      "restarts 3\n"
      "vision/plain of vision at 0 from 300 to 1500 gpus 2-2-8 priority 50 work 999 held 1039 "
      "restarts 0\n"
      "left out 1, unclear 2";
  const auto views = Views({Job("plain", kOver)});
  const std::vector<client::UsageDay> days{first, second};
  EXPECT_EQ(Text(PastJobsOf(views, {}, kClasses, days, evening)), expected);
  // As they are read back.
  std::vector<client::UsageDay> stored;
  for (const client::UsageDay& day : days) {
    stored.push_back(*client::UsageDay::FromConfigMap(day.ToConfigMap("swell-system")));
  }
  EXPECT_EQ(Text(PastJobsOf(views, {}, kClasses, stored, evening)), expected);
}

TEST(PastJobs, OfOneNameAreToldApart) {
  client::UsageDay first, second;
  first.date = "2026-11-19";
  second.date = "2026-11-20";
  first.until = *api::ParseTime("2026-11-20T00:00:00Z");
  second.until = At("18:00:00");
  const WallTime evening = *api::ParseTime("2026-11-19T22:00:00Z");
  Held(first, "vision/train", 100, {"u1", evening, 1, evening, first.until});
  Held(second, "vision/train", 50, {"u2", At("02:00:00"), 1, At("02:00:00"), At("02:01:00")});
  const PastJobs past = PastJobsOf({}, {}, kClasses, {first, second}, evening);
  ASSERT_EQ(past.jobs.size(), 2u);
  EXPECT_EQ(past.jobs[0].name, "vision/train");
  EXPECT_EQ(past.jobs[0].work_gpu_s, 100);
  EXPECT_EQ(past.jobs[1].name, "vision/train#2");
}

cli::NodeView Node(int64_t gpus) {
  cli::NodeView node;
  node.total.milli_gpus = gpus * 1000;
  return node;
}

TEST(LabCluster, TakesTheLargestGroupOfNodesAndSaysSo) {
  std::vector<std::string> notes;
  auto shape = ShapeOf({Node(8), Node(8), Node(0)}, notes);
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->ToString(), "2x8");
  EXPECT_TRUE(notes.empty());
  shape = ShapeOf({Node(4), Node(4), Node(4), Node(8)}, notes);
  EXPECT_EQ(shape->ToString(), "3x4");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "Nodes differ (3x4, 1x8 GPUs): the largest group, 3x4, is played. --cluster chooses "
            "another shape.");
  EXPECT_TRUE(cli::IsMisuse(ShapeOf({Node(0)}, notes).status()));
}

}  // namespace
}  // namespace swell::ops
