// Work whose node went down gets its places back before younger work of the same rank.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kube/api/meta/meta.h"
#include "manager/testing/one_node_fixture.h"

namespace swell::scheduling {
namespace {

using client::resources::kPods;
using manager::kSecond;
using manager::OneNodeTest;
using manager::PyTorchYaml;

class KeptRoomsTest : public OneNodeTest {
 protected:
  // What the next agent of the node says of a pod that ran when the node went down.
  void EndWithNode(const std::string& pod) {
    ASSERT_TRUE(cluster_
                    .Patch(kPods, "default/" + pod,
                           "status: {phase: Failed, reason: NodeShutdown, message: went down}",
                           "status")
                    .ok());
  }
  void Group(const std::string& name) {
    cluster_.Create(StrCat("apiVersion: swell.dev/v1\nkind: PodGroup\n", "metadata: {name: ", name,
                           ", namespace: default}\n",
                           "spec: {podSets: [{name: all, minMember: 1}]}\n"));
    cluster_.Run(2 * kSecond);
  }
  void Member(const std::string& name, const std::string& group) {
    Pod(name, StrCat("swell.dev/pod-group: ", group, ", swell.dev/pod-set: all"), 4);
  }
  // A group's pod holds all GPUs, and younger work waits for them.
  void RunOldWhileYoungWaits() {
    Group("old");
    Member("old-0", "old");
    ASSERT_TRUE(UntilRunning("old-0"));
    Pod("young", "", 4);
    cluster_.Run(kSecond);
  }
  std::string Phase(const std::string& pod) { return cluster_.PodPhase("default/" + pod); }
};

TEST_F(KeptRoomsTest, AGangComesBackBeforeYoungerJobs) {
  const std::vector<std::string> gang{"job-master-0", "job-worker-0", "job-worker-1",
                                      "job-worker-2"};
  cluster_.Create(PyTorchYaml{.workers = 3, .restart = "ExitCode"}.Text());
  std::map<std::string, std::string> old;
  for (const std::string& pod : gang) {
    ASSERT_TRUE(UntilRunning(pod));
    old[pod] = cluster_.PodUid("default/" + pod);
  }
  cluster_.Run(kSecond);  // times of creation are whole seconds
  for (int i = 0; i < 6; ++i) {
    cluster_.Create(PyTorchYaml{.name = StrCat("young-", i), .workers = 0}.Text());
  }
  cluster_.Run(5 * kSecond);
  // One after another, with cycles between, as agents do it.
  for (const std::string& pod : gang) EndWithNode(pod);
  EXPECT_TRUE(cluster_.Until([&] {
    return std::all_of(gang.begin(), gang.end(), [&](const std::string& pod) {
      return Phase(pod) == "Running" && cluster_.PodUid("default/" + pod) != old[pod];
    });
  }));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Phase(StrCat("young-", i, "-master-0")), "Pending");
}

TEST_F(KeptRoomsTest, ARoomIsKeptForAShortTime) {
  ASSERT_NO_FATAL_FAILURE(RunOldWhileYoungWaits());
  EndWithNode("old-0");
  cluster_.Run(5 * kSecond);
  EXPECT_EQ(Phase("young"), "Pending");
  ASSERT_TRUE(cluster_.Delete(kPods, "default/old-0").ok());
  cluster_.Run(3 * kSecond);
  EXPECT_EQ(Phase("young"), "Pending") << "the pod is gone, and its next one may be on its way";
  cluster_.Run(4 * kSecond);
  EXPECT_EQ(Phase("young"), "Running");
}

// Many controllers give each pod a name of its own.
TEST_F(KeptRoomsTest, APodOfAnotherNameTakesTheRoomOfItsGroup) {
  ASSERT_NO_FATAL_FAILURE(RunOldWhileYoungWaits());
  EndWithNode("old-0");
  cluster_.Run(kSecond);
  Member("old-x", "old");
  cluster_.Run(2 * kSecond);
  EXPECT_EQ(Phase("old-x"), "Running");
  EXPECT_EQ(Phase("young"), "Pending");
}

TEST_F(KeptRoomsTest, NothingIsKeptForAPodThatFailsByItself) {
  ASSERT_NO_FATAL_FAILURE(RunOldWhileYoungWaits());
  cluster_.agents->Exit("default/old-0", 1);
  cluster_.Run(2 * kSecond);
  EXPECT_EQ(Phase("young"), "Running");
}

}  // namespace
}  // namespace swell::scheduling
