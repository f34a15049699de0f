// Suspended jobs are let run after others, after a time, and some of an array at once.
#include "jobs/decisions/job_gates.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::jobs {
namespace {

using client::resources::kTrainingJobs;
using manager::TestCluster;
using std::chrono::minutes;
using std::chrono::seconds;

class GatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.AddNode("n0", 8);
    cluster_.StartManager();
  }
  // A job of one pod with one GPU; with annotations its gate is closed.
  void Submit(const std::string& name,
              const std::string& annotations = {},
              const std::string& labels = {}) {
    const bool gated = !annotations.empty();
    cluster_.Create(StrCat(
        "apiVersion: swell.dev/v1\nkind: TrainingJob\nmetadata: {name: ", name,
        ", namespace: default, labels: {", labels, "}, annotations: {",
        gated ? "swell.dev/gate: closed, " : "", annotations,
        "}}\nspec:\n  suspend: ", gated ? "true" : "false",
        "\n  roles:\n    worker:\n      replicas: 1\n      restartPolicy: Never\n      template: "
        "{spec: {containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: "
        "1}}}]}}\n"));
  }
  bool Runs(const std::string& name) {
    return cluster_.PodPhase(StrCat("default/", name, "-worker-0")) == "Running";
  }
  void End(const std::string& name, int code) {
    ASSERT_TRUE(cluster_.Until([&] { return Runs(name); })) << name;
    cluster_.agents->Exit(StrCat("default/", name, "-worker-0"), code);
  }
  std::string Said(const std::string& name) {
    const json::SharedValue job = cluster_.Get(kTrainingJobs, "default/" + name);
    return job ? std::string(api::Annotation(*job, "swell.dev/gate-reason")) : "gone";
  }
  bool Says(const std::string& name, const std::string& text) {
    return cluster_.Until([&] { return Said(name) == text; });
  }

  TestCluster cluster_;
};

TEST_F(GatesTest, AJobStartsWhenTheOtherHasSucceeded) {
  Submit("first");
  Submit("then", "swell.dev/start-after: 'afterok:first'");
  EXPECT_TRUE(Says("then", "Dependency: waits for job first to succeed")) << Said("then");
  cluster_.Run(minutes(5));
  EXPECT_FALSE(Runs("then"));
  End("first", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Runs("then"); }));
  EXPECT_EQ(Said("then"), "");
}

TEST_F(GatesTest, AJobThatWaitsForAnArraySaysHowManyOfItAreDone) {
  for (const char* task : {"sw-0", "sw-1", "sw-2"}) Submit(task, "", "swell.dev/array: sw");
  Submit("post", "swell.dev/start-after: 'afterok:sw-0:sw-1:sw-2'");
  EXPECT_TRUE(Says(
      "post", "Dependency: waits for job sw-0 to succeed; none of the 3 jobs of array sw have"))
      << Said("post");
  End("sw-0", 0);
  End("sw-2", 0);
  EXPECT_TRUE(
      Says("post", "Dependency: waits for job sw-1 to succeed; 2 of the 3 jobs of array sw have"))
      << Said("post");
  End("sw-1", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Runs("post"); }));
}

TEST_F(GatesTest, AJobWhoseDependencyFailedWaitsAndSaysSo) {
  Submit("first");
  Submit("ok", "swell.dev/start-after: 'afterok:first'");
  Submit("notok", "swell.dev/start-after: 'afternotok:first'");
  Submit("any", "swell.dev/start-after: 'afterok:first?afterany:first'");
  Submit("removed", "swell.dev/start-after: 'afterok:first', swell.dev/if-never: Delete");
  Submit("failed", "swell.dev/start-after: 'afterok:first', swell.dev/if-never: Fail");
  End("first", 1);
  EXPECT_TRUE(Says("ok", "DependencyNeverSatisfied: job first failed")) << Said("ok");
  EXPECT_TRUE(cluster_.Until([&] { return Runs("notok") && Runs("any"); }));
  EXPECT_TRUE(Says("removed", "gone"));
  const auto failed = [&] { return cluster_.Get(kTrainingJobs, "default/failed"); };
  ASSERT_TRUE(cluster_.Until([&] { return api::ConditionIsTrue(*failed(), "Failed"); }));
  const json::SharedValue job = failed();
  const auto why = api::FindCondition(*job, "Failed");
  EXPECT_EQ(why->reason, "DependencyNeverSatisfied");
  EXPECT_TRUE(why->message.ends_with("can never be met: job first failed.")) << why->message;
  EXPECT_FALSE(Runs("ok"));
}

TEST_F(GatesTest, AnArrayHasFailedWhenItHasEndedAndOneOfItFailed) {
  for (const char* task : {"a", "b", "c"}) Submit(task);
  Submit("repair", "swell.dev/start-after: 'afternotok:a+b'");
  Submit("never", "swell.dev/start-after: 'afternotok:b+c'");
  End("a", 1);
  EXPECT_TRUE(Says("repair", "Dependency: waits for job b to end; 1 of the 2 jobs has"))
      << Said("repair");
  cluster_.Run(minutes(1));
  EXPECT_FALSE(Runs("repair"));
  End("b", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Runs("repair"); }));
  End("c", 0);
  EXPECT_TRUE(Says("never", "DependencyNeverSatisfied: all 2 tasks of the array succeeded"))
      << Said("never");
}

// One that can never come true ends nothing while another may.
TEST_F(GatesTest, AJobThatWaitsForAnyOfTwoEndsWhenNeitherCanComeTrue) {
  Submit("a");
  Submit("b");
  const std::string fail = ", swell.dev/if-never: Fail";
  Submit("lucky", "swell.dev/start-after: 'afterok:a?afterok:b'" + fail);
  Submit("unlucky", "swell.dev/start-after: 'afterok:a?afternotok:b'" + fail);
  End("a", 1);
  cluster_.Run(minutes(1));
  EXPECT_EQ(Said("lucky"), "Dependency: waits for job b to succeed");
  EXPECT_EQ(Said("unlucky"), "Dependency: waits for job b to fail");
  End("b", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Runs("lucky"); }));
  EXPECT_TRUE(cluster_.Until([&] {
    return api::ConditionIsTrue(*cluster_.Get(kTrainingJobs, "default/unlucky"), "Failed");
  }));
}

TEST_F(GatesTest, AJobThatWasDeletedHasEndedWithoutSuccess) {
  Submit("first");
  Submit("ok", "swell.dev/start-after: 'afterok:first'");
  Submit("any", "swell.dev/start-after: 'afterany:first'");
  ASSERT_TRUE(Says("any", "Dependency: waits for job first to end")) << Said("any");
  cluster_.Run(seconds(2));
  ASSERT_TRUE(cluster_.Delete(kTrainingJobs, "default/first", {}).ok());
  const WallTime deleted = cluster_.sim.Now();
  EXPECT_TRUE(cluster_.Until([&] { return Runs("any"); }));
  // It is not taken for one that is still to be seen.
  EXPECT_LT(cluster_.sim.Now() - deleted, seconds(5));
  EXPECT_TRUE(Says("ok", "DependencyNeverSatisfied: job first was deleted before it had succeeded"))
      << Said("ok");
}

TEST_F(GatesTest, SomeOfAnArrayRunAtOnceTheFirstOnesFirst) {
  for (int i = 0; i < 5; ++i) {
    Submit(StrCat("task-", i), "swell.dev/array-at-once: '2'", "swell.dev/array: sweep");
  }
  ASSERT_TRUE(cluster_.Until([&] { return Runs("task-0") && Runs("task-1"); }));
  cluster_.Run(minutes(1));
  EXPECT_EQ(cluster_.Pods("Running"), 2);
  EXPECT_EQ(Said("task-2"), "JobArrayTaskLimit: waits for its turn; 2 of the array run at once");
  End("task-1", 0);
  ASSERT_TRUE(cluster_.Until([&] { return Runs("task-2"); }));
  // Failing frees the turn, too.
  End("task-0", 3);
  ASSERT_TRUE(cluster_.Until([&] { return Runs("task-3"); }));
  cluster_.Run(minutes(1));
  EXPECT_FALSE(Runs("task-4"));
}

TEST_F(GatesTest, AJobStartsNoEarlierThanItsTime) {
  const WallTime begin = cluster_.sim.Now() + minutes(10);
  Submit("late", StrCat("swell.dev/start-not-before: '", api::FormatTime(begin), "'"));
  cluster_.Run(minutes(9));
  EXPECT_FALSE(Runs("late"));
  EXPECT_TRUE(Said("late").starts_with("BeginTime: starts at ")) << Said("late");
  cluster_.Run(minutes(1) + seconds(5));
  EXPECT_TRUE(Runs("late"));
}

TEST_F(GatesTest, AHeldJobWaitsUntilItIsReleased) {
  Submit("held", "swell.dev/held: user");
  cluster_.Run(minutes(1));
  EXPECT_FALSE(Runs("held"));
  EXPECT_EQ(Said("held"), "JobHeldUser: is held until somebody releases it");
  ASSERT_TRUE(
      cluster_
          .Patch(kTrainingJobs, "default/held", "metadata: {annotations: {swell.dev/held: null}}")
          .ok());
  EXPECT_TRUE(cluster_.Until([&] { return Runs("held"); }));
}

TEST_F(GatesTest, AJobThatShallGoWaitsForItsPods) {
  Submit("going");
  ASSERT_TRUE(cluster_.Until([&] { return Runs("going"); }));
  ASSERT_TRUE(cluster_
                  .Patch(kTrainingJobs, "default/going",
                         "metadata: {annotations: {swell.dev/delete-when-stopped: scancel}}")
                  .ok());
  cluster_.Run(minutes(1));
  EXPECT_TRUE(Runs("going"));
  ASSERT_TRUE(cluster_.Patch(kTrainingJobs, "default/going", "spec: {suspend: true}").ok());
  ASSERT_TRUE(cluster_.Until([&] { return Said("going") == "gone"; }));
  EXPECT_EQ(cluster_.Pods("Running"), 0);
}

TEST_F(GatesTest, NonsenseIsSaidAndOpensNothing) {
  Submit("one", "swell.dev/start-after: first");
  Submit("two", "swell.dev/start-after: 'sometimes:one'");
  EXPECT_TRUE(Says("one",
                   "DependencyNeverSatisfied: its annotation swell.dev/start-after has \"first\", "
                   "where TYPE:JOB is expected"))
      << Said("one");
  EXPECT_TRUE(Said("two").starts_with("DependencyNeverSatisfied: its annotation")) << Said("two");
  EXPECT_FALSE(Runs("two"));
}

TEST_F(GatesTest, ARestartedControllerGoesOn) {
  Submit("first");
  Submit("then", "swell.dev/start-after: 'afterany:first'");
  ASSERT_TRUE(Says("then", "Dependency: waits for job first to end"));
  ASSERT_TRUE(cluster_.Until([&] { return Runs("first"); }));
  cluster_.StopManager();
  cluster_.StartManager();
  End("first", 0);
  EXPECT_TRUE(cluster_.Until([&] { return Runs("then"); }));
}

}  // namespace
}  // namespace swell::jobs
