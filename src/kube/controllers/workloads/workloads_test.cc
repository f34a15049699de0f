// The controllers of workloads on a whole cluster in virtual time.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kDaemonSets;
using client::resources::kDeployments;
using client::resources::kPods;
using client::resources::kReplicaSets;
using client::resources::kStatefulSets;
using manager::TestCluster;

constexpr char kWeb[] = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {kubernetes.io/change-cause: first}}
spec:
  replicas: 4
  progressDeadlineSeconds: 60
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: swell, containers: [{name: c, image: 'web:1'}]}
)";

class WorkloadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) cluster.AddNode(StrCat("n", i), 0);
    cluster.StartManager();
  }
  int64_t Status(const char* field) {
    return cluster.Int(kDeployments, "default/web", {"status", field});
  }
  bool Complete() {
    const json::SharedValue web = cluster.Get(kDeployments, "default/web");
    return web &&
           cluster.Reason(kDeployments, "default/web", "Progressing") == "NewReplicaSetAvailable" &&
           json::GetInt(*web, {"status", "observedGeneration"}) ==
               json::GetInt(*web, {"metadata", "generation"}) &&
           Status("updatedReplicas") == json::GetInt(*web, {"spec", "replicas"}) &&
           Status("replicas") == Status("updatedReplicas") &&
           Status("availableReplicas") == Status("updatedReplicas");
  }
  std::string SetWithImage(std::string_view image) {
    for (const json::SharedValue& set : cluster.List(kReplicaSets)) {
      for (const json::Value& container :
           json::GetArray(*set, {"spec", "template", "spec", "containers"})) {
        if (json::GetString(container, {"image"}) == image) return api::KeyOf(*set);
      }
    }
    return "";
  }
  swell::Status SetImage(std::string_view image) {
    return cluster.Patch(
        kDeployments, "default/web",
        StrCat("spec: {template: {spec: {containers: [{name: c, image: '", image, "'}]}}}"));
  }
  int ReadyPods() {
    int ready = 0;
    for (const json::SharedValue& pod : cluster.List(kPods)) {
      if (!api::IsDeleting(*pod) && api::ConditionIsTrue(*pod, "Ready")) ++ready;
    }
    return ready;
  }
  TestCluster cluster;
};

TEST_F(WorkloadsTest, ADeploymentRunsItsPods) {
  cluster.Create(kWeb);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  EXPECT_EQ(cluster.Pods("Running"), 4);
  const std::string set = SetWithImage("web:1");
  EXPECT_EQ(cluster.Int(kReplicaSets, set, {"status", "availableReplicas"}), 4);
  const json::SharedValue web = cluster.Get(kDeployments, "default/web");
  EXPECT_EQ(api::Annotation(*web, "deployment.kubernetes.io/revision"), "1");
  EXPECT_TRUE(cluster.Condition(kDeployments, "default/web", "Available"));
  EXPECT_EQ(cluster.Events("ScalingReplicaSet", "web"), 1);
  EXPECT_EQ(cluster.Events("SuccessfulCreate"), 4);
}

// Answers the first creation of a pod with success, but drops the pod.
class PodDroppingServer final : public api::RestHandler {
 public:
  explicit PodDroppingServer(std::shared_ptr<api::RestHandler> server)
      : server_(std::move(server)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (dropped || request.method != "POST" || !request.path.ends_with("/pods")) {
      return server_->Handle(std::move(request), std::move(sink));
    }
    dropped = true;
    api::RestResponse response;
    response.status = 201;
    response.body.push_back(api::MakeChunk(std::move(request.body)));
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  api::HandlerCapabilities capabilities() override { return server_->capabilities(); }

  bool dropped = false;

 private:
  std::shared_ptr<api::RestHandler> server_;
};

void ExpectAnotherPodAfterTheTimeout(std::string_view workload) {
  TestCluster cluster;
  cluster.AddNode("n1", 0);
  const auto server = std::make_shared<PodDroppingServer>(cluster.server);
  cluster.between = server;
  cluster.StartManager();
  cluster.Create(workload);
  const auto runs = [&cluster] { return cluster.Pods("Running") == 1; };
  EXPECT_FALSE(cluster.Until(runs, std::chrono::minutes(4)));
  EXPECT_TRUE(server->dropped);
  EXPECT_TRUE(cluster.Until(runs, std::chrono::minutes(2)));
}

TEST(Expectations, AReplicaSetStopsWaitingForAPodThatNeverAppears) {
  ExpectAnotherPodAfterTheTimeout(R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: swell, containers: [{name: c, image: 'web:1'}]}
)");
}

TEST(Expectations, ADaemonSetStopsWaitingForAPodThatNeverAppears) {
  ExpectAnotherPodAfterTheTimeout(R"(
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: swell, containers: [{name: c, image: 'web:1'}]}
)");
}

TEST_F(WorkloadsTest, ReplacesPodsThatGo) {
  cluster.Create(kWeb);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  const auto pods = cluster.List(kPods);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(cluster.Delete(kPods, api::KeyOf(*pods[i])).ok());
  }
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 4 && Complete(); }));
  // Exactly as many as went, and not one more for having looked at an old state.
  EXPECT_EQ(cluster.Events("SuccessfulCreate"), 6);
}

TEST_F(WorkloadsTest, RollsOverWithoutFallingBelowWhatMustBeThere) {
  cluster.Create(kWeb);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  ASSERT_TRUE(SetImage("web:2").ok());
  int least = 4;
  int64_t most = 0;
  ASSERT_TRUE(cluster.Until([&] {
    least = std::min(least, ReadyPods());
    most = std::max<int64_t>(most, Status("replicas"));
    return !SetWithImage("web:2").empty() && Complete();
  }));
  EXPECT_GE(least, 3);  // maxUnavailable 25 % of 4
  EXPECT_LE(most, 5);   // maxSurge
  EXPECT_EQ(cluster.Int(kReplicaSets, SetWithImage("web:1"), {"spec", "replicas"}), 0);
  const json::SharedValue fresh = cluster.Get(kReplicaSets, SetWithImage("web:2"));
  EXPECT_EQ(api::Annotation(*fresh, "deployment.kubernetes.io/revision"), "2");
  EXPECT_EQ(api::Annotation(*fresh, "kubernetes.io/change-cause"), "first");
}

TEST_F(WorkloadsTest, GoingBackTakesTheOldReplicaSetUnderANewRevision) {
  cluster.Create(kWeb);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  ASSERT_TRUE(SetImage("web:2").ok());
  ASSERT_TRUE(cluster.Until([&] { return !SetWithImage("web:2").empty() && Complete(); }));
  ASSERT_TRUE(SetImage("web:1").ok());
  ASSERT_TRUE(cluster.Until([&] {
    return cluster.Int(kReplicaSets, SetWithImage("web:1"), {"spec", "replicas"}) == 4 &&
           Complete();
  }));
  EXPECT_EQ(cluster.List(kReplicaSets).size(), 2U);
  const json::SharedValue back = cluster.Get(kReplicaSets, SetWithImage("web:1"));
  EXPECT_EQ(api::Annotation(*back, "deployment.kubernetes.io/revision"), "3");
  EXPECT_EQ(api::Annotation(*back, "deployment.kubernetes.io/revision-history"), "1");
}

TEST_F(WorkloadsTest, ScalesUpAndDown) {
  cluster.Create(kWeb);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  ASSERT_TRUE(cluster.Patch(kDeployments, "default/web", "spec: {replicas: 9}").ok());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 9 && Complete(); }));
  ASSERT_TRUE(cluster.Patch(kDeployments, "default/web", "spec: {replicas: 2}").ok());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("") == 2 && Complete(); }));
  EXPECT_EQ(cluster.List(kReplicaSets).size(), 1U);
  EXPECT_EQ(cluster.Events("SuccessfulDelete"), 7);
}

TEST_F(WorkloadsTest, PausedItScalesButDoesNotRoll) {
  cluster.Create(kWeb);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  ASSERT_TRUE(cluster.Patch(kDeployments, "default/web", "spec: {paused: true}").ok());
  ASSERT_TRUE(SetImage("web:2").ok());
  cluster.Run(std::chrono::seconds(10));
  EXPECT_EQ(SetWithImage("web:2"), "");
  EXPECT_EQ(cluster.Reason(kDeployments, "default/web", "Progressing"), "DeploymentPaused");
  ASSERT_TRUE(cluster.Patch(kDeployments, "default/web", "spec: {replicas: 6}").ok());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 6; }));
  ASSERT_TRUE(cluster.Patch(kDeployments, "default/web", "spec: {paused: null}").ok());
  ASSERT_TRUE(cluster.Until([&] { return !SetWithImage("web:2").empty() && Complete(); }));
}

TEST_F(WorkloadsTest, SaysWhenItGetsNoFurther) {
  cluster.Create(kWeb);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  for (int i = 0; i < 3; ++i) cluster.agents->Kill(StrCat("n", i));
  ASSERT_TRUE(SetImage("web:2").ok());
  ASSERT_TRUE(cluster.Until(
      [&] {
        return cluster.Reason(kDeployments, "default/web", "Progressing") ==
               "ProgressDeadlineExceeded";
      },
      std::chrono::seconds(120)));
}

TEST_F(WorkloadsTest, RecreateLetsTheLastOldPodGoFirst) {
  std::string yaml = kWeb;
  yaml.replace(yaml.find("  replicas: 4"), 13, "  strategy: {type: Recreate}\n  replicas: 4");
  cluster.Create(yaml);
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  ASSERT_TRUE(SetImage("web:2").ok());
  bool mixed = false;
  ASSERT_TRUE(cluster.Until([&] {
    std::set<std::string> images;
    for (const json::SharedValue& pod : cluster.List(kPods)) {
      images.emplace(json::GetString(json::GetArray(*pod, {"spec", "containers"})[0], {"image"}));
    }
    mixed = mixed || images.size() > 1;
    return !SetWithImage("web:2").empty() && Complete();
  }));
  EXPECT_FALSE(mixed);
}

TEST_F(WorkloadsTest, KeepsAsMuchHistoryAsAskedFor) {
  std::string yaml = kWeb;
  yaml.replace(yaml.find("  replicas: 4"), 13, "  revisionHistoryLimit: 2\n  replicas: 1");
  cluster.Create(yaml);
  for (int i = 2; i < 7; ++i) {
    ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
    const std::string image = StrCat("web:", i);
    ASSERT_TRUE(SetImage(image).ok());
    ASSERT_TRUE(cluster.Until([&] { return !SetWithImage(image).empty() && Complete(); }));
  }
  ASSERT_TRUE(cluster.Until([&] { return cluster.List(kReplicaSets).size() == 3; }));
  EXPECT_EQ(SetWithImage("web:3"), "");
  EXPECT_NE(SetWithImage("web:4"), "");
}

TEST_F(WorkloadsTest, AdoptsWhatItSelectsAndReleasesWhatItDoesNot) {
  cluster.Create(R"(
apiVersion: v1
kind: Pod
metadata: {name: orphan, labels: {app: web}}
spec: {schedulerName: swell, containers: [{name: c, image: 'web:0'}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: swell, containers: [{name: c, image: 'web:1'}]}
)");
  ASSERT_TRUE(cluster.Until([&] {
    return cluster.Int(kReplicaSets, "default/web", {"status", "readyReplicas"}) == 2;
  }));
  EXPECT_EQ(cluster.Pods(""), 2);
  const json::SharedValue adopted = cluster.Get(kPods, "default/orphan");
  ASSERT_TRUE(adopted && api::ControllerOf(*adopted));
  EXPECT_EQ(api::ControllerOf(*adopted)->name, "web");
  ASSERT_TRUE(cluster.Patch(kPods, "default/orphan", "metadata: {labels: {app: other}}").ok());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("Running") == 3; }));
  ASSERT_TRUE(
      cluster.Until([&] { return !api::ControllerOf(*cluster.Get(kPods, "default/orphan")); }));
}

TEST_F(WorkloadsTest, ControllersCanBeSwitchedOff) {
  cluster.StopManager();
  manager::ManagerOptions options;
  options.controllers = {"*", "-deployment"};
  cluster.StartManager(options);
  cluster.Create(kWeb);
  cluster.Run(std::chrono::seconds(5));
  EXPECT_TRUE(cluster.List(kReplicaSets).empty());
  cluster.StopManager();
  cluster.StartManager();
  EXPECT_TRUE(cluster.Until([&] { return Complete(); }));
}

constexpr char kDb[] = R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      schedulerName: swell
      containers: [{name: c, image: 'db:1', volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
)";

TEST_F(WorkloadsTest, AStatefulSetStartsItsPodsInOrder) {
  cluster.Create(kDb);
  std::string order;
  ASSERT_TRUE(cluster.Until([&] {
    for (int i = 0; i < 3; ++i) {
      const std::string name = StrCat("db-", i);
      const bool there = cluster.Get(kPods, StrCat("default/", name)) != nullptr;
      if (there && order.find(name) == std::string::npos) {
        order += name + " ";
        // The one before is ready by then.
        EXPECT_TRUE(i == 0 || cluster.Condition(kPods, StrCat("default/db-", i - 1), "Ready"));
      }
    }
    return cluster.Int(kStatefulSets, "default/db", {"status", "readyReplicas"}) == 3;
  }));
  EXPECT_EQ(order, "db-0 db-1 db-2 ");
  const json::SharedValue pod = cluster.Get(kPods, "default/db-1");
  EXPECT_EQ(json::GetString(*pod, {"spec", "hostname"}), "db-1");
  EXPECT_EQ(json::GetString(*pod, {"spec", "subdomain"}), "db");
  EXPECT_EQ(api::Label(*pod, "statefulset.kubernetes.io/pod-name"), "db-1");
  EXPECT_NE(cluster.Get(client::resources::kPersistentVolumeClaims, "default/data-db-2"), nullptr);
  // Its pods name the revision that they are of.
  const json::SharedValue first = cluster.Get(client::resources::kPods, "default/db-0");
  const json::SharedValue set = cluster.Get(kStatefulSets, "default/db");
  ASSERT_TRUE(first && set);
  EXPECT_EQ(api::Label(*first, "controller-revision-hash"),
            json::GetString(*set, {"status", "updateRevision"}));
}

TEST_F(WorkloadsTest, AStatefulSetOfAnySizeMakesSomePodsAtATime) {
  cluster.Create(
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: pods}, "
      "spec: {hard: {count/pods: 1200}}}");
  cluster.Run(std::chrono::seconds(1));
  cluster.Create(R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: huge}
spec:
  replicas: 2147483647
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: huge}}
  template:
    metadata: {labels: {app: huge}}
    spec: {schedulerName: nobody, containers: [{name: c, image: i}]}
)");
  EXPECT_TRUE(cluster.Until([&] { return cluster.List(kPods).size() == 1200; }));
}

TEST_F(WorkloadsTest, AStatefulSetRollsFromTheTopAndKeepsClaims) {
  cluster.Create(kDb);
  auto ready = [&](int64_t n) {
    return cluster.Int(kStatefulSets, "default/db", {"status", "readyReplicas"}) == n &&
           cluster.Int(kStatefulSets, "default/db", {"status", "updatedReplicas"}) == n;
  };
  ASSERT_TRUE(cluster.Until([&] { return ready(3); }));
  const std::string before = cluster.PodUid("default/db-0");
  ASSERT_TRUE(cluster
                  .Patch(kStatefulSets, "default/db",
                         "spec: {updateStrategy: {rollingUpdate: {partition: 1}}, template: {spec: "
                         "{containers: [{name: c, image: 'db:2'}]}}}")
                  .ok());
  ASSERT_TRUE(cluster.Until([&] {
    return cluster.Int(kStatefulSets, "default/db", {"status", "updatedReplicas"}) == 2 &&
           cluster.Int(kStatefulSets, "default/db", {"status", "readyReplicas"}) == 3;
  }));
  EXPECT_EQ(cluster.PodUid("default/db-0"), before);
  // A pod below the partition that goes comes back as it was.
  ASSERT_TRUE(cluster.Delete(kPods, "default/db-0").ok());
  ASSERT_TRUE(cluster.Until([&] {
    const std::string uid = cluster.PodUid("default/db-0");
    return !uid.empty() && uid != before;
  }));
  const json::SharedValue again = cluster.Get(kPods, "default/db-0");
  EXPECT_EQ(json::GetString(json::GetArray(*again, {"spec", "containers"})[0], {"image"}), "db:1");
  ASSERT_TRUE(cluster
                  .Patch(kStatefulSets, "default/db",
                         "spec: {replicas: 1, updateStrategy: {rollingUpdate: {partition: 0}}}")
                  .ok());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("") == 1 && ready(1); }));
  const json::SharedValue set = cluster.Get(kStatefulSets, "default/db");
  EXPECT_EQ(json::GetString(*set, {"status", "currentRevision"}),
            json::GetString(*set, {"status", "updateRevision"}));
  EXPECT_EQ(cluster.List(client::resources::kPersistentVolumeClaims).size(), 3U);
  EXPECT_EQ(cluster.List(client::resources::kControllerRevisions).size(), 2U);
}

TEST_F(WorkloadsTest, AStatefulSetTakesItsClaimsAlongWhereItSaysSo) {
  cluster.Create(kDb);
  auto claims = [&] { return cluster.List(client::resources::kPersistentVolumeClaims).size(); };
  auto ready = [&](int64_t n) {
    return cluster.Int(kStatefulSets, "default/db", {"status", "readyReplicas"}) == n;
  };
  ASSERT_TRUE(cluster
                  .Patch(kStatefulSets, "default/db",
                         "spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, "
                         "whenDeleted: Delete}}")
                  .ok());
  ASSERT_TRUE(cluster.Until([&] { return ready(3); }));
  ASSERT_TRUE(cluster.Patch(kStatefulSets, "default/db", "spec: {replicas: 1}").ok());
  ASSERT_TRUE(cluster.Until([&] { return cluster.Pods("") == 1 && claims() == 1; }));
  // A pod that comes again gets a claim of its own.
  ASSERT_TRUE(cluster.Patch(kStatefulSets, "default/db", "spec: {replicas: 2}").ok());
  ASSERT_TRUE(cluster.Until([&] { return ready(2) && claims() == 2; }));
  ASSERT_TRUE(cluster.Delete(kStatefulSets, "default/db").ok());
  EXPECT_TRUE(cluster.Until([&] { return claims() == 0; }));
}

constexpr char kDaemon[] = R"(
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: logs}
spec:
  selector: {matchLabels: {app: logs}}
  template:
    metadata: {labels: {app: logs}}
    spec: {schedulerName: swell, containers: [{name: c, image: 'logs:1'}]}
)";

TEST_F(WorkloadsTest, ADaemonSetRunsOnEveryNode) {
  cluster.Create(kDaemon);
  auto available = [&](int64_t n) {
    return cluster.Int(kDaemonSets, "default/logs", {"status", "numberAvailable"}) == n;
  };
  ASSERT_TRUE(cluster.Until([&] { return available(3); }));
  std::set<std::string> nodes;
  for (const json::SharedValue& pod : cluster.List(kPods)) {
    nodes.emplace(json::GetString(*pod, {"spec", "nodeName"}));
  }
  EXPECT_EQ(nodes.size(), 3U);
  cluster.AddNode("n3", 0);
  ASSERT_TRUE(cluster.Until([&] { return available(4); }));
  ASSERT_TRUE(cluster
                  .Patch(client::resources::kNodes, "n1",
                         "spec: {taints: [{key: a, value: b, effect: NoExecute}]}")
                  .ok());
  ASSERT_TRUE(cluster.Until([&] { return available(3) && cluster.Pods("") == 3; }));
}

TEST_F(WorkloadsTest, ADaemonSetRollsOneNodeAtATime) {
  cluster.Create(kDaemon);
  auto updated = [&] {
    return cluster.Int(kDaemonSets, "default/logs", {"status", "updatedNumberScheduled"}) == 3 &&
           cluster.Int(kDaemonSets, "default/logs", {"status", "numberAvailable"}) == 3;
  };
  ASSERT_TRUE(cluster.Until(updated));
  ASSERT_TRUE(cluster
                  .Patch(kDaemonSets, "default/logs",
                         "spec: {template: {spec: {containers: [{name: c, image: 'logs:2'}]}}}")
                  .ok());
  cluster.Run(std::chrono::milliseconds(50));
  int least = 3;
  ASSERT_TRUE(cluster.Until([&] {
    least = std::min(least, ReadyPods());
    int fresh = 0;
    for (const json::SharedValue& pod : cluster.List(kPods)) {
      fresh +=
          json::GetString(json::GetArray(*pod, {"spec", "containers"})[0], {"image"}) == "logs:2"
              ? 1
              : 0;
    }
    return fresh == 3 && updated();
  }));
  EXPECT_EQ(least, 2);
}

TEST_F(WorkloadsTest, BudgetsCountWhatShouldBeThere) {
  cluster.Create(StrCat(kWeb, R"(
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
)"));
  const client::Resource& budgets = client::resources::kPodDisruptionBudgets;
  ASSERT_TRUE(cluster.Until([&] { return Complete(); }));
  ASSERT_TRUE(cluster.Until([&] {
    return cluster.Int(budgets, "default/web", {"status", "disruptionsAllowed"}) == 1;
  }));
  EXPECT_EQ(cluster.Int(budgets, "default/web", {"status", "expectedPods"}), 4);
  // No room for more: what is missing counts as disrupted.
  for (int i = 0; i < 3; ++i) cluster.agents->Kill(StrCat("n", i));
  ASSERT_TRUE(cluster.Patch(kDeployments, "default/web", "spec: {replicas: 8}").ok());
  ASSERT_TRUE(cluster.Until([&] {
    return cluster.Int(budgets, "default/web", {"status", "expectedPods"}) == 8 &&
           cluster.Int(budgets, "default/web", {"status", "disruptionsAllowed"}) == 0;
  }));
}

TEST_F(WorkloadsTest, EndpointSlicesFollowTheirServices) {
  cluster.Create(StrCat(kWeb, R"(
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
)"));
  auto addresses = [&] {
    size_t count = 0;
    for (const json::SharedValue& slice : cluster.List(client::resources::kEndpointSlices)) {
      if (api::Label(*slice, "kubernetes.io/service-name") != "web") continue;
      count += json::GetArray(*slice, {"endpoints"}).size();
    }
    return count;
  };
  ASSERT_TRUE(cluster.Until([&] { return addresses() == 4; }));
  ASSERT_TRUE(cluster.Patch(kDeployments, "default/web", "spec: {replicas: 1}").ok());
  ASSERT_TRUE(cluster.Until([&] { return addresses() == 1; }));
  ASSERT_TRUE(cluster.Delete(client::resources::kServices, "default/web").ok());
  ASSERT_TRUE(cluster.Until([&] { return addresses() == 0; }));
}

TEST_F(WorkloadsTest, AggregatedRolesGetTheirRules) {
  ASSERT_TRUE(cluster.Until([&] {
    const json::SharedValue admin = cluster.Get(client::resources::kClusterRoles, "admin");
    return admin && json::GetArray(*admin, {"rules"}).size() > 20;
  }));
  cluster.Create(R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: more, labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}
rules: [{apiGroups: [example.com], resources: [things], verbs: [get]}]
)");
  ASSERT_TRUE(cluster.Until([&] {
    // View into edit into admin.
    const json::SharedValue admin = cluster.Get(client::resources::kClusterRoles, "admin");
    return json::Print(*admin).find("things") != std::string::npos;
  }));
}

TEST_F(WorkloadsTest, DefaultServiceAccountsComeBack) {
  EXPECT_TRUE(cluster.Delete(client::resources::kServiceAccounts, "default/default").ok());
  EXPECT_TRUE(cluster.Until([&] {
    return cluster.Get(client::resources::kServiceAccounts, "default/default") != nullptr;
  }));
}

}  // namespace
}  // namespace swell::controllers
