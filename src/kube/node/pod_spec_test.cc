#include "kube/node/pod_spec.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/strings.h"

namespace swell::node {
namespace {

// What the agent writes while the pod runs is not the pod's to change.
TEST(PodSpecTest, FilesOfTheClusterAreMountedReadOnly) {
  const json::Value pod = json::Parse(R"({"metadata":{"name":"a","uid":"u"},"spec":{"volumes":[
      {"name":"scratch","emptyDir":{}},{"name":"code","configMap":{"name":"c"}},
      {"name":"key","secret":{"secretName":"s"}},{"name":"about","downwardAPI":{}},
      {"name":"all","projected":{"sources":[]}}],
      "containers":[{"name":"main","image":"x","volumeMounts":[
        {"name":"scratch","mountPath":"/scratch"},{"name":"code","mountPath":"/code"},
        {"name":"key","mountPath":"/key"},{"name":"about","mountPath":"/about"},
        {"name":"all","mountPath":"/all"}]}]}})")
                              .value();
  const PodSources sources;
  const auto made = MakeContainerSpec({pod, sources, "", "", {}, {}},
                                      json::GetArray(pod, {"spec", "containers"})[0], 0);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_EQ(made->mounts.size(), 5u);
  for (const MountSpec& mount : made->mounts) {
    EXPECT_EQ(mount.read_only, mount.volume != "scratch") << mount.volume;
  }
}

TEST(PodSpecTest, AGangSharesCheckpointsWhoeverMadeItsPods) {
  auto key = [](std::string_view metadata) {
    auto pod = json::Parse(StrCat(R"({"metadata":{"namespace":"ns","name":"p",)", metadata, "}}"));
    SWELL_CHECK(pod.ok());
    return CheckpointKey(*pod);
  };
  const std::string labels = R"("labels":{"swell.dev/pod-group":"jobset.s"},)";
  const std::string owned =
      R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"s-a","uid":"0123456789",)"
      R"("controller":true}])";
  EXPECT_EQ(key(labels + owned), "ns/jobset.s-01234567");
  EXPECT_EQ(key(labels + R"("annotations":{"swell.dev/group-owner":"abcdefghij"},)" + owned),
            "ns/jobset.s-abcdefgh");
  EXPECT_EQ(key(R"("labels":{})"), "ns/p") << "made again, it is the same";
}

}  // namespace
}  // namespace swell::node
