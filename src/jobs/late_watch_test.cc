// Jobs whose controllers hear late of what they did themselves, as of an API server that has much
// to do.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "manager/testing/cluster_test_util.h"
#include "manager/testing/late_sink.h"

namespace swell::jobs {
namespace {

using client::resources::kPods;
using client::resources::kPyTorchJobs;
using manager::PyTorchYaml;
using manager::TestCluster;

constexpr Duration kLate = std::chrono::seconds(3);

// Passes on what watches tell after a while, and counts the pods and jobs that are asked for.
class LateWatches final : public api::RestHandler {
 public:
  LateWatches(std::shared_ptr<api::RestHandler> server, Executor& executor)
      : server_(std::move(server)), executor_(executor) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (request.method == "POST" && request.path.ends_with("/pods")) ++pods_asked;
    if (request.method == "POST" && request.path.ends_with("/pytorchjobs")) ++jobs_asked;
    if (request.query.find("watch=") != std::string::npos) {
      sink = std::make_shared<manager::LateSink>(executor_, kLate, std::move(sink));
    }
    return server_->Handle(std::move(request), std::move(sink));
  }

  int pods_asked = 0, jobs_asked = 0;

 private:
  std::shared_ptr<api::RestHandler> server_;
  Executor& executor_;
};

TEST(LateWatchTest, APodIsAskedForOnce) {
  TestCluster cluster;
  auto late = std::make_shared<LateWatches>(cluster.server, cluster.sim);
  cluster.between = late;
  cluster.AddNode("node-a", 4);
  cluster.StartManager();
  cluster.Create(PyTorchYaml{.workers = 3}.Text());
  ASSERT_TRUE(
      cluster.Until([&] { return cluster.Condition(kPyTorchJobs, "default/job", "Running"); }));
  EXPECT_EQ(late->pods_asked, 4);
}

TEST(LateWatchTest, APodThatIsDeletedMeanwhileIsMadeAnew) {
  TestCluster cluster;
  cluster.between = std::make_shared<LateWatches>(cluster.server, cluster.sim);
  cluster.AddNode("node-a", 4);
  cluster.StartManager();
  cluster.Create(PyTorchYaml{.workers = 1}.Text());
  ASSERT_TRUE(cluster.Until([&] { return !cluster.PodUid("default/job-worker-0").empty(); }));
  const std::string first = cluster.PodUid("default/job-worker-0");
  ASSERT_TRUE(cluster.Delete(kPods, "default/job-worker-0", {.grace_seconds = 0}).ok());
  ASSERT_TRUE(
      cluster.Until([&] { return cluster.Condition(kPyTorchJobs, "default/job", "Running"); }));
  EXPECT_NE(cluster.PodUid("default/job-worker-0"), first);
}

TEST(LateWatchTest, ACronAsksForEachRunOnce) {
  TestCluster cluster;
  auto late = std::make_shared<LateWatches>(cluster.server, cluster.sim);
  cluster.between = late;
  cluster.AddNode("node-a", 4);
  cluster.StartManager();
  cluster.Create(R"(
apiVersion: apps.kubedl.io/v1alpha1
kind: Cron
metadata: {name: tick}
spec:
  schedule: '* * * * *'
  concurrencyPolicy: Replace
  template:
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    workload:
      spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: c, image: x}]}}}}}
)");
  ASSERT_TRUE(cluster.Until([&] { return cluster.Events("SuccessfulCreate", "tick") == 4; },
                            std::chrono::minutes(5)));
  cluster.Run(std::chrono::seconds(30));
  EXPECT_EQ(late->jobs_asked, 4);
  EXPECT_EQ(cluster.List(kPyTorchJobs).size(), 1U);
  EXPECT_EQ(cluster.Events("SuccessfulDelete", "tick"), 3);
  EXPECT_EQ(cluster.Events("MissingWorkload", "tick"), 0);
}

}  // namespace
}  // namespace swell::jobs
