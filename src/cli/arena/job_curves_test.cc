// JobCurves: which jobs can have a TensorBoard, and what the others are told.
#include "cli/arena/job_curves.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::cli::arena {
namespace {

JobView Job(const std::string& pod) {
  JobView job;
  job.name = "curves";
  job.ns = "vision";
  job.priority = "train";
  for (const JobKindInfo& kind : JobKinds()) {
    if (kind.kind == "PyTorchJob") job.kind = &kind;
  }
  job.object = std::make_shared<const json::Value>(
      json::Parse(StrCat(R"({"metadata":{"name":"curves"},"spec":{"pytorchReplicaSpecs":{)",
                         R"("Worker":{"replicas":2,"template":{"spec":)", pod, "}}}}}"))
          .value());
  return job;
}

std::string Pod(const std::string& log_dir,
                const std::string& mount,
                const std::string& volume = R"("persistentVolumeClaim":{"claimName":"logs"})") {
  return StrCat(
      R"({"nodeSelector":{"zone":"a"},"containers":[{"name":"helper"},{"name":"pytorch",)",
      R"("image":"img","env":[{"name":"SWELL_LOG_DIR","value":")", log_dir,
      R"("}],"volumeMounts":[{"name":"other","mountPath":"/"},{"name":"logs",)", mount,
      R"(}]}],"volumes":[{"name":"other","emptyDir":{}},{"name":"logs",)", volume, "}]}");
}

std::string Refusal(const std::string& pod) {
  const auto curves = CurvesOf(Job(pod));
  return curves.ok() ? "none" : std::string(curves.status().message());
}

TEST(JobCurves, AreInTheVolumeThatHoldsTheFolder) {
  const auto curves = CurvesOf(Job(Pod("/logs/curves", R"("mountPath":"/logs")")));
  ASSERT_TRUE(curves.ok()) << curves.status().ToString();
  EXPECT_EQ(curves->log_dir, "/logs/curves");
  EXPECT_EQ(curves->spec.image, "img");
  EXPECT_EQ(curves->spec.ns, "vision");
  EXPECT_EQ(curves->spec.priority, "train");
  EXPECT_EQ(curves->spec.selectors, (KeyValues{{"zone", "a"}}));
  ASSERT_EQ(curves->spec.mounts.size(), 1U);
  EXPECT_EQ(curves->spec.mounts[0].path, "/logs");
  EXPECT_TRUE(curves->spec.mounts[0].read_only);
  EXPECT_EQ(json::Print(json::Value(curves->spec.mounts[0].source)),
            R"({"persistentVolumeClaim":{"claimName":"logs"}})");
}

TEST(JobCurves, ARemoteFolderNeedsNoVolume) {
  const auto curves = CurvesOf(Job(Pod("s3://bucket/curves", R"("mountPath":"/logs")")));
  ASSERT_TRUE(curves.ok()) << curves.status().ToString();
  EXPECT_TRUE(curves->spec.mounts.empty());
}

TEST(JobCurves, AJobThatWritesNoneIsToldWhatItNeeds) {
  EXPECT_NE(Refusal(R"({"containers":[{"name":"pytorch"}]})").find("curves writes no curves"),
            std::string::npos);
  // "/" is an emptyDir in Pod(), which covers what no other mount does.
  EXPECT_NE(Refusal(Pod("/elsewhere", R"("mountPath":"/logs")")).find("ends with each of its pods"),
            std::string::npos);
  EXPECT_NE(Refusal(Pod("/logs/x", R"("mountPath":"/logs","subPath":"part")")).find("a part of"),
            std::string::npos);
  EXPECT_NE(
      Refusal(R"({"containers":[{"name":"c","env":[{"name":"SWELL_LOG_DIR","value":"/x"}]}]})")
          .find("a folder of its containers"),
      std::string::npos);
}

}  // namespace
}  // namespace swell::cli::arena
