// What runai list shows of each type.
#include "cli/runai/runai_test_util.h"

namespace swell::cli {
namespace {

class RunaiListTest : public RunaiTest {};

TEST_F(RunaiListTest, VersionTwosNounsShowTheirOwnClass) {
  Cluster();
  ASSERT_EQ(Run({"runai", "training", "standard", "submit", "t", "-p", "project-a", "-i", "img"}),
            0)
      << err_;
  ASSERT_EQ(Run({"runai", "workspace", "submit", "w", "-p", "project-a", "-i", "img"}), 0) << err_;
  auto names = [&](const std::string& noun) {
    EXPECT_EQ(Run({"runai", noun, "list", "-p", "project-a", "-o", "name"}), 0) << err_;
    return out_;
  };
  EXPECT_EQ(names("training"), "t\n");
  EXPECT_EQ(names("workspace"), "w\n");
  EXPECT_EQ(names("inference"), "");
  EXPECT_EQ(names("workload"), "t\nw\n");
  ASSERT_EQ(Run({"runai", "workload", "list", "-p", "project-a", "-o", "name", "--type",
                 "Workspace", "-q"}),
            0)
      << err_;
  EXPECT_EQ(out_, "w\n");
  EXPECT_EQ(Run({"runai", "workload", "list", "-p", "project-a", "--type", "x"}), 2);
  EXPECT_EQ(
      Run({"runai", "workload", "describe", "w", "--type", "workspace", "--debug", "--verbose"}), 0)
      << err_;
  ASSERT_EQ(Run({"runai", "list", "departments", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "");
  ASSERT_EQ(Run({"runai", "list", "projects", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "project-a\nproject-b\n");
  for (const char* noun : {"nodes", "departments"}) {
    ASSERT_EQ(Run({"runai", noun, "list", "-o", "name"}), 0) << err_;
    EXPECT_EQ(out_, noun == std::string("nodes") ? "node-1\n" : "");
  }
  ASSERT_EQ(Run({"swell", "list", "-n", "project-a", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find("project-a"), std::string::npos) << out_;
}

TEST_F(RunaiListTest, TheTypesOfTrainingListTheirOwnWorkloads) {
  Cluster();
  ASSERT_EQ(Run({"runai", "training", "submit", "t", "-p", "project-a", "-i", "img"}), 0) << err_;
  ASSERT_EQ(Run({"runai", "workspace", "submit", "w", "-p", "project-a", "-i", "img"}), 0) << err_;
  ASSERT_EQ(Run({"runai", "training", "mpi", "submit", "m", "-p", "project-a", "-i", "img"}), 0)
      << err_;
  ASSERT_EQ(Run({"runai", "submit", "c", "--completions", "2", "-p", "project-a", "-i", "img"}), 0)
      << err_;
  auto part = [&](const std::string& type) {
    EXPECT_EQ(Run({"runai", "training", type, "list", "-p", "project-a", "-o", "name"}), 0) << err_;
    const std::string listed = out_;
    EXPECT_EQ(Run({"runai", "workload", "list", "-p", "project-a", "-o", "name", "--type", type}),
              0)
        << err_;
    EXPECT_EQ(out_, listed) << type;
    return listed;
  };
  EXPECT_EQ(part("standard"), "c\nt\n");
  EXPECT_EQ(part("distributed"), "m\n");
  EXPECT_EQ(part("mpi"), "m\n");
  EXPECT_EQ(part("pytorch"), "");
}

TEST_F(RunaiListTest, AProjectIsSetByItsFlagToo) {
  Cluster();
  for (const std::vector<std::string>& name :
       {std::vector<std::string>{"project-b"}, {"--project", "project-b"}, {"--name=project-b"}}) {
    std::vector<std::string> words{"runai", "project", "set"};
    words.insert(words.end(), name.begin(), name.end());
    EXPECT_EQ(Run(words), 1) << out_;
    EXPECT_NE(err_.find("there is no kubeconfig to store it in"), std::string::npos) << err_;
  }
}

TEST_F(RunaiListTest, TheConfigurationIsPrintedInTheFormThatIsAskedFor) {
  Cluster();
  for (const char* name : {"view", "describe", "generate"}) {
    ASSERT_EQ(Run({"runai", "config", name, "--json", "-p", "project-a", "-d"}), 0) << err_;
    EXPECT_EQ(json::GetString(json::Parse(out_).value(), {"project"}), "project-a") << out_;
  }
}

TEST_F(RunaiListTest, ClaimsOfAProjectAreListed) {
  Cluster();
  Create(
      "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: project-a, name: data}, "
      "spec: {accessModes: [ReadWriteOnce, ReadOnlyMany], storageClassName: fast, resources: "
      "{requests: {storage: 10Gi}}}}");
  ASSERT_EQ(Run({"runai", "pvc", "list", "-p", "project-a"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME  STATUS   SIZE  ACCESS MODE                 STORAGE CLASS  VOLUME  AGE\n"
            "data  Pending  10Gi  ReadWriteOnce,ReadOnlyMany  fast           -       0s\n");
  ASSERT_EQ(Run({"runai", "pvc", "list", "-p", "project-a", "--json"}), 0) << err_;
  EXPECT_TRUE(json::Parse(out_).ok()) << out_;
  ASSERT_EQ(Run({"runai", "pvc", "list", "-p", "project-b", "--no-headers"}), 0) << err_;
  EXPECT_EQ(out_, "");
}

TEST_F(RunaiListTest, NodesAndProjectsAreDescribedByTheirNounsToo) {
  Cluster();
  for (const auto& [noun, name] :
       {std::pair("node", "node-1"), std::pair("project", "project-b")}) {
    ASSERT_EQ(Run({"runai", "describe", noun, name}), 0) << err_;
    const std::string described = out_;
    ASSERT_EQ(Run({"runai", noun, "describe", name}), 0) << err_;
    EXPECT_EQ(out_, described);
  }
}

TEST_F(RunaiListTest, ManifestsOfRunaiAreListedBesideWhatItsCommandsMake) {
  Cluster();
  for (const char* kind : {"TrainingWorkload", "InteractiveWorkload"}) {
    Create(StrCat("{apiVersion: run.ai/v2alpha1, kind: ", kind, ", metadata: {namespace: ",
                  "project-a, name: ", ToLower(kind), "}, spec: {image: {value: img}}}"));
  }
  const auto listed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "runai");
    words.insert(words.end(), {"list", "-p", "project-a", "-o", "name"});
    EXPECT_EQ(Run(words), 0) << err_;
    return out_;
  };
  Create(
      "{apiVersion: run.ai/v2alpha1, kind: DistributedWorkload, metadata: {namespace: project-a, "
      "name: d}, spec: {image: {value: img}, jobType: XGBoostJob, workers: {value: 3}}}");
  Create(
      "{apiVersion: run.ai/v2alpha1, kind: InferenceWorkload, metadata: {namespace: project-a, "
      "name: i}, spec: {image: {value: img}, minScale: {value: 2}, ports: {items: {w: {value: "
      "{container: 80}}}}}}");
  EXPECT_EQ(listed({"training", "standard"}), "trainingworkload\n");
  EXPECT_EQ(listed({"training", "distributed"}), "d\n");
  EXPECT_EQ(listed({"training", "xgboost"}), "d\n");
  EXPECT_EQ(listed({"training", "pytorch"}), "");
  EXPECT_EQ(listed({"inference"}), "i\n");
  ASSERT_EQ(Run({"runai", "top", "job", "-p", "project-a"}), 0) << err_;
  EXPECT_NE(out_.find("0/4"), std::string::npos) << out_;
  EXPECT_EQ(listed({"workspace"}), "interactiveworkload\n");
  ASSERT_EQ(Run({"runai", "training", "suspend", "trainingworkload", "-p", "project-a"}), 0)
      << err_;
  const auto answer = server_.Send(server_.Request(
      "GET", "/apis/run.ai/v2alpha1/namespaces/project-a/trainingworkloads/trainingworkload"));
  EXPECT_NE(answer.text.find(R"("suspend":true)"), std::string::npos) << answer.text;
  EXPECT_EQ(Run({"runai", "workload", "describe", "trainingworkload", "-p", "project-a",
                 "--framework", "standard"}),
            0)
      << err_;
  EXPECT_NE(out_.find("TYPE: Train"), std::string::npos) << out_;
  EXPECT_NE(out_.find("Priority: train"), std::string::npos) << out_;
}

}  // namespace
}  // namespace swell::cli
