// Owners and dependents under the three deletion policies; namespaces that empty themselves.
#include "kube/controllers/cluster/garbage_collector.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using client::resources::kConfigMaps;
using client::resources::kNamespaces;
using client::resources::kPyTorchJobs;
using manager::kSecond;
using manager::PyTorchYaml;
using manager::TestCluster;

class GarbageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("node-a", 8);
    cluster_.StartManager();
  }
  void Make(const std::string& name, const std::string& owner = "", bool blocks = true) {
    std::string text = StrCat("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ", name,
                              "\n  namespace: default\n");
    if (!owner.empty()) {
      text +=
          StrCat("  ownerReferences:\n  - {apiVersion: v1, kind: ConfigMap, name: ", owner,
                 ", uid: ", Uid(owner), ", blockOwnerDeletion: ", blocks ? "true" : "false", "}\n");
    }
    cluster_.Create(text);
  }
  std::string Uid(const std::string& name) {
    json::SharedValue found = cluster_.Get(kConfigMaps, "default/" + name);
    return found ? std::string(api::Uid(*found)) : "";
  }
  bool Exists(const std::string& name) { return !Uid(name).empty(); }
  bool UntilGone(const std::string& name) {
    return cluster_.Until([&] { return !Exists(name); });
  }
  TestCluster cluster_;
};

// While one kind cannot be listed, every object of the cluster may wait.
TEST(GarbageCollector, AnObjectThatWaitsForTheCachesIsLookedAtOnce) {
  TestCluster cluster;
  cluster.Create(
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default, ownerReferences: "
      "[{apiVersion: v1, kind: ConfigMap, name: gone, uid: '1'}]}}");
  const api::UserInfo admin{"system:admin", "", {"system:masters"}};
  Informers informers(cluster.sim, cluster.server, admin, 1);
  GarbageCollector collector({.executor = cluster.sim,
                              .clock = cluster.sim,
                              .random = cluster.random,
                              .server = cluster.server,
                              .user = admin,
                              .informers = informers,
                              .metrics = &cluster.metrics},
                             cluster.server->scheme());
  collector.Start();
  cluster.Run(kSecond);
  EXPECT_NE(cluster.metrics.Print().find("workqueue_adds_total{name=\"garbage\"} 1\n"),
            std::string::npos)
      << cluster.metrics.Print();
  EXPECT_TRUE(cluster.Get(kConfigMaps, "default/a"));
  informers.Start();
  EXPECT_TRUE(cluster.Until([&] { return !cluster.Get(kConfigMaps, "default/a"); }));
}

TEST_F(GarbageTest, BackgroundTakesTheDependentsAfterwards) {
  Make("top");
  Make("middle", "top");
  Make("bottom", "middle");
  Make("other");
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/top", {.propagation = "Background"}).ok());
  EXPECT_FALSE(Exists("top"));
  EXPECT_TRUE(UntilGone("middle"));
  EXPECT_TRUE(UntilGone("bottom"));
  EXPECT_TRUE(Exists("other"));
}

TEST_F(GarbageTest, ForegroundWaitsForWhatBlocks) {
  Make("top");
  Make("middle", "top");
  Make("bottom", "middle");
  ASSERT_TRUE(
      cluster_.Patch(kConfigMaps, "default/bottom", "{metadata: {finalizers: [example.com/hold]}}")
          .ok());
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/top", {.propagation = "Foreground"}).ok());
  cluster_.Run(30 * kSecond);
  EXPECT_TRUE(Exists("top"));
  EXPECT_TRUE(Exists("middle"));
  EXPECT_TRUE(Exists("bottom"));
  ASSERT_TRUE(cluster_.Patch(kConfigMaps, "default/bottom", "{metadata: {finalizers: []}}").ok());
  EXPECT_TRUE(UntilGone("bottom"));
  EXPECT_TRUE(UntilGone("middle"));
  EXPECT_TRUE(UntilGone("top"));
}

TEST_F(GarbageTest, ACircleOfOwnersDoesNotWaitForItself) {
  Make("top");
  Make("middle", "top");
  Make("bottom", "middle");
  ASSERT_TRUE(
      cluster_
          .Patch(kConfigMaps, "default/top",
                 StrCat("{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, ",
                        "name: bottom, uid: ", Uid("bottom"), ", blockOwnerDeletion: true}]}}"))
          .ok());
  cluster_.Run(kSecond);
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/top", {.propagation = "Foreground"}).ok());
  EXPECT_TRUE(UntilGone("top"));
  EXPECT_TRUE(UntilGone("middle"));
  EXPECT_TRUE(UntilGone("bottom"));
}

TEST_F(GarbageTest, ForegroundDoesNotWaitForOthers) {
  Make("top");
  Make("free", "top", false);
  ASSERT_TRUE(
      cluster_.Patch(kConfigMaps, "default/free", "{metadata: {finalizers: [example.com/hold]}}")
          .ok());
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/top", {.propagation = "Foreground"}).ok());
  EXPECT_TRUE(UntilGone("top"));
  EXPECT_TRUE(Exists("free"));
}

TEST_F(GarbageTest, NobodyHoldsOrDeletesWhatOthersOwnInAnotherNamespace) {
  cluster_.Create("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: theirs\n");
  Make("top");
  Make("middle", "top");
  // Its author learned the uids of owners in `default`.
  auto claim = [this](const std::string& owner) {
    cluster_.Create(StrCat("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: claims-", owner,
                           "\n  namespace: theirs\n  finalizers: [example.com/hold]\n",
                           "  ownerReferences:\n  - {apiVersion: v1, kind: ConfigMap, name: ",
                           owner, ", uid: ", Uid(owner), ", blockOwnerDeletion: true}\n"));
  };
  claim("top");
  claim("middle");
  cluster_.Run(30 * kSecond);
  EXPECT_TRUE(Exists("top"));
  EXPECT_TRUE(Exists("middle"));
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/top", {.propagation = "Foreground"}).ok());
  EXPECT_TRUE(UntilGone("middle"));
  EXPECT_TRUE(UntilGone("top"));
}

TEST_F(GarbageTest, OrphanSetsTheDependentsFree) {
  Make("top");
  Make("middle", "top");
  Make("bottom", "middle");
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/top", {.propagation = "Orphan"}).ok());
  EXPECT_TRUE(UntilGone("top"));
  cluster_.Run(30 * kSecond);
  ASSERT_TRUE(Exists("middle"));
  EXPECT_TRUE(
      json::GetArray(*cluster_.Get(kConfigMaps, "default/middle"), {"metadata", "ownerReferences"})
          .empty());
  EXPECT_TRUE(Exists("bottom"));
}

TEST_F(GarbageTest, OneOwnerLeftIsEnough) {
  Make("first");
  Make("second");
  cluster_.Create(
      StrCat("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  namespace: default\n"
             "  ownerReferences:\n  - {apiVersion: v1, kind: ConfigMap, name: first, uid: ",
             Uid("first"),
             "}\n  - {apiVersion: v1, kind: ConfigMap, name: second, uid: ", Uid("second"), "}\n"));
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/first").ok());
  ASSERT_TRUE(cluster_.Until([&] {
    return json::GetArray(*cluster_.Get(kConfigMaps, "default/child"),
                          {"metadata", "ownerReferences"})
               .size() == 1;
  }));
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/second").ok());
  EXPECT_TRUE(UntilGone("child"));
}

TEST_F(GarbageTest, OwnerThatNeverWasTakesItsDependentAlong) {
  cluster_.Create(
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  namespace: default\n"
      "  ownerReferences:\n  - {apiVersion: v1, kind: ConfigMap, name: ghost, uid: nobody}\n");
  EXPECT_TRUE(UntilGone("child"));
}

// Passes on everything but what watches of config maps tell.
class DeafToConfigMaps final : public api::RestHandler {
 public:
  explicit DeafToConfigMaps(std::shared_ptr<api::RestHandler> server)
      : server_(std::move(server)) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (request.path.ends_with("/configmaps") &&
        request.query.find("watch=") != std::string::npos) {
      sink = std::make_shared<DeafSink>(std::move(sink));
    }
    return server_->Handle(std::move(request), std::move(sink));
  }

 private:
  class DeafSink final : public api::RestSink {
   public:
    explicit DeafSink(std::shared_ptr<api::RestSink> to) : to_(std::move(to)) {}
    void OnResponse(api::RestResponse response) override { to_->OnResponse(std::move(response)); }
    void OnStreamStart(int status, std::string type) override {
      to_->OnStreamStart(status, std::move(type));
    }
    bool OnChunk(const api::Chunk&) override { return true; }
    void OnStreamEnd(const Status& why) override { to_->OnStreamEnd(why); }

   private:
    std::shared_ptr<api::RestSink> to_;
  };

  std::shared_ptr<api::RestHandler> server_;
};

// Its watch is late: it comes and goes, and nobody hears of it.
TEST_F(GarbageTest, OwnerThatWasNeverSeenTakesItsDependentAlong) {
  cluster_.StopManager();
  cluster_.between = std::make_shared<DeafToConfigMaps>(cluster_.server);
  cluster_.StartManager();
  Make("owner");
  cluster_.Create(
      StrCat("apiVersion: v1\nkind: Secret\nmetadata:\n  name: child\n  namespace: default\n"
             "  ownerReferences:\n  - {apiVersion: v1, kind: ConfigMap, name: owner, uid: ",
             Uid("owner"), "}\n"));
  const auto child = [this] { return cluster_.Get(client::resources::kSecrets, "default/child"); };
  cluster_.Run(60 * kSecond);
  EXPECT_TRUE(child());
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/owner").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !child(); }));
}

// A kind that is not served (now) is not a reason to delete anything.
TEST_F(GarbageTest, UnknownKindsAreLeftAlone) {
  cluster_.Create(
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  namespace: default\n"
      "  ownerReferences:\n  - {apiVersion: example.com/v1, kind: Ghost, name: g, uid: u}\n");
  cluster_.Run(60 * kSecond);
  EXPECT_TRUE(Exists("child"));
}

// A new object of the owner's name is not the owner.
TEST_F(GarbageTest, NamesakesDoNotInherit) {
  Make("top");
  Make("middle", "top");
  cluster_.StopManager();
  ASSERT_TRUE(cluster_.Delete(kConfigMaps, "default/top").ok());
  Make("top");
  cluster_.StartManager();
  EXPECT_TRUE(UntilGone("middle"));
  EXPECT_TRUE(Exists("top"));
}

TEST_F(GarbageTest, CustomKindsAreLookedAfterToo) {
  cluster_.Create(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
)");
  cluster_.Run(2 * kSecond);
  const client::Resource widgets{"example.com", "v1", "widgets", true};
  cluster_.Create(
      "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: default}\n");
  json::SharedValue widget = cluster_.Get(widgets, "default/w");
  ASSERT_TRUE(widget);
  cluster_.Create(
      StrCat("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  namespace: default\n"
             "  ownerReferences:\n  - {apiVersion: example.com/v1, kind: Widget, name: w, uid: ",
             api::Uid(*widget), "}\n"));
  cluster_.Run(5 * kSecond);
  EXPECT_TRUE(Exists("child"));
  ASSERT_TRUE(cluster_.Delete(widgets, "default/w").ok());
  EXPECT_TRUE(UntilGone("child"));
}

TEST_F(GarbageTest, DeletedJobTakesEverythingAlong) {
  cluster_.Create(PyTorchYaml{.name = "job", .workers = 2}.Text());
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 3; }));
  ASSERT_TRUE(cluster_.Delete(kPyTorchJobs, "default/job").ok());
  EXPECT_TRUE(cluster_.Until([&] {
    return cluster_.Pods("") == 0 && cluster_.List(client::resources::kPodGroups).empty();
  }));
}

TEST_F(GarbageTest, NamespaceIsEmptiedThenGone) {
  cluster_.Create("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n");
  cluster_.Create(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: team}\n---\n"
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: team}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\n"
      "spec: {containers: [{name: c, image: x}]}\n---\n"
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: team}\n"
      "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 2; }));
  ASSERT_TRUE(cluster_.Delete(kNamespaces, "team").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kNamespaces, "team"); }));
  EXPECT_EQ(cluster_.List(kConfigMaps, "team").size(), 0u);
  EXPECT_EQ(cluster_.Pods(""), 0);
  EXPECT_TRUE(cluster_.Get(kNamespaces, "default"));
}

TEST_F(GarbageTest, PodsOfANamespaceGoBeforeWhatTheyNeed) {
  cluster_.Create("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n");
  cluster_.Create(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: team}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team, finalizers: "
      "[example.com/hold]}\nspec: {containers: [{name: c, image: x}]}\n");
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 1; }));
  ASSERT_TRUE(cluster_.Delete(kNamespaces, "team").ok());
  cluster_.Run(60 * kSecond);
  const json::SharedValue pod = cluster_.Get(client::resources::kPods, "team/p");
  ASSERT_TRUE(pod);
  EXPECT_TRUE(api::IsDeleting(*pod));
  const json::SharedValue map = cluster_.Get(kConfigMaps, "team/c");
  ASSERT_TRUE(map);
  EXPECT_FALSE(api::IsDeleting(*map));
  const json::SharedValue ns = cluster_.Get(kNamespaces, "team");
  ASSERT_TRUE(ns);
  const auto left = api::FindCondition(*ns, "NamespaceContentRemaining");
  ASSERT_TRUE(left);
  EXPECT_NE(left->message.find("pods. has 1 resource instances"), std::string_view::npos);
  ASSERT_TRUE(
      cluster_.Patch(client::resources::kPods, "team/p", "{metadata: {finalizers: []}}").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kNamespaces, "team"); }));
}

TEST_F(GarbageTest, NamespaceSaysWhatHoldsIt) {
  cluster_.Create("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n");
  cluster_.Create(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: team, finalizers: "
      "[example.com/hold]}\n");
  ASSERT_TRUE(cluster_.Delete(kNamespaces, "team").ok());
  cluster_.Run(10 * kSecond);
  json::SharedValue ns = cluster_.Get(kNamespaces, "team");
  ASSERT_TRUE(ns);
  EXPECT_EQ(json::GetString(*ns, {"status", "phase"}), "Terminating");
  const std::optional<api::Condition> held =
      api::FindCondition(*ns, "NamespaceFinalizersRemaining");
  ASSERT_TRUE(held);
  EXPECT_NE(held->message.find("example.com/hold"), std::string_view::npos);
  ASSERT_TRUE(cluster_.Patch(kConfigMaps, "team/c", "{metadata: {finalizers: []}}").ok());
  EXPECT_TRUE(cluster_.Until([&] { return !cluster_.Get(kNamespaces, "team"); }));
}

}  // namespace
}  // namespace swell::controllers
