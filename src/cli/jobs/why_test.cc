// What `swell why` says where the scheduler has nothing to say.
#include "cli/cli_test_util.h"
#include "cli/jobs/why_report.h"

namespace swell::cli {
namespace {

class WhyTest : public CliTest {
 protected:
  // A pod that asks for two GPUs.
  void GpuPod(const std::string& name, const std::string& spec, const std::string& meta = "") {
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name, meta, "}, spec: {", spec,
                  "containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}}"));
  }
};

TEST_F(WhyTest, APodOfAnotherSchedulerIsToldAsSuch) {
  GpuPod("p", "schedulerName: nobody, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_EQ(out_,
            "p waits for 2 GPUs, submitted 0s ago.\n"
            "Why:      another scheduler is responsible for it: \"nobody\" (spec.schedulerName)\n");
}

TEST_F(WhyTest, APodWhoseGroupIsNotThereIsNotSaidToBePlacedSoon) {
  for (const std::string scheduler : {"swell", "volcano"}) {
    GpuPod("of-" + scheduler, StrCat("schedulerName: ", scheduler, ", "));
    Status("/api/v1/namespaces/default/pods/of-" + scheduler,
           R"({"status":{"conditions":[{"type":"PodScheduled","status":"False",)"
           R"("reason":"GroupMissing","message":"waits for its PodGroup"}]}})");
    ASSERT_EQ(Run({"swell", "why", "of-" + scheduler}), 0) << err_;
    EXPECT_EQ(out_, StrCat("of-", scheduler,
                           " waits for 2 GPUs, submitted 0s ago.\n"
                           "Why:      waits for its PodGroup\n"));
  }
}

TEST_F(WhyTest, TheGatesOfAPodAreNamed) {
  env_.what_if.simulate = [](const StateView&, WallTime) { return json::Value(json::Object{}); };
  GpuPod("p", "schedulerName: swell, schedulingGates: [{name: example.com/quota}], ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_EQ(out_,
            "p waits for 2 GPUs, submitted 0s ago.\n"
            "Why:      it has scheduling gates, which must be removed first: "
            "example.com/quota\n");
}

TEST_F(WhyTest, WhatTheNodeLastSaidOfAPodThatDoesNotStartIsTold) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  GpuPod("p", "schedulerName: swell, nodeName: node-1, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_EQ(out_, "p starts on node-1: 2 GPUs.\n");
  const auto pod = server_.Send(server_.Request("GET", "/api/v1/namespaces/default/pods/p"));
  Create(
      StrCat("{apiVersion: v1, kind: Event, metadata: {name: e}, involvedObject: {kind: Pod, "
             "name: p, namespace: default, uid: ",
             pod.Str({"metadata", "uid"}),
             "}, type: Warning, reason: FailedMount, message: 'secret \"s\" not found'}"));
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_EQ(out_, "p starts on node-1: 2 GPUs.\nWhy:      secret \"s\" not found\n");
}

TEST_F(WhyTest, APodThatHasANodeIsTheNodesConcern) {
  GpuPod("p", "schedulerName: swell, nodeName: node-9, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_EQ(out_,
            "p starts on node-9: 2 GPUs.\nWhy:      its node \"node-9\" does not exist any more\n");
  Status("/api/v1/namespaces/default/pods/p", R"({"status":{"phase":"Running"}})");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_EQ(out_, "p runs on node-9: 2 GPUs.\n");
}

TEST_F(WhyTest, APodThatFailedIsToBeCreatedAnew) {
  GpuPod("p", "schedulerName: swell, nodeName: node-9, restartPolicy: Never, ");
  Status("/api/v1/namespaces/default/pods/p",
         R"({"status":{"phase":"Failed","containerStatuses":[{"name":"c","image":"i",
             "imageID":"","ready":false,"restartCount":0,
             "state":{"terminated":{"exitCode":3,"reason":"Error"}}}]}})");
  ASSERT_EQ(Run({"swell", "why", "pod/p"}), 0) << err_;
  EXPECT_NE(out_.find("It does not start again: delete it and create it anew when the cause is "
                      "removed"),
            std::string::npos)
      << out_;
}

TEST_F(WhyTest, APodWhoseResizeWaitsSaysWhy) {
  GpuPod("p", "schedulerName: swell, nodeName: node-1, ");
  const auto pending = [this](const std::string& reason) {
    Status("/api/v1/namespaces/default/pods/p",
           StrCat(R"({"status":{"phase":"Running","conditions":[{"type":"PodResizePending",)",
                  R"("status":"True","reason":")", reason, R"(","message":"no room: cpu"}]}})"));
  };
  pending("Infeasible");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_EQ(out_,
            "p runs on node-1: 2 GPUs.\nResize:   p keeps the CPU and memory that it has; its new "
            "size does not fit its node: no room: cpu\n");
  pending("Deferred");
  ASSERT_EQ(Run({"swell", "why", "p", "-o", "json"}), 0) << err_;
  const auto document = json::Parse(out_);
  ASSERT_TRUE(document.ok()) << out_;
  EXPECT_EQ(json::GetString(*document, {"resize"}),
            "p keeps the CPU and memory that it has; its new size waits for room: no room: cpu");
  const std::string document_text = out_;
  ASSERT_EQ(Run({"swell", "why", "p", "--json"}), 0) << err_;
  EXPECT_EQ(out_, document_text);
  EXPECT_EQ(Run({"swell", "why", "p", "--json", "-o", "yaml"}), 2);
  EXPECT_NE(err_.find("--json and --output yaml exclude each other"), std::string::npos) << err_;
}

TEST_F(WhyTest, ABatchJobThatFailedSaysWhichPodDidAndRunsNoLonger) {
  Create(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: bj}, spec: {backoffLimit: 0, template: "
      "{spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}");
  const auto job =
      server_.Send(server_.Request("GET", "/apis/batch/v1/namespaces/default/jobs/bj"));
  Create(
      StrCat("{apiVersion: v1, kind: Pod, metadata: {name: bj-1, ownerReferences: [{apiVersion: "
             "batch/v1, kind: Job, name: bj, controller: true, uid: ",
             job.Str({"metadata", "uid"}),
             "}]}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"));
  const std::string began = api::FormatTime(server_.executor.Now());
  server_.executor.Advance(std::chrono::seconds(5));
  const std::string ended = api::FormatTime(server_.executor.Now());
  Status("/api/v1/namespaces/default/pods/bj-1",
         StrCat(R"({"status":{"phase":"Failed","containerStatuses":[{"name":"c","image":"i",
             "imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1,
             "reason":"Error","finishedAt":")",
                ended, R"("}}}]}})"));
  Status("/apis/batch/v1/namespaces/default/jobs/bj",
         StrCat(R"({"status":{"failed":1,"startTime":")", began,
                R"(","conditions":[{"type":"Failed","status":"True",
                "reason":"BackoffLimitExceeded","lastTransitionTime":")",
                ended, R"(","message":"Job has reached the specified backoff limit"}]}})"));
  server_.executor.Advance(std::chrono::minutes(3));
  ASSERT_EQ(Run({"swell", "why", "bj"}), 0) << err_;
  EXPECT_TRUE(
      out_.starts_with("bj is over: Failed: exit 1. Job has reached the specified backoff "
                       "limit. bj-1 failed: container c exited with 1; "))
      << out_;
  ASSERT_EQ(Run({"swell", "list", "-o", "wide", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find(" 5s "), std::string::npos) << out_;
  EXPECT_NE(out_.find("bj-1 failed: container c exited with 1"), std::string::npos) << out_;
}

// Jobs' pods that are in no group hold GPUs, too.
TEST_F(WhyTest, WhoHoldsWithoutAGroupIsNamedByItsOwner) {
  int cycles = 0;
  env_.what_if.simulate = [&cycles](const StateView& state, WallTime) {
    ++cycles;
    bool held = false;
    for (const json::Value* object : state) held |= api::Name(*object).starts_with("old-");
    json::Value cycle =
        json::Object{{"pods", json::Array{json::Object{{"name", "default/p"},
                                                       {"status", "Pending"},
                                                       {"reason", "all GPUs are held"}}}}};
    if (!held) {
      json::Set(
          cycle, {"decisions"},
          json::Array{json::Object{{"type", "bind"}, {"pod", "default/p"}, {"node", "node-1"}}});
    }
    return json::Value(json::Object{{"cycles", json::Array{std::move(cycle)}}});
  };
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"allocatable":{"nvidia.com/gpu":"4"},
      "conditions":[{"type":"Ready","status":"True"}]}})");
  for (const char* name : {"old-1", "old-2"}) {
    GpuPod(name, "nodeName: node-1, ",
           ", ownerReferences: [{apiVersion: batch/v1, kind: Job, name: old, uid: u, controller: "
           "true}]");
  }
  GpuPod("p", "schedulerName: swell, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("job default/old ends (4 GPUs on node-1)"), std::string::npos) << out_;
  EXPECT_EQ(cycles, 7) << "now, later, without old, with 1, 2, 4 and 8 nodes more: nobody is "
                          "stopped, so once each";
}

// `ends`: what must not be in the state for the pod to start, names joined by "+"; one list of them
// is enough.
WhatIfEngine StartsWithout(std::vector<std::string> ends, int* cycles = nullptr) {
  WhatIfEngine engine;
  engine.simulate = [ends = std::move(ends), cycles](const StateView& state, WallTime) {
    if (cycles != nullptr) ++*cycles;
    std::set<std::string, std::less<>> there;
    for (const json::Value* object : state) there.emplace(api::Name(*object));
    const bool starts = std::any_of(ends.begin(), ends.end(), [&there](const std::string& list) {
      const auto names = Split(list, '+');
      return std::none_of(names.begin(), names.end(),
                          [&there](std::string_view name) { return there.contains(name); });
    });
    json::Object pod{{"name", "default/p"}, {"status", "Pending"}, {"reason", "full."}};
    json::Array decisions;
    if (starts) {
      decisions = {json::Object{{"type", "bind"}, {"pod", "default/p"}, {"node", "node-1"}}};
    }
    return json::Value(
        json::Object{{"cycles", json::Array{json::Object{{"decisions", std::move(decisions)},
                                                         {"pods", json::Array{std::move(pod)}}}}}});
  };
  return engine;
}

TEST_F(WhyTest, NoMoreJobsAreSaidToEndThanAreNeeded) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"allocatable":{"nvidia.com/gpu":"64"},
      "conditions":[{"type":"Ready","status":"True"}]}})");
  for (const char* name : {"a", "b", "c", "d", "e"}) GpuPod(name, "nodeName: node-1, ");
  GpuPod("p", "schedulerName: swell, ");
  const auto line = [this](std::vector<std::string> ends) {
    env_.what_if = StartsWithout(std::move(ends));
    EXPECT_EQ(Run({"swell", "why", "p"}), 0) << err_;
    for (std::string_view one : Split(out_, '\n')) {
      if (one.find(" end") != std::string_view::npos) return std::string(Trim(one));
    }
    return std::string();
  };
  EXPECT_EQ(line({"c"}), "pod default/c ends (2 GPUs on node-1)");
  // The first that are tried together are e, d, c and b, of which two do not help.
  EXPECT_EQ(line({"d+b"}), "pod default/d and pod default/b end (4 GPUs together)");
  // Without those that are not needed of e, d, c and b, three are left; two others are fewer.
  EXPECT_EQ(line({"e+d+b", "c+a"}), "pod default/a and pod default/c end (4 GPUs together)");
  // It is a part of the cluster itself, so nothing that ends helps.
  EXPECT_EQ(line({"node-1"}), "");
}

// Work of another project stands in the way, and the rest would be preempted.
TEST_F(WhyTest, TheOnlyOneThatMayNotBePreemptedIsToldToEnd) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"allocatable":{"nvidia.com/gpu":"8"},
      "conditions":[{"type":"Ready","status":"True"}]}})");
  for (const char* name : {"a", "b", "kept"}) GpuPod(name, "nodeName: node-1, ");
  GpuPod("p", "schedulerName: swell, ");
  env_.what_if.simulate = [](const StateView& state, WallTime) {
    json::Array decisions;
    std::set<std::string, std::less<>> there;
    for (const json::Value* object : state) there.emplace(api::Name(*object));
    if (there.contains("p") && !there.contains("kept")) {
      for (const char* name : {"b", "a"}) {
        if (!there.contains(name)) continue;
        decisions.push_back(
            json::Object{{"type", "evict"}, {"pod", StrCat("default/", name)}, {"node", "node-1"}});
      }
      decisions.push_back(
          json::Object{{"type", "nominate"}, {"pod", "default/p"}, {"node", "node-1"}});
    }
    json::Object pod{{"name", "default/p"}, {"status", "Pending"}, {"reason", "full."}};
    return json::Value(
        json::Object{{"cycles", json::Array{json::Object{{"decisions", std::move(decisions)},
                                                         {"pods", json::Array{std::move(pod)}}}}}});
  };
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("\n  pod default/kept ends (2 GPUs on node-1), when this job may preempt pod "
                      "default/a, pod default/b\n"),
            std::string::npos)
      << out_;
  EXPECT_EQ(out_.find(" together)"), std::string::npos) << out_;
}

TEST_F(WhyTest, WhenItCouldStartIsToldByTheLimitsAndEstimatesOfOthers) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"allocatable":{"nvidia.com/gpu":"8"},
      "conditions":[{"type":"Ready","status":"True"}]}})");
  const WallTime now = server_.executor.Now();
  const auto runs = [&](const std::string& name) {
    Status(StrCat("/api/v1/namespaces/default/pods/", name),
           StrCat(R"({"status":{"phase":"Running","startTime":")", api::FormatTime(now), R"("}})"));
  };
  const std::string on_node = "nodeName: node-1, ";
  GpuPod("early", on_node + "activeDeadlineSeconds: 600, ");
  // It is half done after a hundred steps, and does one in 18 s.
  GpuPod("told", on_node + "activeDeadlineSeconds: 90000, ",
         StrCat(", annotations: {swell.dev/progress: '",
                R"({"ranks":[{"rank":0,"phase":"step","step":100,)",
                R"("totalSteps":200,"stepsPerSecond":0.0555556,"changed":")", api::FormatTime(now),
                R"("}]}'})"));
  GpuPod("late", on_node, ", annotations: {swell.dev/max-run-seconds: '7200'}");
  GpuPod("silent", on_node);
  for (const char* name : {"early", "told", "late", "silent"}) runs(name);
  GpuPod("p", "schedulerName: swell, ");
  const auto start = [&](std::vector<std::string> ends) {
    env_.what_if = StartsWithout(std::move(ends));
    EXPECT_EQ(Run({"swell", "why", "p", "-o", "json"}), 0) << err_;
    const auto document = json::Parse(out_);
    return document.ok() ? std::string(json::GetString(*document, {"start"})) : "no JSON";
  };
  const std::string then = ", if no other work comes before it: by then pod default/";
  EXPECT_EQ(start({"early"}),
            StrCat("It could start in 10m, at ", api::FormatTime(now + std::chrono::seconds(600)),
                   then, "early reaches its time limit."));
  EXPECT_EQ(
      start({"early+told"}),
      StrCat("It could start in 30m, at ", api::FormatTime(now + std::chrono::seconds(1800)), then,
             "early reaches its time limit, and pod default/told ends by its own estimate."));
  const std::string two_hours = api::FormatTime(now + std::chrono::seconds(7200));
  EXPECT_EQ(start({"early+late"}), StrCat("It could start in 120m, at ", two_hours, then,
                                          "early and pod default/late reach their time limits."));
  EXPECT_EQ(start({"late"}),
            StrCat("It could start in 120m, at ", two_hours, then, "late reaches its time limit."))
      << "what ends before and does not help is not named";
  EXPECT_EQ(start({"silent"}), "") << "nobody knows when it ends";
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("\nQueue:    nothing else waits without a project\n"), std::string::npos)
      << out_;
}

TEST_F(WhyTest, OfManyJobsNotEveryPairIsTried) {
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"allocatable":{"nvidia.com/gpu":"200"},
      "conditions":[{"type":"Ready","status":"True"}]}})");
  for (int i = 10; i < 70; ++i) GpuPod(StrCat("q-", i), "nodeName: node-1, ");
  GpuPod("p", "schedulerName: swell, ");
  int cycles = 0;
  // The largest, which is not among the smallest that are tried alone.
  env_.what_if = StartsWithout({"q-68"}, &cycles);
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("  pod default/q-68 ends (2 GPUs on node-1)\n"), std::string::npos) << out_;
  cycles = 0;
  env_.what_if = StartsWithout({"q-69+q-60+q-65"}, &cycles);
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("  pod default/q-69 and pod default/q-65 and pod default/q-60 end (6 GPUs "
                      "together)\n"),
            std::string::npos)
      << out_;
  EXPECT_LT(cycles, 48 + 2 * 12 + 10) << "each costs a cycle of a large cluster";
}

// A cluster whose scheduler binds default/p when some node has as many GPUs, or there are three
// nodes.
struct EnoughGpus {
  int64_t on_one_node = 4;
  bool or_three_nodes = true;

  json::Value operator()(const StateView& state, WallTime) const {
    size_t nodes = 0;
    int64_t most = 0;
    for (const json::Value* object : state) {
      if (api::KindOf(*object) != "Node") continue;
      ++nodes;
      const std::string_view gpus =
          json::GetString(*object, {"status", "allocatable", "nvidia.com/gpu"});
      most = std::max(most, ParseInt(gpus).value_or(0));
    }
    json::Value cycle =
        json::Object{{"pods", json::Array{json::Object{{"name", "default/p"},
                                                       {"status", "Pending"},
                                                       {"reason", "no node has room"}}}}};
    if (most >= on_one_node || (or_three_nodes && nodes >= 3)) {
      json::Set(
          cycle, {"decisions"},
          json::Array{json::Object{{"type", "bind"}, {"pod", "default/p"}, {"node", "node-1"}}});
    }
    return json::Value(json::Object{{"cycles", json::Array{std::move(cycle)}}});
  }
};

TEST_F(WhyTest, ALargerNodeIsProposedWithTheGpusThatAreNeeded) {
  EnoughGpus enough;
  env_.what_if.simulate = std::ref(enough);
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"allocatable":{"nvidia.com/gpu":"2","cpu":"4"},
      "conditions":[{"type":"Ready","status":"True"}]}})");
  Create("{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: g}, spec: {}}");
  for (const char* name : {"p", "q"}) {
    GpuPod(name, "schedulerName: swell, ", ", labels: {swell.dev/pod-group: g}");
  }
  ASSERT_EQ(Run({"swell", "why", "g"}), 0) << err_;
  EXPECT_TRUE(
      out_.ends_with("  2 more nodes like node-1 (2 GPUs each)\n"
                     "  one more node with 4 GPUs\n"))
      << out_;
  enough = {.on_one_node = 5, .or_three_nodes = false};
  ASSERT_EQ(Run({"swell", "why", "g"}), 0) << err_;
  EXPECT_EQ(out_.find("more node"), std::string::npos) << out_;
}

// A pod that asks for more than any node has is helped by no number of such nodes.
TEST_F(WhyTest, APodLargerThanAnyNodeIsToldTheLargestAndWhatWouldHoldIt) {
  env_.what_if.simulate = EnoughGpus{.on_one_node = 2, .or_three_nodes = false};
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  Status("/api/v1/nodes/node-1", R"({"status":{"allocatable":{"nvidia.com/gpu":"1","cpu":"4"},
      "conditions":[{"type":"Ready","status":"True"}]}})");
  GpuPod("p", "schedulerName: swell, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_TRUE(out_.ends_with("  one more node with 2 GPUs (no node has more than 1 GPU)\n"))
      << out_;
}

TEST_F(WhyTest, AnElasticJobThatCouldMakeRoomIsNamedWithItsSize) {
  // Two of its four pods must go.
  env_.what_if.simulate = [](const StateView& state, WallTime) {
    json::Object pod{{"name", "default/p"}, {"status", "Pending"}, {"reason", "full."}};
    json::Array decisions;
    std::string left;
    for (const json::Value* object : state) {
      if (api::Name(*object).starts_with("net-")) left += api::Name(*object);
    }
    if (left.empty() || left == "net-1" || left == "net-1net-2") {
      decisions = {json::Object{{"type", "bind"}, {"pod", "default/p"}, {"node", "node-1"}}};
    }
    return json::Value(
        json::Object{{"cycles", json::Array{json::Object{{"decisions", std::move(decisions)},
                                                         {"pods", json::Array{std::move(pod)}}}}}});
  };
  Create(
      "{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: net}, spec: {podSets: "
      "[{name: worker, minMember: 1}]}}");
  for (const char* name : {"net-1", "net-2", "net-9", "net-10"}) {
    GpuPod(name, "nodeName: node-1, ",
           ", labels: {swell.dev/pod-group: net, swell.dev/pod-set: worker}");
  }
  // It is not a worker, and swell scale does not count it.
  GpuPod("l", "nodeName: node-1, ",
         ", labels: {swell.dev/pod-group: net, swell.dev/pod-set: launcher}");
  GpuPod("p", "schedulerName: swell, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("\n  elastic job default/net shrinks from 4 to 2 members (swell scale)\n"),
            std::string::npos)
      << out_;
}

TEST_F(WhyTest, TheQuotaThatLetsAnElasticJobGrowCountsWhatItHoldsOnce) {
  size_t victims = 1;
  env_.what_if.simulate = [&victims](const StateView& state, WallTime) {
    int64_t quota = 0;
    bool waits = false;  // else nobody would be stopped
    for (const json::Value* object : state) {
      waits |= api::Name(*object) == "net-1";
      if (api::KindOf(*object) != "Project") continue;
      quota = static_cast<int64_t>(
          json::Find(*object, {"spec", "resources", "gpu", "quota"})->to_number<double>());
    }
    json::Array decisions;
    if (waits && quota >= 4) {
      for (size_t i = 0; i < victims; ++i) {
        decisions.push_back(
            json::Object{{"type", "evict"}, {"pod", StrCat("b/old-", i)}, {"node", "node-9"}});
      }
      decisions.push_back(json::Object{{"type", "bind"}, {"pod", "a/net-1"}, {"node", "node-9"}});
    }
    json::Array pods{json::Object{{"name", "a/net-1"}, {"status", "Pending"}, {"reason", "full"}}};
    return json::Value(
        json::Object{{"cycles", json::Array{json::Object{{"decisions", std::move(decisions)},
                                                         {"pods", std::move(pods)}}}}});
  };
  Create(
      "{apiVersion: swell.dev/v1, kind: Project, metadata: {name: a}, spec: {resources: {gpu: "
      "{quota: 2}}}}");
  Create("{apiVersion: v1, kind: Namespace, metadata: {name: a}}");
  Status("/apis/swell.dev/v1/projects/a",
         R"({"status":{"usage":{"gpu":{"quota":2,"allocated":2,"requested":4}}}})");
  Create(
      "{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: net, namespace: a}, spec: "
      "{podSets: [{name: worker, minMember: 1}]}}");
  const std::string meta =
      ", namespace: a, labels: {swell.dev/pod-group: net, swell.dev/pod-set: worker}";
  GpuPod("net-0", "schedulerName: swell, nodeName: node-9, ", meta);
  GpuPod("net-1", "schedulerName: swell, ", meta);
  ASSERT_EQ(Run({"swell", "why", "net", "-n", "a"}), 0) << err_;
  EXPECT_NE(out_.find("\n  a GPU quota of 4 for a, which would stop b/old-0\n"), std::string::npos)
      << out_;
  victims = 2;
  ASSERT_EQ(Run({"swell", "why", "net", "-n", "a"}), 0) << err_;
  EXPECT_NE(out_.find("\n  a GPU quota of 4 for a, which would stop 2 pods, b/old-0 first\n"),
            std::string::npos)
      << out_;
}

TEST_F(WhyTest, AKindAloneIsNoName) {
  EXPECT_EQ(Run({"swell", "why", "pod/"}), 2) << out_;
  EXPECT_NE(err_.find("expected the name of one job"), std::string::npos) << err_;
}

TEST_F(WhyTest, WhatAProjectUsedBeforeIsTold) {
  env_.what_if.simulate = [](const StateView&, WallTime) { return json::Value(json::Object{}); };
  for (const char* name : {"a", "b"}) {
    Create(StrCat("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: ", name,
                  "}, spec: {resources: {gpu: {quota: 0}}}}"));
    Create(StrCat("{apiVersion: v1, kind: Namespace, metadata: {name: ", name, "}}"));
  }
  Status("/apis/swell.dev/v1/projects/a", R"({"status":{"pastUse":{"asOf":"2026-01-01T00:00:00Z",
      "pools":[{"pool":"","gpuHours":90.04},{"pool":"x","gpuHours":6}]}}})");
  Status("/apis/swell.dev/v1/projects/b", R"({"status":{"pastUse":{"asOf":"2026-01-01T00:00:00Z",
      "pools":[{"pool":"","gpuHours":24}]}}})");
  GpuPod("p", "schedulerName: swell, ", ", namespace: a");
  ASSERT_EQ(Run({"swell", "why", "p", "-n", "a"}), 0) << err_;
  EXPECT_NE(out_.find("its past use counts as 96 GPU-hours, of 120 GPU-hours at its level"),
            std::string::npos)
      << out_;
  ASSERT_EQ(Run({"swell", "top", "project"}), 0) << err_;
  EXPECT_NE(out_.find("PAST USE"), std::string::npos) << out_;
  EXPECT_NE(out_.find("24 GPU-hours"), std::string::npos) << out_;
}

TEST_F(WhyTest, APodGroupThatNoJobMadeIsFoundByItsName) {
  Create("{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: g}, spec: {}}");
  for (const char* name : {"a", "b"}) {
    GpuPod(name, "schedulerName: swell, nodeName: node-9, ", ", labels: {swell.dev/pod-group: g}");
    Status(StrCat("/api/v1/namespaces/default/pods/", name), R"({"status":{"phase":"Running"}})");
  }
  for (const char* name : {"g", "podgroup/g"}) {
    ASSERT_EQ(Run({"swell", "why", name}), 0) << err_;
    EXPECT_EQ(out_, "g runs: 2 of 2 pods, 4 GPUs.\n");
  }
}

TEST_F(WhyTest, AJobOfAnotherNamespaceIsPointedTo) {
  Create("{apiVersion: v1, kind: Namespace, metadata: {name: team}}");
  ASSERT_EQ(Run({"swell", "submit", "j", "-n", "team", "-i", "img", "--", "true"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "why", "j"}), 1);
  EXPECT_EQ(err_,
            "swell: job \"j\" not found in namespace \"default\"; it exists in team (use -n)\n");
  EXPECT_EQ(Run({"swell", "why", "tfjob/j", "-n", "team"}), 1);
  EXPECT_EQ(err_,
            "swell: tfjob \"j\" not found in namespace \"team\"; there is "
            "pytorchjob.kubeflow.org/j\n");
  EXPECT_EQ(Run({"swell", "why", "k"}), 1);
  EXPECT_EQ(err_,
            "swell: job \"k\" not found in namespace \"default\"; swell list shows the jobs\n");
}

TEST_F(WhyTest, OfAWorkloadOfKubernetesAPodThatWaitsIsExplained) {
  env_.what_if.simulate = [](const StateView&, WallTime) { return json::Value(json::Object{}); };
  Create(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: "
      "{matchLabels: "
      "{app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, "
      "image: "
      "i}]}}}}");
  for (const char* name : {"web", "deploy/web"}) {
    EXPECT_EQ(Run({"swell", "why", name}), 1);
    EXPECT_EQ(err_, "swell: deployment/web has no pods\n");
  }
  EXPECT_EQ(Run({"swell", "list", "web"}), 1);
  EXPECT_EQ(err_,
            "swell: job \"web\" not found in namespace \"default\"; Deployment \"web\" is not a "
            "job; swell why web explains its pods\n");
  GpuPod("web-1", "nodeName: node-9, ", ", labels: {app: web}");
  Status("/api/v1/namespaces/default/pods/web-1", R"({"status":{"phase":"Running"}})");
  ASSERT_EQ(Run({"swell", "why", "web"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("web-1 runs")) << out_;
  GpuPod("web-2", "schedulerName: swell, ", ", labels: {app: web}");
  for (const char* name : {"web", "deploy/web"}) {
    ASSERT_EQ(Run({"swell", "why", name}), 0) << err_;
    EXPECT_TRUE(out_.starts_with("web-2 waits")) << out_;
  }
}

TEST_F(WhyTest, AMinimumThatTheJobCannotHaveIsTold) {
  Create(
      "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: "
      "{schedulingPolicy: {minAvailable: 5}}, pytorchReplicaSpecs: {Worker: {replicas: 2, "
      "template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}");
  ASSERT_EQ(Run({"swell", "why", "j"}), 0) << err_;
  EXPECT_NE(out_.find("Minimum:  minAvailable is 5, but the job has 2 members; all of "
                      "them start together\n"),
            std::string::npos)
      << out_;
}

TEST_F(WhyTest, RoomThatIsNotForEverybodyIsMarked) {
  env_.what_if.simulate = [](const StateView&, WallTime) { return json::Value(json::Object{}); };
  Create(
      "{apiVersion: v1, kind: Node, metadata: {name: full}, spec: {unschedulable: true, taints: "
      "[{key: dedicated, value: x, effect: NoSchedule}, {key: soft, effect: PreferNoSchedule}]}}");
  Status("/api/v1/nodes/full", R"({"status":{"allocatable":{"nvidia.com/gpu":"4"},)"
                               R"("conditions":[{"type":"Ready","status":"True"}]}})");
  GpuPod("p", "schedulerName: swell, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("  full  4 of 4, cordoned, tainted dedicated=x  -\n"), std::string::npos)
      << out_;
}

TEST_F(WhyTest, ACordonedNodeWithRoomIsNamed) {
  env_.what_if.simulate = [](const StateView& state, WallTime) {
    json::Object pod{{"name", "default/p"}, {"status", "Pending"}, {"reason", "no node."}};
    json::Array decisions;
    for (const json::Value* object : state) {
      const bool open = !json::GetBool(*object, {"spec", "unschedulable"}) &&
                        json::GetArray(*object, {"spec", "taints"}).empty();
      if (api::Name(*object) != "large" || !open) continue;
      decisions = {json::Object{{"type", "bind"}, {"pod", "default/p"}, {"node", "large"}}};
    }
    return json::Value(
        json::Object{{"cycles", json::Array{json::Object{{"decisions", std::move(decisions)},
                                                         {"pods", json::Array{std::move(pod)}}}}}});
  };
  for (const char* name : {"a-small", "large"}) {
    Create(StrCat("{apiVersion: v1, kind: Node, metadata: {name: ", name,
                  "}, spec: {unschedulable: true, taints: "
                  "[{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}"));
    Status(StrCat("/api/v1/nodes/", name), R"({"status":{"allocatable":{"nvidia.com/gpu":"4"},)"
                                           R"("conditions":[{"type":"Ready","status":"True"}]}})");
  }
  GpuPod("p", "schedulerName: swell, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_NE(out_.find("It would start, for example, with:\n"
                      "  node large is uncordoned (kubectl uncordon large)\n"),
            std::string::npos)
      << out_;
}

TEST_F(WhyTest, RoomThatWasPromisedBeforeNeedsNoChange) {
  env_.what_if.simulate = [](const StateView&, WallTime) {
    json::Object pod{{"name", "default/p"}, {"status", "Nominated"}, {"node", "node-1"}};
    return json::Value(
        json::Object{{"cycles", json::Array{json::Object{{"decisions", json::Array{}},
                                                         {"pods", json::Array{std::move(pod)}}}}}});
  };
  GpuPod("p", "schedulerName: swell, ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_TRUE(out_.ends_with("It will start when the pods that it preempts have stopped.\n"))
      << out_;
}

TEST_F(WhyTest, AVolumeThatIsBeingMadeIsWaitedFor) {
  env_.what_if.simulate = [](const StateView&, WallTime) {
    return json::Value(json::Object{
        {"cycles",
         json::Array{json::Object{
             {"decisions", json::Array{json::Object{
                               {"type", "bind"}, {"pod", "default/p"}, {"node", "node-1"}}}}}}}});
  };
  Create(
      "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, annotations: "
      "{volume.kubernetes.io/selected-node: node-1, "
      "volume.kubernetes.io/storage-provisioner: disk.example.com}}, spec: {accessModes: "
      "[ReadWriteOnce], storageClassName: disk, resources: {requests: {storage: 1Gi}}}}");
  GpuPod("p",
         "schedulerName: swell, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], ");
  ASSERT_EQ(Run({"swell", "why", "p"}), 0) << err_;
  EXPECT_TRUE(
      out_.ends_with("It has a place, and waits for its volume on node-1 "
                     "(persistentvolumeclaim \"data\"), which disk.example.com is to "
                     "make.\n"))
      << out_;
}

TEST_F(WhyTest, WhatTimeAloneBringsIsTold) {
  GpuPod("p", "schedulerName: swell, ");
  GpuPod("q", "schedulerName: swell, nodeName: node-1, ", ", labels: {swell.dev/pod-group: g}");
  const WallTime free_at = server_.executor.Now() + std::chrono::seconds(300);
  // A scheduler that may stop the other pod when its minimum run time is over.
  env_.what_if.simulate = [free_at](const StateView& state, WallTime now) {
    json::Array decisions;
    json::Object pod{{"name", "default/p"}, {"status", "Pending"}, {"reason", "protected."}};
    bool there = false;
    for (const json::Value* object : state) there |= api::Name(*object) == "p";
    if (there && now >= free_at) {
      decisions = {json::Object{{"type", "evict"}, {"pod", "default/q"}, {"node", "node-1"}},
                   json::Object{{"type", "nominate"}, {"pod", "default/p"}, {"node", "node-1"}}};
    }
    return json::Value(
        json::Object{{"cycles", json::Array{json::Object{{"decisions", std::move(decisions)},
                                                         {"pods", json::Array{std::move(pod)}}}}}});
  };
  ASSERT_EQ(Run({"swell", "why", "p", "-o", "json"}), 0) << err_;
  const auto told = json::Parse(out_);
  ASSERT_TRUE(told.ok()) << out_;
  const json::Array& changes = json::GetArray(*told, {"wouldStartWith"});
  ASSERT_EQ(changes.size(), 1u) << out_;
  EXPECT_EQ(json::Print(changes[0]), "\"5m more, when it may preempt default/g\"");
}

TEST_F(WhyTest, PodsThatADeletedJobLeftAreNamedWithWhatEndsThem) {
  const auto pod = [](std::string_view uid) {
    return StrCat(
        ", ownerReferences: [{apiVersion: swell.dev/v1, kind: TrainingJob, name: j, uid: ", uid,
        ", controller: true}]");
  };
  GpuPod("j-worker-0", "nodeName: node-1, ", pod("old"));
  Status("/api/v1/namespaces/default/pods/j-worker-0", R"({"status":{"phase":"Running"}})");
  ASSERT_EQ(Run({"swell", "delete", "pod", "j-worker-0", "--wait=false"}), 0) << err_;
  const std::string left =
      StrCat("pod j-worker-0 of the deleted job j has until ",
             api::FormatTime(server_.executor.Now() + std::chrono::seconds(30)),
             " to save and end; at once: swell delete pod j-worker-0 --now -n default\n");
  for (const char* command : {"why", "delete", "logs"}) {
    EXPECT_EQ(Run({"swell", command, "j"}), 1) << out_;
    EXPECT_EQ(err_, StrCat("swell: job \"j\" not found in namespace \"default\"; ", left));
  }
  Create(
      "{apiVersion: swell.dev/v1, kind: TrainingJob, metadata: {name: j}, spec: {roles: {worker: "
      "{replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}}}}");
  ASSERT_EQ(Run({"swell", "why", "j"}), 0) << err_;
  EXPECT_EQ(out_, StrCat("j has no pods yet.\nWhy:      ", left));
}

TEST_F(WhyTest, ManyPodsThatADeletedJobLeftAreCounted) {
  for (const char* name : {"j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3", "j-worker-4"}) {
    GpuPod(name, "nodeName: node-1, ",
           ", labels: {swell.dev/pod-group: j}, ownerReferences: [{apiVersion: swell.dev/v1, kind: "
           "TrainingJob, name: j, uid: old, controller: true}]");
    Status(StrCat("/api/v1/namespaces/default/pods/", name), R"({"status":{"phase":"Running"}})");
    ASSERT_EQ(Run({"swell", "delete", "pod", name, "--wait=false"}), 0) << err_;
  }
  const std::string end = api::FormatTime(server_.executor.Now() + std::chrono::seconds(30));
  const std::string left =
      StrCat("pods j-worker-0, j-worker-1, j-worker-2 and 2 more of the deleted job j have until ",
             end, " to save and end; at once: swell delete pod");
  EXPECT_EQ(Run({"swell", "why", "j"}), 1) << out_;
  EXPECT_EQ(err_, StrCat("swell: job \"j\" not found in namespace \"default\"; ", left,
                         "s -l swell.dev/pod-group=j --now -n default\n"));
  // The new job's pods have that label, too.
  Create(
      "{apiVersion: swell.dev/v1, kind: TrainingJob, metadata: {name: j}, spec: {roles: {worker: "
      "{replicas: 5, template: {spec: {containers: [{name: c, image: i}]}}}}}}");
  ASSERT_EQ(Run({"swell", "why", "j"}), 0) << err_;
  EXPECT_EQ(out_, StrCat("j has no pods yet.\nWhy:      ", left,
                         " --now -n default with the names of them all\n"));
}

TEST(WhyReport, AJobThatGrowsTellsWhatItsOtherPodsWaitFor) {
  static const JobKindInfo kKind{client::resources::kPyTorchJobs, "PyTorchJob", "", ""};
  WhyFacts facts;
  facts.job.kind = &kKind;
  facts.job.object = std::make_shared<const json::Value>(json::Object{{"kind", "PyTorchJob"}});
  facts.job.name = "mnist";
  facts.job.status = "Running";  // nothing in it says that it waits
  facts.job.replicas = 2;
  for (const char* pod :
       {R"({"metadata":{"name":"mnist-0"},"spec":{"nodeName":"n"},"status":{"phase":"Running"}})",
        R"({"metadata":{"name":"mnist-1"},"spec":{"schedulerName":"swell"},"status":{
            "phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
            "message":"user alice would exceed the limit of 1 GPU"}]}})"}) {
    facts.job.pods.push_back(std::make_shared<const json::Value>(*json::Parse(pod)));
  }
  facts.hidden = true;
  EXPECT_EQ(WhyText(facts, {}),
            "mnist runs with 1 of 2 pods; the others wait.\n"
            "Why:      user alice would exceed the limit of 1 GPU\n"
            "Only users who can read the whole cluster see what uses the nodes and what would "
            "let the job grow.\n");
  facts.hidden = false;
  const StartForecast forecast{
      .could_start = CouldStart{.at = facts.now + std::chrono::minutes(4), .ends = {}}};
  EXPECT_NE(WhyText(facts, forecast).find("\nIt could grow in 4m, at "), std::string::npos)
      << WhyText(facts, forecast);
}

}  // namespace
}  // namespace swell::cli
