// What a user is told of a job that no node can hold.
#include "cli/jobs/too_large.h"

#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

using TooLargeTest = CliTest;

TEST_F(TooLargeTest, AUserWhoSubmitsWhatNoNodeHoldsIsTold) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1",
         R"({"status":{"allocatable":{"nvidia.com/gpu":"4","cpu":"16","memory":"64Gi"}}})");
  const auto submit = [this](const char* name, std::vector<std::string> flags) {
    std::vector<std::string> words{"swell", "submit", name, "--image", "img"};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(Run(words), 0) << err_;
    return err_;
  };
  EXPECT_EQ(submit("fits", {"--gpus", "4", "--cpu", "16", "--memory", "64Gi"}), "");
  EXPECT_EQ(
      submit("many", {"--gpus", "5"}),
      "swell: warning: no node has 5 GPUs; the largest has 4 GPUs. The job waits until such a "
      "node is added\n");
  EXPECT_EQ(submit("gang", {"--gpus", "3", "--workers", "2"}),
            "swell: warning: the job needs 2 pods of 3 GPUs; the nodes hold 1 of them when they "
            "are empty. It waits until nodes are added\n");
  EXPECT_EQ(submit("small", {"--gpus", "2", "--workers", "2"}), "");
  EXPECT_EQ(submit("hog", {"--memory", "65Gi"}),
            "swell: warning: no node has 65Gi of memory; the largest has 64Gi of memory. The job "
            "waits until such a node is added\n");
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-0, labels: {gpu: l4, zone: a}}}");
  EXPECT_EQ(submit("typed", {"--selector", "gpu=a100"}),
            "swell: warning: no node has the label gpu=a100; there is gpu=l4. The job waits until "
            "such a node is added\n");
  EXPECT_EQ(submit("mistyped", {"--selector", "zoen=a"}),
            "swell: warning: no node has the label zoen=a; did you mean zone? The job waits until "
            "such a node is added\n");
  EXPECT_EQ(submit("chosen", {"--selector", "gpu=l4", "--gpus", "1"}),
            "swell: warning: no node with gpu=l4 has 1 GPU; the largest has 0 GPUs. The job waits "
            "until such a node is added\n");
  // The large processor and the large memory are in two machines.
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-2}}");
  Status("/api/v1/nodes/node-2", R"({"status":{"allocatable":{"cpu":"64","memory":"256Gi"}}})");
  EXPECT_EQ(submit("split", {"--gpus", "1", "--cpu", "32"}),
            "swell: warning: no node has all that a pod needs: 1 GPU, 32 CPUs. The job waits until "
            "such a node is added\n");
  for (const char* manifest :
       {"{metadata: {name: org}, spec: {resources: {gpu: {quota: 2, limit: 3}}}}",
        "{metadata: {name: team}, spec: {parent: org, resources: {gpu: {quota: 1}}}}"}) {
    Create(StrCat("{apiVersion: swell.dev/v1, kind: Project, ", manifest + 1));
  }
  Create("{apiVersion: v1, kind: Namespace, metadata: {name: team}}");
  EXPECT_EQ(submit("greedy", {"-n", "team", "--gpus", "4"}),
            "swell: warning: the job needs 4 GPUs, and the limit of project org is 3. It waits "
            "until the limit is raised\n");
  EXPECT_EQ(submit("modest", {"-n", "team", "--gpus", "3"}), "");
  for (const char* kind : {"pytorch", "mpi", "tf"}) {
    EXPECT_EQ(Run({"arena", "submit", kind, "--name", StrCat("ar-", kind), "--gpus", "9", "--image",
                   "i", "x"}),
              0)
        << err_;
    EXPECT_NE(StrCat(out_, err_).find("no node has 9 GPUs; the largest has 4 GPUs"),
              std::string::npos)
        << kind << out_ << err_;
  }
}

TEST_F(TooLargeTest, AMisspeltImageIsAnsweredWithTheNameThatWasMeant) {
  env_.what_if.meant_image = [](std::string_view url, const std::string& image) {
    EXPECT_EQ(url, "https://test:6443");
    return std::string(image == "pytroch/pytorch" ? "pytorch/pytorch" : "");
  };
  const std::string warning =
      "no image named pytroch/pytorch is known here; did you mean pytorch/pytorch? It is looked "
      "for at its registry\n";
  ASSERT_EQ(Run({"swell", "submit", "a", "--image", "pytroch/pytorch", "--", "run"}), 0) << err_;
  EXPECT_EQ(err_, "swell: warning: " + warning);
  ASSERT_EQ(Run({"swell", "submit", "b", "--image", "pytorch/pytorch", "--", "run"}), 0) << err_;
  EXPECT_EQ(err_, "");
  ASSERT_EQ(Run({"arena", "submit", "pytorch", "--name", "c", "--image", "pytroch/pytorch", "x"}),
            0)
      << err_;
  EXPECT_NE(err_.find("WARN[0000] " + warning), std::string::npos) << err_;
}

TEST_F(TooLargeTest, AClaimThatDoesNotExistIsTold) {
  Create(
      "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: "
      "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}");
  const std::string warning =
      "there is no volume claim \"dta\" in the namespace default; did you mean data? The job waits "
      "until it is created\n";
  ASSERT_EQ(Run({"swell", "submit", "a", "--image", "i", "-v", "dta:/data", "--", "run"}), 0)
      << err_;
  EXPECT_EQ(err_, "swell: warning: " + warning);
  ASSERT_EQ(Run({"swell", "submit", "b", "--image", "i", "-v", "data:/data", "--", "run"}), 0)
      << err_;
  EXPECT_EQ(err_, "");
  ASSERT_EQ(
      Run({"arena", "submit", "tf", "--name", "c", "--image", "i", "--data", "dta:/data", "x"}), 0)
      << err_;
  EXPECT_NE(err_.find("WARN[0000] " + warning), std::string::npos) << err_;
}

}  // namespace
}  // namespace swell::cli
