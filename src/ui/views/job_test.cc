// The page of a job: how its attempts ended, what is marked in its timeline, and that of a server.
#include <gtest/gtest.h>

#include "ui/ui_test_util.h"

namespace swell::ui {
namespace {

class JobPageTest : public PagesTest {
 protected:
  JobPageTest() {
    Project("vision");
    Researcher("jane", "vision");
    Node("node-1", 4);
    Job("vision", "see");
    Pod("vision", "see", 0, "node-1");
    Settle();
  }

  json::Value PageOf(const std::string& name) {
    Settle();
    return See("job", "admin-token", {{"namespace", "vision"}, {"name", name}});
  }
};

TEST_F(JobPageTest, AnAttemptThatASuspensionEndedSaysSo) {
  Job("vision", "hear");
  server_.executor.Advance(std::chrono::minutes(5));
  const auto ends = [this] {
    const json::Value data = PageOf("hear");
    std::string text;
    for (const json::Value& one : json::GetArray(data, {"attempts"})) {
      text += StrCat(json::GetString(one, {"reason"}, "null"), "; ");
    }
    return text;
  };
  const std::string path = "/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/hear";
  // Worker 0 failed at 00:01, was made anew, and ran on until the job was suspended.
  const std::string first =
      R"({"member":"hear-worker-0","uid":"a","attempt":1,"result":"Failed","message":"It failed",)"
      R"("started":"2026-01-01T00:00:02Z","ended":"2026-01-01T00:01:00Z"},)"
      R"({"member":"hear-worker-1","uid":"b","attempt":1,"result":"Stopped",)"
      R"("started":"2026-01-01T00:00:02Z","ended":"2026-01-01T00:03:00Z"},)";
  const auto second = [](std::string_view result) {
    return StrCat(R"({"member":"hear-worker-0","uid":"c","attempt":2,"result":")", result,
                  R"(","started":"2026-01-01T00:01:02Z","ended":"2026-01-01T00:03:00Z"})");
  };
  const auto suspended = [](bool now) {
    return StrCat(R"(,"conditions":[{"type":"Suspended","status":")", now ? "True" : "False",
                  R"(","lastTransitionTime":"2026-01-01T00:02:58Z"}])");
  };
  Status(path, StrCat(R"({"status":{"attempts":[)", first, second("Stopped"), "]", suspended(true),
                      "}}"));
  EXPECT_EQ(ends(), "Suspended; ");
  // After it was resumed, only its attempts know.
  Status(path, StrCat(R"({"status":{"attempts":[)", first, second("Suspended"), "]",
                      suspended(false), "}}"));
  EXPECT_EQ(ends(), "Suspended; ");
  // It failed in the seconds after it had begun again: that is another attempt's end.
  Status(path, StrCat(R"({"status":{"attempts":[)", first, second("Suspended"),
                      R"(,{"member":"hear-worker-1","uid":"d","attempt":2,"result":"Failed",)",
                      R"("message":"It failed at once","started":"2026-01-01T00:03:02Z",)",
                      R"("ended":"2026-01-01T00:03:05Z"}]}})"));
  EXPECT_EQ(ends(), "Suspended; It failed at once; ");
}

TEST_F(JobPageTest, ASuspensionIsAMarkWhateverTheKindOfTheJob) {
  const json::Value job = PageOf("see");
  Create("/api/v1/namespaces/vision/events",
         StrCat(R"({"metadata":{"name":"e"},"reason":"PyTorchJobSuspended","message":"m",)",
                R"("involvedObject":{"kind":"PyTorchJob","namespace":"vision","name":"see",)",
                R"("uid":")", json::GetString(job, {"summary", "uid"}), R"("}})"));
  const json::Value data = PageOf("see");
  const json::Array& marks = json::GetArray(data, {"marks"});
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(json::GetString(marks[0], {"kind"}), "Suspended");
}

TEST_F(JobPageTest, AServerIsAWorkloadWithItsPodsAndItsAddress) {
  const auto deploy = [this](const std::string& name, const std::string& labels, int replicas) {
    Create("/apis/apps/v1/namespaces/vision/deployments",
           StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels,
                  R"(},"spec":{"replicas":)", replicas, R"(,"selector":{"matchLabels":{"app":")",
                  name, R"("}},"template":{"metadata":{"labels":{"app":")", name,
                  R"("}},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":)",
                  R"({"nvidia.com/gpu":"1"}}}]}}}})"));
  };
  deploy("bert-v1", R"({"servingName":"bert","servingType":"custom-serving"})", 2);
  deploy("other", "{}", 1);
  Create("/api/v1/namespaces/vision/pods",
         R"({"metadata":{"name":"bert-v1-x","labels":{"app":"bert-v1","pod-template-hash":"5f"},)"
         R"("ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"bert-v1-5f",)"
         R"("controller":true,"uid":"r"}]},"spec":{"nodeName":"node-1","containers":[{"name":"c",)"
         R"("image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})");
  Status("/api/v1/namespaces/vision/pods/bert-v1-x", R"({"status":{"phase":"Running"}})");
  const auto serve = [this](const std::string& name, const std::string& spec) {
    Create("/api/v1/namespaces/vision/services",
           StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{)", spec,
                  R"(,"ports":[{"name":"http","port":80}]}})"));
  };
  serve("bert", R"("clusterIP":"10.96.0.9","selector":{"app":"bert-v1"})");
  serve("names-only", R"("clusterIP":"None","selector":{"app":"bert-v1"})");
  serve("elsewhere", R"("clusterIP":"10.96.0.10","selector":{"app":"x"})");
  Status("/apis/apps/v1/namespaces/vision/deployments/bert-v1",
         R"({"status":{"replicas":2,"availableReplicas":1}})");
  Settle();
  EXPECT_EQ(Names("workloads", "admin-token"), "see bert-v1");
  EXPECT_EQ(Names("workloads", "jane-token"), "see") << "their role lists no Deployments";
  EXPECT_EQ(json::GetInt(See("overview", "admin-token"), {"jobs", "running"}), 2);
  const Params params{{"namespace", "vision"}, {"name", "bert-v1"}, {"kind", "Deployment"}};
  const json::Value page = See("job", "admin-token", params);
  EXPECT_EQ(json::GetString(page, {"sentence"}), "The server runs with 1 of 2 members on 1 GPU.");
  EXPECT_EQ(json::GetString(page, {"summary", "status"}), "Running");
  EXPECT_EQ(json::GetString(page, {"summary", "workload"}), "inference");
  EXPECT_TRUE(json::Find(page, {"summary", "waitSeconds"})->is_null()) << "its first pods are gone";
  EXPECT_EQ(json::GetArray(page, {"members"}).size(), 1U);
  const json::Array& lanes = json::GetArray(page, {"timeline"});
  ASSERT_EQ(lanes.size(), 2U) << json::Print(page);
  EXPECT_EQ(json::GetString(lanes[0], {"member"}), "bert-v1-x");
  EXPECT_EQ(json::GetString(lanes[0], {"state"}), "running");
  EXPECT_TRUE(json::GetArray(page, {"attempts"}).empty()) << "pods of servers come and go";
  EXPECT_TRUE(json::Find(page, {"heldGpuSeconds"})->is_null()) << "nobody keeps its account";
  EXPECT_FALSE(json::GetBool(page, {"actions", "suspend"}));
  EXPECT_TRUE(json::GetBool(page, {"actions", "scale"}));
  const json::Array& addresses = json::GetArray(page, {"addresses"});
  ASSERT_EQ(addresses.size(), 1U) << json::Print(page);
  EXPECT_EQ(json::GetString(addresses[0], {"service"}), "bert");
  EXPECT_EQ(json::GetString(addresses[0], {"ip"}), "10.96.0.9");
  EXPECT_EQ(json::Print(*json::Find(addresses[0], {"ports"})),
            R"([{"name":"http","port":80,"nodePort":null}])");
}

}  // namespace
}  // namespace swell::ui
