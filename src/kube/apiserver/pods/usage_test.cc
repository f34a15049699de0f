// metrics.k8s.io over nodes that are played here.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kPodUsage[] = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
constexpr char kNodeUsage[] = "/apis/metrics.k8s.io/v1beta1/nodes";

std::string Used(int64_t nano_cores, int64_t bytes) {
  return StrCat(R"("cpu":{"time":"2026-01-01T00:00:10Z","usageNanoCores":)", nano_cores,
                R"(,"usageWindowSeconds":12.5},"memory":{"workingSetBytes":)", bytes, "}");
}

// A node whose pod `busy` has two containers.
class Kubelet final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    ++asked;
    EXPECT_EQ(request.path, "/stats/summary");
    if (silent) {
      held = sink;
      return nullptr;
    }
    api::RestResponse response;
    response.body.push_back(api::MakeChunk(StrCat(
        R"({"node":{"nodeName":"n1",)", Used(300'000'000, 3 << 20), R"(},"pods":[{"podRef":)",
        R"({"name":"busy","namespace":"default"},)", Used(300'000'000, 3 << 20),
        R"(,"containers":[{"name":"a",)", Used(200'000'000, 1 << 20), R"(},{"name":"b",)",
        Used(100'000'000, 2 << 20), "}]}]}")));
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  int asked = 0;
  bool silent = false;
  std::shared_ptr<api::RestSink> held;
};

class UsageTest : public ::testing::Test {
 protected:
  UsageTest() : server(MakeOptions()) {
    server.Boot();
    for (const char* node : {"n1", "n2"}) {
      server.Post("/api/v1/nodes", StrCat(R"({"metadata":{"name":")", node,
                                          R"(","labels":{"zone":")", node, R"("}}})"));
    }
    MakePod("busy", "n1", "Running");
    MakePod("new", "n1", "Running");  // nothing measured yet
    MakePod("lost", "n2", "Running");
    MakePod("over", "n1", "Succeeded");
    MakePod("waits", "", "Pending");
  }
  Options MakeOptions() {
    Options options;
    options.node_dialer =
        [this](const std::string& node) -> Result<std::shared_ptr<api::RestHandler>> {
      if (node == "n1") return std::shared_ptr<api::RestHandler>(kubelet);
      return Status(Code::kUnavailable, "no route");
    };
    return options;
  }
  void MakePod(const std::string& name, const std::string& node, const std::string& phase) {
    const std::string more = node.empty() ? "" : StrCat(R"("nodeName":")", node, "\"");
    const std::string labels = StrCat(R"({"app":")", name, "\"}");
    ASSERT_EQ(server.Post(kPods, PodJson(name, more, labels)).status, 201);
    ASSERT_EQ(server
                  .Merge(StrCat(kPods, "/", name, "/status"),
                         StrCat(R"({"status":{"phase":")", phase, "\"}}"))
                  .status,
              200);
  }
  static std::string Names(const Answer& list) {
    std::string names;
    for (const json::Value& item : json::GetArray(list.body, {"items"})) {
      names += StrCat(names.empty() ? "" : " ", json::GetString(item, {"metadata", "name"}));
    }
    return names;
  }
  std::shared_ptr<Kubelet> kubelet = std::make_shared<Kubelet>();
  TestServer server;
};

TEST_F(UsageTest, OfPodsIsWhatTheirNodesTell) {
  const Answer list = server.Get(kPodUsage);
  EXPECT_EQ(list.Str({"kind"}), "PodMetricsList");
  EXPECT_EQ(Names(list), "busy");
  EXPECT_EQ(kubelet->asked, 1) << "once, for all pods of the node";
  const Answer one = server.Get(StrCat(kPodUsage, "/busy"));
  EXPECT_EQ(one.status, 200);
  EXPECT_EQ(one.Str({"kind"}), "PodMetrics");
  EXPECT_EQ(one.Str({"timestamp"}), "2026-01-01T00:00:10Z");
  EXPECT_EQ(one.Str({"window"}), "12.5s");
  EXPECT_EQ(one.Str({"metadata", "labels", "app"}), "busy");
  const json::Array& containers = json::GetArray(one.body, {"containers"});
  ASSERT_EQ(containers.size(), 2U);
  EXPECT_EQ(json::Print(containers[0]),
            R"({"name":"a","usage":{"cpu":"200000000n","memory":"1024Ki"}})");
  EXPECT_EQ(json::GetString(containers[1], {"usage", "memory"}), "2048Ki");
}

TEST_F(UsageTest, OfNodesTooAndWhoCannotBeAskedIsLeftOut) {
  const Answer list = server.Get(kNodeUsage);
  EXPECT_EQ(Names(list), "n1");
  EXPECT_EQ(json::Print(*json::Find(server.Get(StrCat(kNodeUsage, "/n1")).body, {"usage"})),
            R"({"cpu":"300000000n","memory":"3072Ki"})");
  EXPECT_EQ(server.Get(StrCat(kNodeUsage, "/n2")).Message(),
            "nodemetrics.metrics.k8s.io \"n2\" not found");
  EXPECT_EQ(server.Get(StrCat(kPodUsage, "/lost")).Message(),
            "podmetrics.metrics.k8s.io \"default/lost\" not found");
  EXPECT_EQ(server.Get(StrCat(kPodUsage, "/nobody")).status, 404);
}

TEST_F(UsageTest, SelectorsAndNamespacesAndTables) {
  EXPECT_EQ(Names(server.Get(StrCat(kPodUsage, "?labelSelector=app%3Dbusy"))), "busy");
  EXPECT_EQ(Names(server.Get(StrCat(kPodUsage, "?labelSelector=app%3Dnew"))), "");
  EXPECT_EQ(Names(server.Get(StrCat(kPodUsage, "?fieldSelector=metadata.name%3Dnew"))), "");
  EXPECT_EQ(Names(server.Get("/apis/metrics.k8s.io/v1beta1/pods")), "busy");
  EXPECT_EQ(Names(server.Get("/apis/metrics.k8s.io/v1beta1/namespaces/other/pods")), "");
  EXPECT_EQ(Names(server.Get(StrCat(kNodeUsage, "?labelSelector=zone%3Dn1"))), "n1");
  const Answer table =
      server.Get(kPodUsage, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  const json::Array& rows = json::GetArray(table.body, {"rows"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(json::Print(*json::Find(rows[0], {"cells"})), R"(["busy","300m","3Mi","12.5s"])");
}

TEST_F(UsageTest, IsReadOnlyAndFound) {
  EXPECT_EQ(server.Post(kPodUsage, "{}").status, 405);
  EXPECT_EQ(server.Delete(StrCat(kPodUsage, "/busy")).status, 405);
  EXPECT_EQ(server.Get(StrCat(kPodUsage, "?watch=1")).status, 405);
  EXPECT_EQ(server.Get("/apis/metrics.k8s.io/v1beta1").Str({"groupVersion"}),
            "metrics.k8s.io/v1beta1");
  EXPECT_EQ(server.Get("/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")
                .Str({"spec", "group"}),
            "metrics.k8s.io");
  // A pod is still a pod.
  EXPECT_EQ(server.Get(StrCat(kPods, "/busy")).Str({"kind"}), "Pod");
}

TEST_F(UsageTest, ANodeThatDoesNotAnswerIsWaitedForFiveSeconds) {
  kubelet->silent = true;
  auto sink = std::make_shared<TestSink>();
  auto call = server.server->Handle(server.Request("GET", kPodUsage), sink);
  server.executor.Advance(std::chrono::milliseconds(4999));
  EXPECT_EQ(sink->answers, 0);
  server.executor.Advance(std::chrono::milliseconds(1));
  ASSERT_EQ(sink->answers, 1);
  EXPECT_EQ(sink->answer.status, 200);
  EXPECT_NE(sink->answer.BodyString().find(R"("items":[])"), std::string::npos);
}

}  // namespace
}  // namespace swell::apiserver
