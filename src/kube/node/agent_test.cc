// The node agent in virtual time: a fake API, a runtime that runs nothing.
#include <csignal>

#include "kube/node/agent_fixture.h"
#include "kube/node/kubelet_handler.h"

namespace swell::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_F(AgentTest, RegistersItsNodeAndRenewsItsLease) {
  json::Value node = api_->Get("/api/v1/nodes", "node-0");
  ASSERT_TRUE(node.is_object());
  EXPECT_EQ(json::GetString(node, {"status", "capacity", "cpu"}), "4");
  EXPECT_EQ(json::GetString(node, {"status", "allocatable", "cpu"}), "3900m");
  EXPECT_EQ(json::GetString(node, {"status", "allocatable", "pods"}), "110");
  EXPECT_TRUE(api::ConditionIsTrue(node, "Ready"));
  EXPECT_EQ(api::Label(node, "kubernetes.io/hostname"), "node-0");
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  std::string first(json::GetString(api_->Get(leases, "node-0"), {"spec", "renewTime"}));
  ASSERT_FALSE(first.empty());
  sim_.Advance(seconds(11));
  EXPECT_NE(json::GetString(api_->Get(leases, "node-0"), {"spec", "renewTime"}), first);
}

TEST_F(AgentTest, RegistersAgainWhenItsNodeIsDeleted) {
  api_->Delete("/api/v1/nodes", "node-0", 0);
  sim_.Advance(minutes(6));
  EXPECT_TRUE(api_->Has("/api/v1/nodes", "node-0"));
}

TEST_F(AgentTest, RunsAPodToRunning) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"busybox"}]})");
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_EQ(State("a"), "running");
  json::Value pod = Pod("a");
  EXPECT_EQ(json::GetString(pod, {"status", "hostIP"}), "10.0.0.5");
  EXPECT_FALSE(json::GetString(pod, {"status", "podIP"}).empty());
  EXPECT_EQ(json::GetString(pod, {"status", "qosClass"}), "BestEffort");
  for (std::string_view type : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) {
    EXPECT_TRUE(api::ConditionIsTrue(pod, type)) << type;
  }
  EXPECT_TRUE(json::GetBool(Status("a"), {"ready"}));
  EXPECT_EQ(EnvOf(uid, "KUBERNETES_SERVICE_HOST"), "10.88.0.1");
  EXPECT_EQ(EnvOf(uid, "SWELL_GRACE_SECONDS"), "30");
  EXPECT_TRUE(Saw("Started"));
}

struct EndCase {
  const char* name;
  const char* policy;
  int code;
  const char* phase;
  int restarts;  // after a minute
};

class EndTest : public AgentTest, public ::testing::WithParamInterface<EndCase> {};

TEST_P(EndTest, RestartPolicyDecides) {
  const EndCase& c = GetParam();
  Create("a",
         StrCat(R"({"restartPolicy":")", c.policy,
                R"(","containers":[{"name":"main","image":"busybox"}]})"),
         StrCat(R"({"annotations":{"swell.dev/run-seconds":"1","swell.dev/exit-code":")", c.code,
                R"("}})"));
  sim_.Advance(minutes(1));
  EXPECT_EQ(Phase("a"), c.phase);
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), c.restarts);
}

// Restarts after 1 s of running each: at once, then after 10 s, 20 s, 40 s: three in a minute.
INSTANTIATE_TEST_SUITE_P(Policies,
                         EndTest,
                         ::testing::Values(EndCase{"NeverOk", "Never", 0, "Succeeded", 0},
                                           EndCase{"NeverBad", "Never", 3, "Failed", 0},
                                           EndCase{"OnFailureOk", "OnFailure", 0, "Succeeded", 0},
                                           EndCase{"OnFailureBad", "OnFailure", 3, "Running", 3},
                                           EndCase{"AlwaysOk", "Always", 0, "Running", 3},
                                           EndCase{"AlwaysBad", "Always", 3, "Running", 3}),
                         [](const auto& info) { return info.param.name; });

TEST_F(AgentTest, ACrashLoopBacksOffAndSaysSo) {
  Create("a", R"({"containers":[{"name":"main","image":"busybox"}]})",
         R"({"annotations":{"swell.dev/run-seconds":"1","swell.dev/exit-code":"1"}})");
  sim_.Advance(seconds(4));
  json::Value status = Status("a");
  EXPECT_EQ(json::GetString(status, {"state", "waiting", "reason"}), "CrashLoopBackOff");
  EXPECT_EQ(json::GetInt(status, {"restartCount"}), 1);
  EXPECT_EQ(json::GetInt(status, {"lastState", "terminated", "exitCode"}), 1);
  EXPECT_EQ(json::GetString(status, {"lastState", "terminated", "reason"}), "Error");
  EXPECT_TRUE(Saw("BackOff"));
  EXPECT_FALSE(api::ConditionIsTrue(Pod("a"), "Ready"));
}

TEST_F(AgentTest, LongRunsForgetTheBackOff) {
  Create("a", R"({"containers":[{"name":"main","image":"busybox"}]})",
         R"({"annotations":{"swell.dev/run-seconds":"700","swell.dev/exit-code":"1"}})");
  sim_.Advance(seconds(701 * 3 + 5));
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 3);
  EXPECT_EQ(State("a"), "running");
}

TEST_F(AgentTest, OutOfMemoryAndSignalsShow) {
  std::string uid =
      Create("a", R"({"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]})");
  runtime_.ExitForTest(uid, "main", 137, /*oom=*/true);
  sim_.Advance(milliseconds(10));
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::GetString(Status("a"), {"state", "terminated", "reason"}), "OOMKilled");
  EXPECT_EQ(json::GetInt(Status("a"), {"state", "terminated", "exitCode"}), 137);
}

TEST_F(AgentTest, InitContainersRunInOrderAndFailTheirPod) {
  std::string uid = Create(
      "a", R"({"initContainers":[{"name":"one","image":"busybox"},{"name":"two","image":"busybox"}],
               "containers":[{"name":"main","image":"busybox"}]})");
  EXPECT_EQ(Phase("a"), "Running");
  json::Value pod = Pod("a");
  const json::Array& init = json::GetArray(pod, {"status", "initContainerStatuses"});
  ASSERT_EQ(init.size(), 2u);
  EXPECT_EQ(json::GetString(init[1], {"state", "terminated", "reason"}), "Completed");
  EXPECT_TRUE(api::ConditionIsTrue(pod, "Initialized"));

  Create("b", R"({"restartPolicy":"Never","initContainers":[{"name":"one","image":"gone"}],
                  "containers":[{"name":"main","image":"busybox"}]})",
         R"({"annotations":{"swell.dev/missing-image":"gone"}})");
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_EQ(json::GetString(Status("b"), {"state", "waiting", "reason"}), "PodInitializing");
}

TEST_F(AgentTest, AMissingImageWaitsAndSaysWhy) {
  Create("a", R"({"containers":[{"name":"main","image":"gone:1"}]})",
         R"({"annotations":{"swell.dev/missing-image":"gone:1"}})");
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_EQ(json::GetString(Status("a"), {"state", "waiting", "reason"}), "ErrImagePull");
  sim_.Advance(seconds(3));
  EXPECT_EQ(json::GetString(Status("a"), {"state", "waiting", "reason"}), "ImagePullBackOff");
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 0);
}

TEST_F(AgentTest, StopsGracefullyAndDeletesWithItsLastWord) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"busybox"}]})",
                           R"({"annotations":{"swell.dev/stop-seconds":"2",
                               "swell.dev/preempted-by":"team/big","swell.dev/preempted-rule":
                               "reclaim"}})");
  bool terminated_seen = false;
  api_->fail = [&](const api::RestRequest& request) {
    terminated_seen =
        terminated_seen || (request.path.ends_with("/a/status") &&
                            request.body.find("\"exitCode\":143") != std::string::npos);
    return false;
  };
  api_->Delete(kPods, "a", 30);
  sim_.Advance(seconds(1));
  EXPECT_TRUE(api_->Has(kPods, "a"));
  json::Value notice = Parse(runtime_.NoticeOfForTest(uid));
  EXPECT_EQ(json::GetString(notice, {"by"}), "team/big");
  EXPECT_EQ(json::GetString(notice, {"rule"}), "reclaim");
  EXPECT_EQ(json::GetString(notice, {"reason"}), "Preempted");
  auto deadline = api::ParseTime(json::GetString(notice, {"deadline"}));
  ASSERT_TRUE(deadline.has_value());
  EXPECT_NEAR(static_cast<double>((*deadline - sim_.Now()).count()), 29e9, 0.1e9);
  sim_.Advance(milliseconds(1100));
  EXPECT_FALSE(api_->Has(kPods, "a"));
  EXPECT_TRUE(terminated_seen);
  EXPECT_EQ(agent_->worker_count(), 0u);
  EXPECT_EQ(runtime_.SandboxOfForTest(uid), nullptr);
}

TEST_F(AgentTest, KillsWhenTheGracePeriodIsOver) {
  Create("a", R"({"terminationGracePeriodSeconds":5,"containers":[{"name":"main","image":"x"}]})",
         R"({"annotations":{"swell.dev/stop-seconds":"1000"}})");
  api_->Delete(kPods, "a", 5);
  sim_.Advance(milliseconds(4900));
  EXPECT_TRUE(api_->Has(kPods, "a"));
  EXPECT_FALSE(Saw("KilledAfterGracePeriod"));
  sim_.Advance(milliseconds(200));
  EXPECT_FALSE(api_->Has(kPods, "a"));
  EXPECT_TRUE(Saw("KilledAfterGracePeriod"));
}

TEST_F(AgentTest, ForcedDeletionKillsAtOnce) {
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})",
         R"({"annotations":{"swell.dev/stop-seconds":"1000"}})");
  EXPECT_EQ(runtime_.running(), 1u);
  api_->Delete(kPods, "a", 0);
  sim_.Advance(milliseconds(10));
  EXPECT_EQ(runtime_.running(), 0u);
  EXPECT_EQ(agent_->worker_count(), 0u);
}

TEST_F(AgentTest, EphemeralContainersRunOnceBesideThePodsOwn) {
  std::string uid =
      Create("a", R"({"restartPolicy":"OnFailure","containers":[{"name":"main","image":"x"}]})");
  auto add = [&](const std::string& list) {
    json::Value pod = Pod("a");
    json::Set(pod, {"spec", "ephemeralContainers"}, Parse(list));
    api_->Put(kPods, pod);
    sim_.Advance(milliseconds(50));
  };
  auto state = [&](size_t index, std::string_view what) {
    const json::Value pod = Pod("a");
    const json::Array& list = json::GetArray(pod, {"status", "ephemeralContainerStatuses"});
    return index < list.size() && json::Find(list[index], {"state", what}) != nullptr;
  };
  EXPECT_EQ(json::Find(Pod("a"), {"status", "ephemeralContainerStatuses"}), nullptr);
  add(R"([{"name":"debug","image":"busybox","stdin":true,"tty":true}])");
  EXPECT_TRUE(state(0, "running"));
  ASSERT_NE(runtime_.SpecOfForTest(uid, "debug"), nullptr);
  EXPECT_TRUE(runtime_.SpecOfForTest(uid, "debug")->tty);
  const json::Value pod = Pod("a");
  const json::Value& status = json::GetArray(pod, {"status", "ephemeralContainerStatuses"})[0];
  EXPECT_FALSE(json::GetBool(status, {"ready"}));
  EXPECT_EQ(json::Find(status, {"started"}), nullptr);
  EXPECT_TRUE(api::ConditionIsTrue(pod, "Ready"));
  // It is not started again, whatever the pod's policy is, and others come later.
  runtime_.ExitForTest(uid, "debug", 1);
  sim_.Advance(minutes(2));
  EXPECT_TRUE(state(0, "terminated"));
  EXPECT_EQ(Phase("a"), "Running");
  add(R"([{"name":"debug","image":"busybox","stdin":true,"tty":true},
          {"name":"again","image":"busybox"}])");
  EXPECT_TRUE(state(1, "running"));
  // The pod does not wait for it.
  runtime_.ExitForTest(uid, "main", 0);
  sim_.Advance(seconds(31));
  EXPECT_EQ(Phase("a"), "Succeeded");
  EXPECT_TRUE(state(1, "terminated"));
}

TEST_F(AgentTest, ARestartedAgentAdoptsEphemeralContainers) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  json::Value pod = Pod("a");
  json::Set(pod, {"spec", "ephemeralContainers"}, Parse(R"([{"name":"debug","image":"x"}])"));
  api_->Put(kPods, pod);
  sim_.Advance(milliseconds(50));
  agent_.reset();
  Boot();
  sim_.Advance(milliseconds(50));
  const json::Value now = Pod("a");
  const json::Array& list = json::GetArray(now, {"status", "ephemeralContainerStatuses"});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_NE(json::Find(list[0], {"state", "running"}), nullptr);
  EXPECT_EQ(json::GetInt(list[0], {"restartCount"}), 0);
}

TEST_F(AgentTest, AnActiveDeadlineFailsThePod) {
  Create("a", R"({"activeDeadlineSeconds":60,"containers":[{"name":"main","image":"x"}]})");
  sim_.Advance(seconds(59));
  EXPECT_EQ(Phase("a"), "Running");
  sim_.Advance(seconds(2));
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::GetString(Pod("a"), {"status", "reason"}), "DeadlineExceeded");
}

TEST_F(AgentTest, RefusesWhatDoesNotFit) {
  Create("a", R"({"containers":[{"name":"main","image":"x",
                 "resources":{"limits":{"nvidia.com/gpu":3}}}]})");
  EXPECT_EQ(Phase("a"), "Running");
  Create("b", R"({"containers":[{"name":"main","image":"x",
                 "resources":{"limits":{"nvidia.com/gpu":2}}}]})");
  EXPECT_EQ(Phase("b"), "Failed");
  EXPECT_EQ(json::GetString(Pod("b"), {"status", "reason"}), "OutOfnvidia.com/gpu");
  Create("c", R"({"containers":[{"name":"main","image":"x",
                 "resources":{"requests":{"cpu":"4"}}}]})");
  EXPECT_EQ(json::GetString(Pod("c"), {"status", "reason"}), "OutOfcpu");
}

// As device plugins do, and people with `kubectl patch node --subresource=status`.
TEST_F(AgentTest, WhatOthersAdvertiseOfTheNodeIsGivenToItsPods) {
  const std::string nodes = "/api/v1/nodes";
  const std::string spec = R"({"containers":[{"name":"main","image":"x",
                               "resources":{"limits":{"nvidia.com/mig-1g.5gb":2}}}]})";
  Create("early", spec);
  EXPECT_EQ(json::GetString(Pod("early"), {"status", "reason"}), "OutOfnvidia.com/mig-1g.5gb");
  json::Value node = api_->Get(nodes, "node-0");
  for (const char* list : {"capacity", "allocatable"}) {
    json::Set(node, {"status", list, "nvidia.com/mig-1g.5gb"}, "3");
  }
  api_->Put(nodes, node);
  api_->fail = [](const api::RestRequest& request) {
    return request.method == "GET" && request.path.ends_with("/nodes/node-0");
  };
  Create("a", spec);
  EXPECT_EQ(Phase("a"), "Pending");  // nobody knows yet
  api_->fail = nullptr;
  sim_.Advance(seconds(2));
  EXPECT_EQ(Phase("a"), "Running");
  Create("b", spec);
  EXPECT_EQ(json::GetString(Pod("b"), {"status", "reason"}), "OutOfnvidia.com/mig-1g.5gb");
  // The next agent learns it as it registers, and the resource stays advertised.
  LoseMachine(std::string(api::Uid(Pod("a"))));
  sim_.Advance(minutes(6));
  EXPECT_EQ(json::GetString(api_->Get(nodes, "node-0"),
                            {"status", "allocatable", "nvidia.com/mig-1g.5gb"}),
            "3");
}

TEST_F(AgentTest, WaitsForThoseWhoAreLeaving) {
  const char* spec = R"({"containers":[{"name":"main","image":"x",
                         "resources":{"limits":{"nvidia.com/gpu":4}}}]})";
  Create("victim", spec, R"({"annotations":{"swell.dev/stop-seconds":"3"}})");
  api_->Delete(kPods, "victim", 30);
  Create("preemptor", spec);
  EXPECT_EQ(Phase("preemptor"), "Pending");
  sim_.Advance(milliseconds(3100));
  EXPECT_FALSE(api_->Has(kPods, "victim"));
  EXPECT_EQ(Phase("preemptor"), "Running");
}

TEST_F(AgentTest, GpusAreAssignedAndAnnounced) {
  const char* spec = R"({"containers":[{"name":"main","image":"x",
                         "resources":{"limits":{"nvidia.com/gpu":2}}}]})";
  std::string first = Create("a", spec, R"({"annotations":{"swell.dev/gpu-devices":"0,2"}})");
  EXPECT_EQ(EnvOf(first, "CUDA_VISIBLE_DEVICES"), "0,2");
  EXPECT_EQ(EnvOf(first, "NVIDIA_VISIBLE_DEVICES"), "0,2");
  std::string second = Create("b", spec);
  EXPECT_EQ(EnvOf(second, "CUDA_VISIBLE_DEVICES"), "1,3");
  EXPECT_EQ(api::Annotation(Pod("b"), "swell.dev/gpu-devices"), "1,3");
  std::string third = Create("c", R"({"containers":[{"name":"main","image":"x"}]})");
  EXPECT_EQ(EnvOf(third, "CUDA_VISIBLE_DEVICES"), "(unset)");
  EXPECT_EQ(EnvOf(third, "SWELL_GPU_NAME"), "(unset)");
  EXPECT_EQ(EnvOf(first, "SWELL_GPU_NAME"), "Swell virtual GPU");
  EXPECT_NE(EnvOf(first, "SWELL_GPU_TOTAL_MIB"), "(unset)");
}

TEST_F(AgentTest, SharersOfAGpuAreToldWhichAndHowMuch) {
  const char* spec = R"({"containers":[{"name":"main","image":"x"}]})";
  std::string half = Create(
      "a", spec, R"({"annotations":{"swell.dev/gpu-devices":"1","swell.dev/gpu-fraction":"0.5"}})");
  EXPECT_EQ(EnvOf(half, "CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(EnvOf(half, "NVIDIA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(EnvOf(half, "SWELL_GPU_FRACTION"), "0.5");
  EXPECT_EQ(EnvOf(half, "XLA_PYTHON_CLIENT_MEM_FRACTION"), "0.5");
  EXPECT_EQ(EnvOf(half, "SWELL_GPU_MEMORY_MIB"), "(unset)");
  std::string both = Create("b", R"({"containers":[{"name":"main","image":"x",
      "env":[{"name":"XLA_PYTHON_CLIENT_MEM_FRACTION","value":"0.1"}]}]})",
                            R"({"annotations":{"swell.dev/gpu-devices":"2,3",
                                "swell.dev/gpu-memory":"2048",
                                "swell.dev/gpu-fraction-devices":"2"}})");
  EXPECT_EQ(EnvOf(both, "CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(EnvOf(both, "SWELL_GPU_MEMORY_MIB"), "2048");
  EXPECT_EQ(EnvOf(both, "SWELL_GPU_FRACTION"), "(unset)");
  EXPECT_EQ(EnvOf(both, "XLA_PYTHON_CLIENT_MEM_FRACTION"), "0.1");
}

TEST_F(AgentTest, ADeviceThatAPodHasIsGivenToNoOther) {
  const std::string device =
      R"({"annotations":{"swell.dev/gpu-devices":"1","swell.dev/stop-seconds":"3"}})";
  const std::string spec = R"({"containers":[{"name":"main","image":"x",
      "resources":{"limits":{"nvidia.com/gpu":1}}}]})";
  Create("a", spec, device);
  Create("b", spec, device);
  EXPECT_EQ(json::GetString(Pod("b"), {"status", "message"}),
            "annotation swell.dev/gpu-devices: \"1\": device 1 is used by pod default/a");
  api_->Delete(kPods, "a", 5);  // on its way out, it is waited for
  Create("c", spec, device);
  EXPECT_NE(Phase("c"), "Running");
  sim_.Advance(seconds(4));
  EXPECT_EQ(Phase("c"), "Running");
}

TEST_F(AgentTest, GpusThatTheManifestHidesStayHidden) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x",
      "env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"void"}],
      "resources":{"limits":{"nvidia.com/gpu":1}}}]})");
  EXPECT_EQ(EnvOf(uid, "NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_EQ(EnvOf(uid, "CUDA_VISIBLE_DEVICES"), "(unset)");
}

TEST_F(AgentTest, EnvironmentComesFromEverywhere) {
  api_->Put("/api/v1/namespaces/default/configmaps",
            Parse(R"({"metadata":{"name":"settings","namespace":"default"},
                      "data":{"A":"from-map","B":"b"}})"));
  api_->Put("/api/v1/namespaces/default/secrets",
            Parse(R"({"metadata":{"name":"keys","namespace":"default"},
                      "data":{"token":"czNjcmV0"}})"));
  std::string uid = Create("a", R"j({"containers":[{"name":"main","image":"x",
      "command":["run","$(GREETING)","$$(GREETING)","$(NOPE)"],
      "envFrom":[{"prefix":"P_","configMapRef":{"name":"settings"}}],
      "env":[{"name":"WHO","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
             {"name":"GREETING","value":"hello $(WHO)"},
             {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
             {"name":"LABEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['app']"}}},
             {"name":"KEY","valueFrom":{"configMapKeyRef":{"name":"settings","key":"A"}}},
             {"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"keys","key":"token"}}},
             {"name":"MAYBE","valueFrom":{"configMapKeyRef":{"name":"no","key":"x","optional":true}}},
             {"name":"CPUS","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
             {"name":"MEM","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}}],
      "resources":{"limits":{"cpu":"1500m","memory":"1Gi"}}}]})j",
                           R"({"labels":{"app":"train"}})");
  EXPECT_EQ(EnvOf(uid, "GREETING"), "hello a");
  EXPECT_EQ(EnvOf(uid, "P_B"), "b");
  EXPECT_EQ(EnvOf(uid, "LABEL"), "train");
  EXPECT_EQ(EnvOf(uid, "KEY"), "from-map");
  EXPECT_EQ(EnvOf(uid, "TOKEN"), "s3cret");
  EXPECT_EQ(EnvOf(uid, "MAYBE"), "(unset)");
  EXPECT_EQ(EnvOf(uid, "CPUS"), "2");
  EXPECT_EQ(EnvOf(uid, "MEM"), "1024");
  EXPECT_EQ(EnvOf(uid, "IP"), json::GetString(Pod("a"), {"status", "podIP"}));
  const ContainerSpec* spec = runtime_.SpecOfForTest(uid, "main");
  ASSERT_EQ(spec->command.size(), 4u);
  EXPECT_EQ(spec->command[1], "hello a");
  EXPECT_EQ(spec->command[2], "$(GREETING)");
  EXPECT_EQ(spec->command[3], "$(NOPE)");
  EXPECT_EQ(spec->cpu_limit_milli, 1500);
  EXPECT_EQ(spec->memory_limit_bytes, 1 << 30);
}

TEST_F(AgentTest, AMissingSourceIsWaitedFor) {
  Create("a", R"({"containers":[{"name":"main","image":"x","env":[{"name":"K",
      "valueFrom":{"configMapKeyRef":{"name":"later","key":"k"}}}]}]})");
  EXPECT_EQ(json::GetString(Status("a"), {"state", "waiting", "reason"}),
            "CreateContainerConfigError");
  api_->Put("/api/v1/namespaces/default/configmaps",
            Parse(R"({"metadata":{"name":"later","namespace":"default"},"data":{"k":"v"}})"));
  sim_.Advance(seconds(11));
  EXPECT_EQ(Phase("a"), "Running");
}

TEST_F(AgentTest, AVolumeThatNodesDoNotMountIsNamed) {
  api_->Put("/api/v1/namespaces/default/persistentvolumeclaims",
            Parse(R"({"metadata":{"name":"data"},"spec":{"volumeName":"pv-1"}})"));
  const auto put_volume = [this](const std::string& source) {
    api_->Put("/api/v1/persistentvolumes",
              Parse(StrCat(R"({"metadata":{"name":"pv-1"},"spec":{"capacity":{"storage":"1Gi"},)",
                           R"("claimRef":{"namespace":"default","name":"data"},)", source, "}}")));
  };
  const char* spec = R"({"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}],
      "containers":[{"name":"main","image":"x"}]})";
  put_volume(R"("local":{"path":"/srv"})");
  Create("a", spec);
  ASSERT_EQ(Phase("a"), "Running");
  EXPECT_FALSE(Saw("VolumeReplaced"));
  put_volume(R"("nfs":{"server":"nas","path":"/data"})");
  Create("b", spec);
  ASSERT_EQ(Phase("b"), "Running");
  EXPECT_TRUE(Saw("VolumeReplaced"));
}

TEST_F(AgentTest, VolumesAreResolvedAndRefreshed) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const char* spec = R"({"volumes":[
      {"name":"scratch","emptyDir":{}},
      {"name":"code","configMap":{"name":"code","items":[{"key":"main.py","path":"src/main.py"}]}},
      {"name":"claim","persistentVolumeClaim":{"claimName":"data"}},
      {"name":"about","downwardAPI":{"items":[{"path":"name","fieldRef":{"fieldPath":"metadata.name"}}]}}],
      "containers":[{"name":"main","image":"x","volumeMounts":[
        {"name":"code","mountPath":"/code","readOnly":true}]}]})";
  std::string uid = Create("a", spec);
  EXPECT_TRUE(Saw("FailedMount"));
  EXPECT_NE(json::Print(Status("a")).find("MountVolume.SetUp failed for "), std::string::npos);
  api_->Put(maps, Parse(R"({"metadata":{"name":"code"},"data":{"main.py":"one = 1"}})"));
  api_->Put("/api/v1/namespaces/default/persistentvolumeclaims",
            Parse(R"({"metadata":{"name":"data"},"spec":{"volumeName":"pv-1"}})"));
  api_->Put("/api/v1/persistentvolumes",
            Parse(R"({"metadata":{"name":"pv-1"},"spec":{"hostPath":{"path":"/srv/pv"}}})"));
  sim_.Advance(seconds(5));
  ASSERT_EQ(Phase("a"), "Running");
  const SandboxSpec* sandbox = runtime_.SandboxOfForTest(uid);
  ASSERT_EQ(sandbox->volumes.size(), 4u);
  EXPECT_EQ(sandbox->volumes[0].kind, VolumeSpec::Kind::kEmptyDir);
  ASSERT_EQ(sandbox->volumes[1].files.size(), 1u);
  EXPECT_EQ(sandbox->volumes[1].files[0].path, "src/main.py");
  EXPECT_EQ(sandbox->volumes[2].kind, VolumeSpec::Kind::kHostPath);
  EXPECT_EQ(sandbox->volumes[2].host_path, "/srv/pv");
  EXPECT_EQ(sandbox->volumes[3].files[0].bytes, "a");
  api_->Put(maps, Parse(R"({"metadata":{"name":"code"},"data":{"main.py":"one = 2"}})"));
  sim_.Advance(seconds(70));
  EXPECT_EQ(runtime_.SandboxOfForTest(uid)->volumes[1].files[0].bytes, "one = 2");
}

TEST_F(AgentTest, ProbesGateReadinessAndRestartTheUnhealthy) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x",
      "ports":[{"name":"web","containerPort":80}],
      "readinessProbe":{"httpGet":{"port":"web"},"periodSeconds":5},
      "livenessProbe":{"exec":{"command":["true"]},"periodSeconds":5,"failureThreshold":2}}]})");
  sim_.Advance(seconds(1));
  EXPECT_TRUE(api::ConditionIsTrue(Pod("a"), "Ready"));
  runtime_.SetHealthForTest(uid, false);
  sim_.Advance(seconds(12));
  EXPECT_TRUE(Saw("Unhealthy"));
  EXPECT_EQ(json::GetString(Status("a"), {"lastState", "terminated", "message"}),
            "its liveness probe failed");
  EXPECT_EQ(json::GetString(Status("a"), {"lastState", "terminated", "reason"}),
            "LivenessProbeFailed");
  runtime_.SetHealthForTest(uid, true);
  sim_.Advance(seconds(30));
  EXPECT_TRUE(api::ConditionIsTrue(Pod("a"), "Ready"));
}

TEST_F(AgentTest, AHookThatSleepsPutsOffTheSignal) {
  Create("a", R"({"terminationGracePeriodSeconds":30,"containers":[{"name":"main","image":"x",
      "lifecycle":{"preStop":{"sleep":{"seconds":5}}}}]})");
  sim_.Advance(seconds(1));
  api_->Delete(kPods, "a", 30);
  sim_.Advance(seconds(4));
  EXPECT_EQ(runtime_.running(), 1u);
  sim_.Advance(seconds(2));
  EXPECT_EQ(runtime_.running(), 0u);
}

TEST_F(AgentTest, ARestartedAgentAdoptsItsPods) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  std::string orphan = Create("b", R"({"containers":[{"name":"main","image":"x"}]})");
  std::string id(json::GetString(Status("a"), {"containerID"}));
  agent_.reset();
  EXPECT_EQ(runtime_.running(), 2u);
  api_->Delete(kPods, "b", 0);
  Boot();
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(runtime_.running(), 1u);  // the orphan is gone
  EXPECT_EQ(runtime_.SandboxOfForTest(orphan), nullptr);
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 0);
  EXPECT_EQ(json::GetString(Status("a"), {"containerID"}), id);
  runtime_.ExitForTest(uid, "main", 5);
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 1);
  EXPECT_EQ(State("a"), "running");
}

// The one that comes sorts before the one that runs, by name and by uid alike.
TEST_F(AgentTest, ARestartedAgentGivesNobodyTheDevicesOfThosePodsThatRun) {
  const std::string spec = R"("spec":{"nodeName":"node-0","containers":[{"name":"main",
      "image":"x","resources":{"limits":{"nvidia.com/gpu":2}}}]}})";
  api_->Put(kPods, Parse(R"({"metadata":{"name":"old","namespace":"default","uid":"z",
      "annotations":{"swell.dev/gpu-devices":"0,1"}},)" +
                         spec));
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(Phase("old"), "Running");
  agent_.reset();
  api_->Put(kPods, Parse(R"({"metadata":{"name":"new","namespace":"default","uid":"a"},)" + spec));
  Boot();
  sim_.Advance(milliseconds(50));
  EXPECT_EQ(EnvOf("z", "CUDA_VISIBLE_DEVICES"), "0,1");
  EXPECT_EQ(EnvOf("a", "CUDA_VISIBLE_DEVICES"), "2,3");
}

TEST_F(AgentTest, ARestartedAgentHearsOfWhatEndedBeforeItCouldAdopt) {
  std::string uid = Create("a", R"({"restartPolicy":"Never","containers":[
      {"name":"main","image":"x"}]})");
  agent_.reset();
  api_->fail = [](const api::RestRequest&) { return true; };
  Boot();
  runtime_.ExitForTest(uid, "main", 5);
  api_->fail = {};
  sim_.Advance(minutes(1));
  EXPECT_EQ(json::GetInt(Status("a"), {"state", "terminated", "exitCode"}), 5);
}

TEST_F(AgentTest, AContainerWhoseStartTheLastAgentAskedForIsNotStartedAgain) {
  api_->Put(kPods, Parse(R"({"metadata":{"name":"a","namespace":"default",
      "annotations":{"swell.dev/run-seconds":"10"}},"spec":{"nodeName":"node-0",
      "restartPolicy":"Never","containers":[{"name":"main","image":"x"}]}})"));
  const std::string uid(api::Uid(Pod("a")));
  sim_.RunUntil([&] { return runtime_.SpecOfForTest(uid, "main") != nullptr; }, seconds(1));
  ASSERT_EQ(runtime_.running(), 0u);
  agent_.reset();
  Boot();
  sim_.Advance(seconds(10) + milliseconds(500));
  EXPECT_EQ(Phase("a"), "Succeeded");
}

TEST_F(AgentTest, AfterALostMachineContainersCountAsEnded) {
  std::string uid = Create("a", R"({"restartPolicy":"Never","containers":[
      {"name":"main","image":"x"},{"name":"done","image":"x"}]})");
  runtime_.ExitForTest(uid, "done", 3);
  sim_.Advance(milliseconds(50));
  std::string ip(json::GetString(Pod("a"), {"status", "podIP"}));
  LoseMachine(uid);
  EXPECT_EQ(Phase("a"), "Failed");
  EXPECT_EQ(json::GetString(Status("a", 0), {"state", "terminated", "reason"}),
            "ContainerStatusUnknown");
  EXPECT_EQ(json::GetInt(Status("a", 1), {"state", "terminated", "exitCode"}), 3);
  // Nothing is left to run: the pod gets no new sandbox, and keeps its address.
  EXPECT_EQ(runtime_.SandboxOfForTest(uid), nullptr);
  EXPECT_EQ(json::GetString(Pod("a"), {"status", "podIP"}), ip);
  api_->Delete(kPods, "a", 30);
  sim_.Advance(seconds(1));
  EXPECT_FALSE(api_->Has(kPods, "a"));
}

TEST_F(AgentTest, TheAddressOfANewSandboxReplacesTheOldOne) {
  std::string uid = Create("a", R"({"containers":[{"name":"main","image":"x"}]})");
  std::string ip(json::GetString(Pod("a"), {"status", "podIP"}));
  LoseMachine(uid);
  json::Value pod = Pod("a");
  std::string now(json::GetString(pod, {"status", "podIP"}));
  EXPECT_NE(now, ip);
  EXPECT_EQ(json::Print(*json::Find(pod, {"status", "podIPs"})),
            StrCat(R"([{"ip":")", now, R"("}])"));
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), 1);
}

TEST_F(AgentTest, ServiceNamesLeadToPods) {
  agent_.reset();
  names_ = std::make_unique<ServiceNames>(sim_, api_, NodeUser("node-0"));
  names_->Start();
  sim_.Advance(milliseconds(1));
  api_->Put("/api/v1/namespaces/default/services",
            Parse(R"({"metadata":{"name":"resnet-master-0","namespace":"default"},
                      "spec":{"clusterIP":"None","selector":{"job":"resnet"}}})"));
  with_names_ = true;
  Boot();
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})", R"({"labels":{"job":"resnet"}})");
  sim_.Advance(seconds(1));
  std::string ip(json::GetString(Pod("a"), {"status", "podIP"}));
  std::vector<HostsEntry> hosts = names_->HostsFor(Pod("a"));
  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].ip, ip);
  EXPECT_EQ(hosts[0].names,
            (std::vector<std::string>{"resnet-master-0", "resnet-master-0.default",
                                      "resnet-master-0.default.svc",
                                      "resnet-master-0.default.svc.cluster.local"}));
  json::Value elsewhere = Parse(R"({"metadata":{"namespace":"other"}})");
  EXPECT_EQ(names_->HostsFor(elsewhere)[0].names.front(), "resnet-master-0.default");
  agent_.reset();
}

TEST_F(AgentTest, AServicesNameLeadsToItsClusterIpWhereSomebodyServesIt) {
  std::vector<ServiceRoute> routes;
  names_ = std::make_unique<ServiceNames>(
      sim_, api_, NodeUser("node-0"),
      [&routes](std::vector<ServiceRoute> all, const OnRouted& done) {
        routes = std::move(all);
        done({});
      });
  names_->Start();
  sim_.Advance(milliseconds(1));
  api_->Put("/api/v1/namespaces/default/services",
            Parse(R"({"metadata":{"name":"web","namespace":"default"},
                      "spec":{"clusterIP":"10.96.0.9","sessionAffinity":"ClientIP",
                              "selector":{"app":"web"},
                              "ports":[{"name":"http","port":80,"targetPort":"serving"},
                                       {"name":"talk","port":90,"protocol":"UDP"}]}})"));
  api_->Put("/api/v1/namespaces/default/endpoints",
            Parse(R"({"metadata":{"name":"web","namespace":"default"},"subsets":[
                {"addresses":[{"ip":"10.1.0.1"}],"ports":[{"name":"http","port":8080}]},
                {"addresses":[{"ip":"10.1.0.2"}],"notReadyAddresses":[{"ip":"10.1.0.3"}],
                 "ports":[{"name":"http","port":9090},{"name":"other","port":1}]}]})"));
  sim_.Advance(seconds(1));
  EXPECT_EQ(
      routes,
      (std::vector<ServiceRoute>{
          {"10.96.0.9", 80, {{"10.1.0.1", 8080}, {"10.1.0.2", 9090}}, std::chrono::hours(3)}}));
  const json::Value pod = Parse(R"({"metadata":{"namespace":"default"}})");
  ASSERT_EQ(names_->HostsFor(pod).size(), 1u);
  EXPECT_EQ(names_->HostsFor(pod)[0].ip, "10.96.0.9");
  EnvList env = names_->ServiceEnv(pod);
  EXPECT_EQ(env.back().first, "WEB_PORT_90_UDP_ADDR");
  env.resize(2);
  EXPECT_EQ(env, (EnvList{{"WEB_SERVICE_HOST", "10.96.0.9"}, {"WEB_SERVICE_PORT", "80"}}));
  // In the host's network the cluster IP leads nowhere, nor does the name without a pod.
  const json::Value host =
      Parse(R"({"metadata":{"namespace":"default"},"spec":{"hostNetwork":true}})");
  EXPECT_TRUE(names_->HostsFor(host).empty());
  EXPECT_TRUE(names_->ServiceEnv(host).empty());
  names_.reset();
}

TEST_F(AgentTest, AServiceLeadsToTheAddressesOfSlicesThatSomebodyMade) {
  std::vector<ServiceRoute> routes;
  names_ = std::make_unique<ServiceNames>(
      sim_, api_, NodeUser("node-0"),
      [&routes](std::vector<ServiceRoute> all, const OnRouted& done) {
        routes = std::move(all);
        done({});
      });
  names_->Start();
  sim_.Advance(milliseconds(1));
  api_->Put("/api/v1/namespaces/default/services",
            Parse(R"({"metadata":{"name":"own","namespace":"default"},
                      "spec":{"clusterIP":"10.96.0.8","ports":[{"name":"http","port":80}]}})"));
  auto put = [&](const std::string& name, const std::string& by, const std::string& endpoints) {
    json::Value slice = Parse(R"({"metadata":{"namespace":"default","labels":
        {"kubernetes.io/service-name":"own"}},"addressType":"IPv4",
        "ports":[{"name":"http","port":8080},{"name":"other","port":1}]})");
    json::Set(slice, {"metadata", "name"}, name);
    json::Set(slice, {"metadata", "labels", "endpointslice.kubernetes.io/managed-by"}, by);
    json::Set(slice, {"endpoints"}, Parse(endpoints));
    api_->Put("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice);
  };
  put("a", "me", R"([{"addresses":["10.1.0.1","10.1.0.2"]},
                     {"addresses":["10.1.0.3"],"conditions":{"ready":false}}])");
  put("b", "me", R"([{"addresses":["10.1.0.2"]},{"addresses":["10.1.0.4"]}])");
  put("c", "endpointslice-controller.k8s.io", R"([{"addresses":["10.1.0.5"]}])");
  sim_.Advance(seconds(1));
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0].backends, (std::vector<ServiceBackend>{
                                    {"10.1.0.1", 8080}, {"10.1.0.2", 8080}, {"10.1.0.4", 8080}}));
  names_.reset();
}

TEST_F(AgentTest, NamesThatChangeWhileASandboxIsMadeReachThePod) {
  agent_.reset();
  names_ = std::make_unique<ServiceNames>(sim_, api_, NodeUser("node-0"));
  names_->Start();
  sim_.Advance(milliseconds(1));
  api_->Put("/api/v1/namespaces/default/services",
            Parse(R"({"metadata":{"name":"leader","namespace":"default"},
                      "spec":{"clusterIP":"None","selector":{"job":"leader"}}})"));
  with_names_ = true;
  Boot();
  auto put = [&](const std::string& name, const std::string& job) {
    json::Value pod = Parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default"},
      "spec":{"nodeName":"node-0","containers":[{"name":"main","image":"x"}]}})");
    json::Set(pod, {"metadata", "name"}, name);
    json::Set(pod, {"metadata", "labels", "job"}, job);
    api_->Put(kPods, pod);
  };
  put("leader", "leader");
  // One of these is being made at the moment when the leader's address becomes known.
  for (int i = 0; i < 24; ++i) {
    put(StrCat("worker-", i), "worker");
    sim_.Advance(std::chrono::microseconds(250));
  }
  sim_.Advance(seconds(1));
  ASSERT_EQ(names_->HostsFor(Pod("leader")).size(), 1u);
  for (int i = 0; i < 24; ++i) {
    std::string name = StrCat("worker-", i);
    const SandboxSpec* sandbox = runtime_.SandboxOfForTest(std::string(api::Uid(Pod(name))));
    ASSERT_NE(sandbox, nullptr) << name;
    EXPECT_EQ(sandbox->hosts.size(), 1u) << name << " never hears of its leader";
  }
  agent_.reset();
}

// ---- the kubelet's endpoints ----

class Answer final : public api::RestSink {
 public:
  void OnResponse(api::RestResponse response) override {
    status = response.status;
    body = response.BodyString();
    ended = true;
  }
  void OnStreamStart(int code, std::string) override { status = code; }
  bool OnChunk(const api::Chunk& chunk) override {
    body += *chunk;
    return true;
  }
  void OnStreamEnd(const swell::Status&) override { ended = true; }
  int status = 0;
  std::string body;
  bool ended = false;
};

TEST_F(AgentTest, KubeletEndpoints) {
  Create("a", R"({"containers":[{"name":"main","image":"x"}]})",
         R"({"annotations":{"swell.dev/log":"Epoch: [1]"}})");
  KubeletHandler handler(*agent_);
  auto ask = [&](const std::string& path, const std::string& query = "") {
    auto sink = std::make_shared<Answer>();
    auto call = handler.Handle({.method = "GET", .path = path, .query = query}, sink);
    sim_.RunPosted();
    EXPECT_TRUE(sink->ended) << path;
    return sink;
  };
  EXPECT_EQ(ask("/healthz")->body, "ok");
  EXPECT_EQ(ask("/containerLogs/default/a/main", "tailLines=1")->body, "Epoch: [1]\n");
  EXPECT_EQ(ask("/containerLogs/default/a/other")->status, 400);
  EXPECT_EQ(ask("/containerLogs/default/b/main")->status, 404);
  EXPECT_EQ(ask("/containerLogs/default/a/main", "tailLines=x")->status, 400);
  EXPECT_EQ(ask("/containerLogs/default/a/main", "previous=true")->status, 400);
  EXPECT_EQ(ask("/exec/default/a/main")->status, 404);
  EXPECT_EQ(ask("/nothing")->status, 404);
  json::Value pods = Parse(ask("/pods")->body);
  EXPECT_EQ(json::GetArray(pods, {"items"}).size(), 1u);
}

// As Kubernetes has it: what was initialized once stays so.
TEST_F(AgentTest, ASidecarThatRestartsTakesNothingBack) {
  const std::string uid = Create("a", R"({"restartPolicy":"Never",
      "initContainers":[{"name":"proxy","image":"x","restartPolicy":"Always"}],
      "containers":[{"name":"main","image":"x"}]})");
  ASSERT_EQ(Phase("a"), "Running");
  // The second failure waits for its back-off.
  for (int attempt = 0; attempt < 2; ++attempt) {
    runtime_.ExitForTest(uid, "proxy", 7);
    sim_.Advance(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_TRUE(api::ConditionIsTrue(Pod("a"), "Initialized"));
  EXPECT_FALSE(api::ConditionIsTrue(Pod("a"), "Ready"));
  EXPECT_TRUE(json::GetBool(Status("a"), {"ready"}));
  // Nor does the end of the main container wait for it.
  runtime_.ExitForTest(uid, "main", 0);
  sim_.Advance(seconds(1));
  EXPECT_EQ(Phase("a"), "Succeeded");
}

}  // namespace
}  // namespace swell::node
