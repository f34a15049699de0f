// What leaves a cluster by `swell export` arrives in another by `swell import`.
#include <gtest/gtest.h>

#include "cli/cli_test_util.h"
#include "kube/api/rest/scripted_server_test_util.h"

namespace swell::cli {
namespace {

constexpr char kWorld[] = R"(
{apiVersion: v1, kind: Namespace, metadata: {name: vision}}
---
{apiVersion: swell.dev/v1, kind: Project, metadata: {name: a-team, finalizers: [swell.dev/in-use]}, spec: {parent: research, resources: {gpu: {quota: 4}}}}
---
{apiVersion: swell.dev/v1, kind: Project, metadata: {name: research}, spec: {}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: vision, labels: {a: b}}, data: {x: 'yes'}}
---
{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: vision}, stringData: {p: hunter2}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a-user, namespace: vision, labels: {swell.dev/user-secret: s}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: viewer}, subjects: []}
---
{apiVersion: v1, kind: Namespace, metadata: {name: swell-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: swell-grouping, namespace: swell-system}, data: {rules.yaml: 'rules: []'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: swell-usage-2026-11-22, namespace: swell-system}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: vision}, spec: {ports: [{port: 80}], selector: {app: web}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: alone, namespace: vision}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: owned
  namespace: vision
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: rs, uid: 1-2, controller: true}]
spec: {containers: [{name: c, image: i}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
)";

class TransferTest : public CliTest {
 protected:
  void SetUp() override {
    Create(kWorld);
    Create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: vision}}");
  }
  size_t At(const std::string& text) const { return out_.find(text); }
};

class OtherCluster : public CliTest {
 public:
  using CliTest::Create;
  using CliTest::Run;
  void TestBody() override {}
  void Give(std::string text) { stdin_ = std::move(text); }
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }
};

TEST_F(TransferTest, ExportsWhatPeopleMadeInAnOrderThatWorks) {
  ASSERT_EQ(Run({"swell", "export"}), 0) << err_;
  const char* const order[] = {"name: widgets.example.com",
                               "kind: Namespace",
                               "name: research",
                               "name: a-team",
                               "name: swell-grouping",
                               "name: settings",
                               "name: web",
                               "apiVersion: example.com/v1",
                               "name: alone"};
  size_t last = 0;
  for (const char* text : order) {
    ASSERT_NE(At(text), std::string::npos) << text << "\n" << out_;
    EXPECT_GT(At(text), last) << text;
    last = At(text);
  }
  for (const char* text :
       {"uid:",          "resourceVersion:",  "creationTimestamp:",   "managedFields:",
        "status:",       "clusterIP:",        "finalizers:",          "ownerReferences:",
        "priority: 0",   "preemptionPolicy:", "ephemeralContainers:", "name: owned",
        "hunter2",       "aHVudGVyMg",        "kube-root-ca.crt",     "system:",
        "cluster-admin", "name: a-user",      "podgroups.swell.dev",  "swell-usage"}) {
    EXPECT_EQ(At(text), std::string::npos) << text << "\n" << out_;
  }
  EXPECT_EQ(err_, "9 objects exported; left out: Secrets (--secrets), users and their roles\n");
}

TEST_F(TransferTest, ArrivesInAnotherCluster) {
  ASSERT_EQ(Run({"swell", "export", "--secrets"}), 0) << err_;
  OtherCluster other;
  other.Create("{apiVersion: v1, kind: Namespace, metadata: {name: swell-system}}");
  other.Give(out_);
  ASSERT_EQ(other.Run({"swell", "import", "-"}), 0) << other.err();
  EXPECT_NE(other.out().find("widget.example.com/w created\n"), std::string::npos) << other.out();
  EXPECT_NE(other.out().find("secret/password created\n"), std::string::npos);
  // What it has exported is what it was given.
  const std::string given = out_;
  ASSERT_EQ(other.Run({"swell", "export", "--secrets"}), 0) << other.err();
  EXPECT_EQ(other.out(), given);
}

TEST_F(TransferTest, KeepsWhatIsThereUnlessTold) {
  ASSERT_EQ(Run({"swell", "export", "-n", "vision"}), 0) << err_;
  EXPECT_EQ(At("kind: Project"), std::string::npos);
  stdin_ =
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: vision}, "
      "data: {x: 'no'}}";
  const std::string changed = stdin_;
  ASSERT_EQ(Run({"swell", "import", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/settings kept: it already exists\n");
  stdin_ = changed;
  ASSERT_EQ(Run({"swell", "import", "-f", "-", "--overwrite"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/settings configured\n");
  ASSERT_EQ(
      Run({"swell", "get", "configmap", "settings", "-n", "vision", "-o", "jsonpath={.data.x}"}),
      0);
  EXPECT_EQ(out_, "no");
}

TEST_F(TransferTest, WhoMayNotReadAllExportsTheRestOfANamespace) {
  const auto refuse = [this](const std::string& part) {
    env_.connect = [this, part](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<api::ScriptedServer>(
          *server_.server,
          [part](const api::RestRequest& request) -> std::optional<api::RestResponse> {
            if (request.path.find(part) == std::string::npos) return std::nullopt;
            return api::Refusal(Code::kForbidden, "that is forbidden");
          });
      connection.url = "https://test:6443";
      connection.user = {.name = "ada", .groups = {"system:masters"}};
      return Result<Connection>(std::move(connection));
    };
  };
  refuse("/resourcequotas");
  EXPECT_EQ(Run({"swell", "export"}), 1);
  EXPECT_EQ(err_,
            "swell: only administrators export the whole cluster: that is forbidden. To export "
            "what you may read in one namespace: swell export -n NAMESPACE\n");
  ASSERT_EQ(Run({"swell", "export", "-n", "vision"}), 0) << err_;
  EXPECT_NE(At("name: settings"), std::string::npos);
  EXPECT_NE(err_.find("left out: Secrets (--secrets), users and their roles, what you may not list "
                      "(resourcequotas)\n"),
            std::string::npos)
      << err_;
  refuse("/namespaces/vision/");
  EXPECT_EQ(Run({"swell", "export", "-n", "vision"}), 1);
  EXPECT_EQ(err_, "swell: that is forbidden\n");
}

TEST_F(TransferTest, LeavesOutWorkThatHasEnded) {
  ASSERT_EQ(server_
                .Merge("/api/v1/namespaces/vision/pods/alone/status",
                       R"({"status":{"phase":"Succeeded"}})")
                .status,
            200);
  ASSERT_EQ(Run({"swell", "export", "-n", "vision"}), 0) << err_;
  EXPECT_EQ(At("name: alone"), std::string::npos);
  EXPECT_NE(err_.find("work that has ended (--ended)"), std::string::npos);
  ASSERT_EQ(Run({"swell", "export", "-n", "vision", "--ended"}), 0) << err_;
  EXPECT_NE(At("name: alone"), std::string::npos);
}

TEST_F(TransferTest, TakesInWhatAnotherReleaseHadInBeta) {
  stdin_ = R"(
apiVersion: batch/v1beta1
kind: CronJob
metadata: {name: nightly, namespace: vision}
spec: {schedule: '0 3 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}
---
{apiVersion: batch/v7, kind: CronJob, metadata: {name: later, namespace: vision}}
)";
  EXPECT_EQ(Run({"swell", "import", "-f", "-"}), 1);
  EXPECT_NE(out_.find("cronjob.batch/nightly created"), std::string::npos) << out_ << err_;
  EXPECT_NE(err_.find("does not know kind \"CronJob\" in apiVersion \"batch/v7\""),
            std::string::npos)
      << err_;
}

TEST_F(TransferTest, OneBadObjectDoesNotKeepTheOthersAway) {
  stdin_ =
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: X_, namespace: vision}}\n---\n"
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: vision}}";
  EXPECT_EQ(Run({"swell", "import", "-f", "-"}), 1);
  EXPECT_NE(err_.find("standard input, document 1: configmap/X_: "), std::string::npos) << err_;
  EXPECT_EQ(out_, "configmap/good created\n");
}

}  // namespace
}  // namespace swell::cli
