// What commands show to people they also give to programs, as documents.
#include "cli/cli_test_util.h"
#include "json/value.h"
#include "kube/api/objects/progress.h"

namespace swell::cli {
namespace {

class ViewJsonTest : public CliTest {
 protected:
  ViewJsonTest() {
    MediumClass();
    EXPECT_EQ(SubmitMedium(), 0) << err_;
    Pod("master", 0, "Running");
    JobIs("Running");
  }
  json::Value Document(std::vector<std::string> words) {
    words.insert(words.end(), {"-o", "json"});
    EXPECT_EQ(Run(words), 0) << err_;
    auto document = json::Parse(out_);
    EXPECT_TRUE(document.ok()) << out_;
    return document.ok() ? *document : json::Value();
  }
};

TEST_F(ViewJsonTest, DescribeGivesTheViewAndTheObject) {
  const json::Value job = Document({"swell", "describe", "medium-job"});
  EXPECT_EQ(json::GetString(job, {"status"}), "Running");
  EXPECT_EQ(json::GetString(job, {"priority"}), "medium");
  EXPECT_EQ(json::GetInt(job, {"gpus"}), 8);
  EXPECT_EQ(json::GetInt(job, {"gpusHeld"}), 4);
  ASSERT_EQ(json::GetArray(job, {"pods"}).size(), 1u);
  EXPECT_EQ(json::GetString(json::GetArray(job, {"pods"})[0], {"node"}), "node-1");
  EXPECT_EQ(json::GetString(job, {"object", "metadata", "name"}), "medium-job");
  EXPECT_EQ(Run({"swell", "describe", "medium-job", "-o", "jsonpath={.object.metadata.name}"}), 0);
  EXPECT_EQ(out_, "medium-job");
  EXPECT_EQ(Run({"swell", "describe", "medium-job", "-o", "wide"}), 2);
  EXPECT_NE(err_.find("expected json, yaml or jsonpath=TEMPLATE"), std::string::npos) << err_;
}

TEST_F(ViewJsonTest, SeveralAreItemsAndSecretsKeepTheirValues) {
  Create(
      "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: "
      "{kubectl.kubernetes.io/last-applied-configuration: c2VjcmV0}}, data: {key: c2VjcmV0}}");
  const json::Value both = Document({"swell", "describe", "secret/s", "pod/medium-job-master-0"});
  ASSERT_EQ(json::GetArray(both, {"items"}).size(), 2u) << out_;
  EXPECT_EQ(json::GetString(json::GetArray(both, {"items"})[0], {"object", "data", "key"}),
            "6 bytes");
  EXPECT_EQ(out_.find("c2VjcmV0"), std::string::npos) << out_;
}

TEST_F(ViewJsonTest, EventsAndTablesOfUseToo) {
  Create(
      "{apiVersion: v1, kind: Event, metadata: {name: e}, involvedObject: {kind: Pod, name: "
      "medium-job-master-0, namespace: default}, type: Warning, reason: Slow, message: too slow, "
      "count: 3}");
  const json::Value events = Document({"swell", "events", "medium-job"});
  ASSERT_EQ(json::GetArray(events, {"events"}).size(), 1u) << out_;
  const json::Value& event = json::GetArray(events, {"events"})[0];
  EXPECT_EQ(json::GetString(event, {"reason"}), "Slow");
  EXPECT_EQ(json::GetInt(event, {"count"}), 3);
  const json::Value none = Document({"swell", "events", "--types", "Normal"});
  EXPECT_TRUE(json::GetArray(none, {"events"}).empty()) << out_;

  const json::Value jobs = Document({"swell", "top", "job"});
  ASSERT_EQ(json::GetArray(jobs, {"jobs"}).size(), 1u) << out_;
  EXPECT_EQ(json::Print(*json::Find(json::GetArray(jobs, {"jobs"})[0], {"nodes"})),
            R"(["node-1"])");
  EXPECT_EQ(json::GetInt(json::GetArray(jobs, {"jobs"})[0], {"gpusHeld"}), 4);

  Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: team}, spec: "
      "{resources: {gpu: {quota: 2}}}}");
  const json::Value projects = Document({"swell", "top", "project"});
  ASSERT_EQ(json::GetArray(projects, {"projects"}).size(), 1u) << out_;
  EXPECT_EQ(json::GetInt(json::GetArray(projects, {"projects"})[0], {"gpu", "quota"}), 2);
}

TEST_F(ViewJsonTest, HealthAndStacksGiveTheRanks) {
  api::RankProgress rank;
  rank.world = 1;
  rank.phase = "step";
  rank.step = 7;
  rank.changed = server_.executor.Now();
  rank.pid = 42;
  rank.stack = "File \"train.py\", line 12 in step";
  json::Value patch = json::Object{};
  json::Set(patch, {"metadata", "annotations", api::keys::kProgress},
            json::Print(api::RanksToJson({rank})));
  const std::string pod = "/api/v1/namespaces/default/pods/medium-job-master-0";
  ASSERT_EQ(
      server_
          .Send(server_.Request("PATCH", pod, json::Print(patch), "application/merge-patch+json"))
          .status,
      200);
  const json::Value health = Document({"swell", "health", "medium-job"});
  ASSERT_EQ(json::GetArray(health, {"ranks"}).size(), 1u) << out_;
  EXPECT_EQ(json::GetInt(json::GetArray(health, {"ranks"})[0], {"step"}), 7);
  EXPECT_EQ(json::GetString(json::GetArray(health, {"ranks"})[0], {"state"}), "moves");

  Status(pod, R"({"status":{"phase":"Failed"}})");
  const json::Value stacks = Document({"swell", "stacks", "medium-job"});
  ASSERT_EQ(json::GetArray(stacks, {"ranks"}).size(), 1u) << out_;
  EXPECT_TRUE(json::GetBool(json::GetArray(stacks, {"ranks"})[0], {"ended"}));
  EXPECT_EQ(Run({"swell", "stacks", "medium-job", "--rank", "3", "-o", "json"}), 1);
}

}  // namespace
}  // namespace swell::cli
