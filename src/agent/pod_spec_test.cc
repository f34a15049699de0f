#include "agent/pod_spec.h"

#include <gtest/gtest.h>

namespace swell::agent {
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

}  // namespace
}  // namespace swell::agent
