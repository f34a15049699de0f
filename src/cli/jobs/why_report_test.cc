// The sentences of `swell why`, from facts alone.
#include "cli/jobs/why_report.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli {
namespace {

const WallTime kNow = *api::ParseTime("2026-01-01T01:00:00Z");

// A job of two pods with two GPUs each, of which none has a node.
WhyFacts WaitingJob() {
  static const JobKindInfo kKind{client::resources::kPyTorchJobs, "PyTorchJob", "", ""};
  WhyFacts facts;
  facts.now = kNow;
  facts.job.kind = &kKind;
  facts.job.object = std::make_shared<const json::Value>(json::Object{{"kind", "PyTorchJob"}});
  facts.job.name = "mnist";
  facts.job.ns = "team";
  facts.job.status = "Pending";
  facts.job.waits = "no node has 2 free GPUs";
  facts.job.created = api::ParseTime("2026-01-01T00:30:00Z");
  facts.job.replicas = facts.job.least = facts.job.most = 2;
  facts.job.milli_gpus = 4000;
  for (const char* name : {"mnist-master-0", "mnist-worker-0"}) {
    json::Value pod = json::Object{{"status", json::Object{{"phase", "Pending"}}}};
    json::Set(pod, {"metadata"}, json::Object{{"name", name}, {"namespace", "team"}});
    json::Set(pod, {"spec", "containers"},
              json::Array{json::Object{
                  {"name", "c"},
                  {"resources", json::Object{{"limits", json::Object{{"nvidia.com/gpu", "2"}}}}}}});
    facts.job.pods.push_back(std::make_shared<const json::Value>(std::move(pod)));
  }
  return facts;
}

TEST(WhyReport, AGangAboveItsFairShareIsToldThatItCannotReclaim) {
  WhyFacts facts = WaitingJob();
  const auto project = [](const char* name, double quota, double allocated) {
    ProjectView view;
    view.object = std::make_shared<const json::Value>(json::Object{});
    view.name = view.ns = name;
    view.shares[0].quota = quota;
    view.shares[0].allocated = allocated;
    view.shares[0].over = std::max(0.0, allocated - quota);
    view.shares[0].fair_share = quota;
    return view;
  };
  facts.tree.projects = {project("team", 3, 0), project("beta", 4, 8)};
  facts.job.project = "team";
  const std::string line =
      "Reclaim:  other projects hold more than their quotas. team may take back 3 of their GPUs, "
      "up to its fair share of 3; the job needs 4 at once\n";
  EXPECT_NE(WhyText(facts, {}).find(line), std::string::npos) << WhyText(facts, {});
  facts.tree.projects[0] = project("team", 9, 6);
  for (const auto& [held, text] : {std::pair(6, "2 GPUs"), std::pair(5, "1 GPU")}) {
    facts.tree.projects[1] = project("beta", 4, held);
    EXPECT_NE(WhyText(facts, {}).find(StrCat("Reclaim:  other projects hold ", text,
                                             " more than their quotas; the job needs 4 at once\n")),
              std::string::npos)
        << WhyText(facts, {});
  }
  facts.tree.projects = {project("team", 3, 0), project("beta", 4, 8)};
  facts.job.least = 1;  // it may begin with two GPUs
  EXPECT_EQ(WhyText(facts, {}).find("Reclaim:"), std::string::npos);
  facts.job.least = 2;
  facts.tree.projects[1] = project("beta", 8, 8);
  EXPECT_EQ(WhyText(facts, {}).find("Reclaim:"), std::string::npos);
}

// A job of the project `team`, which waits beside a node of eight GPUs.
WhyFacts WaitingOnEightGpus() {
  WhyFacts facts = WaitingJob();
  NodeView node;
  node.object = std::make_shared<const json::Value>(json::Object{});
  node.total.milli_gpus = 8000;
  facts.nodes = {node};
  facts.job.project = "team";
  return facts;
}

ProjectView TeamsProject() {
  ProjectView project;
  project.object = std::make_shared<const json::Value>(json::Object{});
  project.name = project.ns = "team";
  return project;
}

TEST(WhyReport, AProjectAtItsQuotaIsToldThatItTakesNothingFromOthers) {
  WhyFacts facts = WaitingOnEightGpus();
  ProjectView project = TeamsProject();
  project.shares[0].quota = project.shares[0].allocated = 4;
  const auto says = [&](const std::string& text) {
    facts.tree.projects = {project};
    return WhyText(facts, {}).find(text) != std::string::npos;
  };
  const std::string at =
      "; team is at its quota (4 of 4 GPUs), so it cannot take GPUs from other projects\n";
  EXPECT_TRUE(says(at)) << WhyText(facts, {});
  StartForecast promised;  // it takes the place of other work of its project
  promised.now.places = {{"team/mnist-master-0", "node-1", "", false}};
  EXPECT_EQ(WhyText(facts, promised).find("cannot take GPUs"), std::string::npos);
  project.shares[0].fair_share = 6;
  EXPECT_FALSE(says("cannot take GPUs")) << WhyText(facts, {});
  project.shares[0].allocated = 6;
  EXPECT_TRUE(says("; team is over its quota (6 of 4 GPUs)")) << WhyText(facts, {});
  project.shares[0].quota = kUnlimitedShare;
  EXPECT_FALSE(says("cannot take GPUs")) << WhyText(facts, {});
}

TEST(WhyReport, GpusThatWorkOfNoProjectHoldsAreToldToAProjectThatIsOwedThem) {
  WhyFacts facts = WaitingOnEightGpus();
  ProjectView project = TeamsProject();
  project.shares[0].quota = 8;
  project.shares[0].fair_share = 8;
  facts.tree.projects = {project};
  const auto holds = [&facts](std::string_view ns, std::string_view labels) {
    auto pod = json::Parse(StrCat(R"({"metadata":{"name":"p","namespace":")", ns, R"(","labels":{)",
                                  labels, R"(}},"spec":{"containers":[{"name":"c","resources":)",
                                  R"({"limits":{"nvidia.com/gpu":"6"}}}]}})"));
    ASSERT_TRUE(pod.ok()) << pod.status().ToString();
    facts.nodes[0].pods = {std::make_shared<const json::Value>(*std::move(pod))};
  };
  const std::string line =
      "\nReclaim:  work of no project holds 6 GPUs, and no project takes them back from it, until "
      "it has one: swell project create NAME --work-namespace default\n";
  holds("default", "");
  EXPECT_NE(WhyText(facts, {}).find(line), std::string::npos) << WhyText(facts, {});
  StartForecast placed;
  placed.now.places = {{"team/mnist-master-0", "node-1", "", true}};
  EXPECT_EQ(WhyText(facts, placed).find("Reclaim:"), std::string::npos);
  holds("default", R"("kai.scheduler/queue":"team")");
  EXPECT_EQ(WhyText(facts, {}).find("Reclaim:"), std::string::npos);
  holds("team", "");
  EXPECT_EQ(WhyText(facts, {}).find("Reclaim:"), std::string::npos);
  holds("default", "");
  facts.tree.projects[0].shares[0].allocated = 8;
  EXPECT_EQ(WhyText(facts, {}).find("Reclaim:"), std::string::npos) << "it is at its quota";
}

TEST(WhyReport, AQuotaOfMoreGpusThanThereAreIsToldAsSuch) {
  WhyFacts facts = WaitingOnEightGpus();
  ProjectView project = TeamsProject();
  const auto quota_line = [&] {
    facts.tree.projects = {project};
    const std::string text = WhyText(facts, {});
    const size_t begin = text.find("Quota:");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  project.shares[0].quota = 8;
  EXPECT_EQ(quota_line(), "Quota:    team holds 0/8 GPUs, requested 0");
  project.shares[0].quota = 64;
  EXPECT_EQ(quota_line(),
            "Quota:    team holds 0/64 GPUs, requested 0; the quota is 64, but the cluster has 8 "
            "GPUs");
  // Where pools have quotas of their own, these are what counts.
  project.pool_use.resize(2);
  for (const char* name : {"a100", "h100"}) {
    PoolView pool;
    pool.name = name;
    pool.gpus = 4;
    facts.pools.push_back(pool);
    PoolUse& use = project.pool_use[facts.pools.size() - 1];
    use.pool = name;
    use.own_quota = true;
    use.shares[0].quota = 4;
  }
  EXPECT_EQ(quota_line(), "Quota:    team holds 0/64 GPUs, requested 0");
  project.pool_use[1].shares[0].quota = 6;
  EXPECT_EQ(quota_line(),
            "Quota:    team holds 0/64 GPUs, requested 0; the quota is 6, but the pool h100 has 4 "
            "GPUs");
  facts.hidden = true;
  EXPECT_EQ(quota_line(), "Quota:    team holds 0/64 GPUs, requested 0");
}

TEST(WhyReport, WorkWithoutGpusIsShownTheProcessorsAndWhoHoldsThem) {
  WhyFacts facts = WaitingJob();
  facts.job.milli_gpus = 0;
  json::Value pod = json::Object{{"status", json::Object{{"phase", "Pending"}}}};
  json::Set(pod, {"metadata"}, json::Object{{"name", "mnist-master-0"}, {"namespace", "team"}});
  facts.job.pods = {std::make_shared<const json::Value>(pod)};
  json::Set(pod, {"metadata", "name"}, "busy-0");
  json::Set(pod, {"spec", "containers"},
            json::Array{json::Object{
                {"name", "c"},
                {"resources", json::Object{{"requests", json::Object{{"cpu", "3500m"}}}}}}});
  NodeView node;
  node.object = std::make_shared<const json::Value>(json::Object{});
  node.name = "node-1";
  node.ready = true;
  node.total = {.milli_cpu = 4000, .memory = int64_t{8} << 30, .milli_gpus = 4000};
  node.used = {.milli_cpu = 3500, .memory = int64_t{2} << 30, .milli_gpus = 0};
  node.pods = {std::make_shared<const json::Value>(pod)};
  facts.nodes.push_back(node);
  EXPECT_NE(WhyText(facts, {}).find("  NODE    FREE CPUS  FREE MEMORY       HELD BY\n"
                                    "  node-1  500m of 4  6144Mi of 8192Mi  team/busy-0 3500m\n"),
            std::string::npos)
      << WhyText(facts, {});
}

TEST(WhyReport, AMemberThatHasEndedIsNamedWhileOthersRun) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Running";
  facts.job.waits.clear();
  const auto pod = [](std::string_view name, std::string_view phase) {
    json::Value made = json::Object{{"status", json::Object{{"phase", phase}}}};
    json::Set(made, {"metadata", "name"}, name);
    json::Set(made, {"spec", "nodeName"}, "node-1");
    return std::make_shared<const json::Value>(made);
  };
  facts.job.pods = {pod("mnist-worker-0", "Running"), pod("mnist-worker-1", "Running")};
  EXPECT_EQ(WhyText(facts, {}).find("ended with 0"), std::string::npos) << WhyText(facts, {});
  facts.job.pods[1] = pod("mnist-worker-1", "Succeeded");
  EXPECT_NE(WhyText(facts, {}).find("mnist-worker-1 has ended with 0; the others run on, or wait "
                                    "for it"),
            std::string::npos)
      << WhyText(facts, {});
  EXPECT_EQ(facts.job.Reason(),
            "mnist-worker-1 has ended with 0; the others run on, or wait for it");
}

TEST(WhyReport, PodsOfAnotherSchedulerAreNotSwells) {
  WhyFacts facts = WaitingJob();
  facts.job.waits.clear();
  json::Value pod = *facts.job.pods[0];
  json::Set(pod, {"spec", "schedulerName"}, "kube-batch");
  facts.job.pods[0] = std::make_shared<const json::Value>(pod);
  EXPECT_NE(WhyText(facts, {}).find("Why:      another scheduler is responsible for its pods: "
                                    "\"kube-batch\" (schedulerName of its pod template)"),
            std::string::npos)
      << WhyText(facts, {});
}

TEST(WhyReport, NamesTheReasonTheNodesAndWhatWouldStartTheJob) {
  WhyFacts facts = WaitingJob();
  NodeView node;
  node.object = std::make_shared<const json::Value>(json::Object{});
  node.name = "node-1";
  node.ready = true;
  node.total.milli_gpus = 4000;
  node.used.milli_gpus = 3000;
  facts.nodes.push_back(node);
  StartForecast forecast;
  EXPECT_EQ(WhyText(facts, forecast),
            "mnist waits for 4 GPUs in 2 pods of 2, submitted 30m ago.\n"
            "Why:      no node has 2 free GPUs\n"
            "Nodes:\n"
            "  NODE    FREE GPUS  HELD BY\n"
            "  node-1  1 of 4     -\n");
  forecast.now.reason = "1 of 4 GPUs is free";
  forecast.changes = {"one more node like node-1"};
  const std::string text = WhyText(facts, forecast);
  EXPECT_NE(text.find("Why:      1 of 4 GPUs is free\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("It would start, for example, with:\n  one more node like node-1\n"))
      << text;
  forecast.changes.emplace_back("10m more");
  EXPECT_TRUE(WhyText(facts, forecast)
                  .ends_with("It would start, for example, with any one of these:\n"
                             "  one more node like node-1\n  10m more\n"));
  const json::Value document = WhyJson(facts, forecast);
  EXPECT_TRUE(json::GetBool(document, {"waits"}));
  EXPECT_EQ(json::GetString(document, {"reason"}), "1 of 4 GPUs is free");
  EXPECT_EQ(json::GetArray(document, {"wouldStartWith"}).size(), 2U);
}

TEST(WhyReport, PodsThatRequestDifferentNumbersOfGpusAreCountedByThem) {
  WhyFacts facts = WaitingJob();
  json::Value launcher = *facts.job.pods[0];
  json::Remove(launcher, {"spec", "containers"});
  facts.job.pods.insert(facts.job.pods.begin(),
                        std::make_shared<const json::Value>(std::move(launcher)));
  facts.job.replicas = 3;
  EXPECT_TRUE(WhyText(facts, {}).starts_with(
      "mnist waits for 4 GPUs in 3 pods (2 of 2, 1 of none), submitted 30m ago.\n"))
      << WhyText(facts, {});
  facts.job.replicas = 5;  // two are not there yet
  EXPECT_TRUE(
      WhyText(facts, {}).starts_with("mnist waits for 4 GPUs in 5 pods, submitted 30m ago.\n"))
      << WhyText(facts, {});
}

// A node with two GPUs of which these are unhealthy, as its object says.
NodeView UnhealthyNode(const char* name, const char* gpus, const char* said) {
  json::Value object = json::Object{};
  json::Set(object, {"metadata"}, json::Object{{"name", name}, {"labels", json::Object{}}});
  json::Set(object, {"metadata", "labels", "host"}, name);
  json::Set(object, {"metadata", "annotations", "swell.dev/unhealthy-gpus"}, gpus);
  json::Set(object, {"status", "capacity", "nvidia.com/gpu"}, "2");
  json::Set(object, {"status", "conditions"},
            json::Array{json::Object{{"type", "Ready"}, {"status", "True"}},
                        json::Object{{"type", "GpuHealthy"},
                                     {"status", "False"},
                                     {"reason", "GpuUnhealthy"},
                                     {"message", said}}});
  NodeView node;
  node.object = std::make_shared<const json::Value>(std::move(object));
  node.name = name;
  node.ready = true;
  node.total.milli_gpus = 2000;
  node.unhealthy_gpus = static_cast<int64_t>(Split(gpus, ',').size());
  return node;
}

TEST(WhyReport, AJobWhoseFirstPodAsksForNoGpusIsShownTheGpus) {
  WhyFacts facts = WaitingJob();
  json::Value launcher = *facts.job.pods[0];
  json::Remove(launcher, {"spec", "containers"});
  facts.job.pods.insert(facts.job.pods.begin(),
                        std::make_shared<const json::Value>(std::move(launcher)));
  facts.nodes = {UnhealthyNode("node-1", "1", "GPU 1: noisy")};
  EXPECT_NE(WhyText(facts, {}).find("  NODE    FREE GPUS "), std::string::npos)
      << WhyText(facts, {});
}

TEST(WhyReport, NamesTheFaultOfTheNodesThatTheSelectorChooses) {
  WhyFacts facts = WaitingJob();
  facts.nodes = {UnhealthyNode("node-1", "1", "GPU 1: noisy"),
                 UnhealthyNode("node-2", "0,1", "GPU 0: too hot; GPU 1: lost")};
  for (json::SharedValue& pod : facts.job.pods) {
    json::Value chosen = *pod;
    json::Set(chosen, {"spec", "nodeSelector", "host"}, "node-2");
    pod = std::make_shared<const json::Value>(std::move(chosen));
  }
  facts.nodes[1].unhealthy = true;
  EXPECT_EQ(WhyText(facts, {}),
            "mnist waits for 4 GPUs in 2 pods of 2, submitted 30m ago.\n"
            "Why:      no node has 2 free GPUs\n"
            "Nodes:\n"
            "  NODE    FREE GPUS                                   HELD BY\n"
            "  node-2  0 of 2, 2 unhealthy, the node is unhealthy  -\n"
            "  node-2 is unhealthy: GPU 0: too hot; GPU 1: lost; more: swell health node-2\n"
            "  its node selector (host=node-2) excludes 1 more node\n");
}

TEST(WhyReport, NamesTheNodeThatIsSilentOrOnWhichAPodHoldsAnUnhealthyGpu) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Running";
  facts.job.waits.clear();
  facts.nodes = {UnhealthyNode("node-1", "1", "GPU 1: too hot; GPU 3: noisy")};
  for (size_t i = 0; i < facts.job.pods.size(); ++i) {
    json::Value placed = *facts.job.pods[i];
    json::Set(placed, {"spec", "nodeName"}, "node-1");
    json::Set(placed, {"status", "phase"}, "Running");
    json::Set(placed, {"metadata", "annotations", "swell.dev/gpu-devices"}, StrCat(i));
    facts.job.pods[i] = std::make_shared<const json::Value>(std::move(placed));
  }
  EXPECT_EQ(WhyText(facts, {}),
            "mnist runs: 2 of 2 pods, 4 GPUs.\n"
            "Node:     node-1, on which mnist-worker-0 runs, is unhealthy: GPU 1: too hot\n");
  facts.job.pods.pop_back();
  json::Value silent = *facts.nodes[0].object;
  json::Set(silent, {"status", "conditions"},
            json::Array{json::Object{{"type", "Ready"},
                                     {"status", "Unknown"},
                                     {"message", "the agent has not renewed its lease for 44s."}}});
  facts.nodes[0].object = std::make_shared<const json::Value>(std::move(silent));
  const std::string text = WhyText(facts, {});
  EXPECT_NE(text.find("Node:     node-1, on which mnist-master-0 runs, is not ready: the agent has "
                      "not renewed its lease for 44s; if that lasts, the pod is given up\n"),
            std::string::npos)
      << text;
}

TEST(WhyReport, SaysUntilWhenAJobPreemptsNobody) {
  WhyFacts facts = WaitingJob();
  json::Value pod = *facts.job.pods[0];
  json::Set(pod, {"metadata", "annotations", "swell.dev/preempts-from"}, "2026-01-01T01:00:40Z");
  facts.job.pods[0] = std::make_shared<const json::Value>(std::move(pod));
  EXPECT_NE(
      WhyText(facts, {}).find("Held:     its last pods could not be started, or failed soon "
                              "after that, so it preempts nobody until 2026-01-01T01:00:40Z\n"),
      std::string::npos)
      << WhyText(facts, {});
  EXPECT_EQ(json::GetString(WhyJson(facts, {}), {"preemptsFrom"}), "2026-01-01T01:00:40Z");
}

TEST(WhyReport, SaysWhenAPlacedJobStarts) {
  StartForecast forecast;
  forecast.now.places = {{"team/mnist-master-0", "node-1", "0,1"}};
  EXPECT_TRUE(WhyText(WaitingJob(), forecast).ends_with("The scheduler is about to place it.\n"));
  forecast.now.places[0].now = false;
  forecast.now.victims = {{"team/old-0", "team/old", "node-1", "preempt", ""}};
  EXPECT_TRUE(WhyText(WaitingJob(), forecast)
                  .ends_with("It will start when these pods have stopped:\n"
                             "  team/old-0 on node-1\n"));
  // The document says the same as the text.
  forecast.changes = {"one more node like node-1"};
  const json::Value document = WhyJson(WaitingJob(), forecast);
  EXPECT_EQ(json::GetString(document, {"start"}),
            "It will start when these pods have stopped:\n  team/old-0 on node-1");
  EXPECT_TRUE(json::GetArray(document, {"wouldStartWith"}).empty());
}

// A pod of that name on node-1 that had its notice.
json::SharedValue StoppingPod(const std::string& name) {
  json::Value pod = *WaitingJob().job.pods[0];
  json::Set(pod, {"metadata", "name"}, name);
  json::Set(pod, {"metadata", "deletionTimestamp"}, "2026-01-01T01:00:25Z");
  json::Set(pod, {"spec", "nodeName"}, "node-1");
  json::Set(pod, {"status", "phase"}, "Running");
  return std::make_shared<const json::Value>(std::move(pod));
}

TEST(WhyReport, PodsThatLeaveTheRoomOfAPlacedJobAreNamedWithTheirLastMoment) {
  StartForecast forecast;
  forecast.now.places = {{"team/mnist-master-0", "node-1", "", false}};
  WhyFacts facts = WaitingJob();
  NodeView node, other;
  node.name = "node-1";
  node.pods = {facts.job.pods[1], StoppingPod("old-0")};
  other.name = "node-2";
  other.pods = {StoppingPod("elsewhere-0")};
  facts.nodes = {node, other};
  EXPECT_TRUE(WhyText(facts, forecast)
                  .ends_with("It will start when these pods have stopped:\n"
                             "  team/old-0 on node-1, until 2026-01-01T01:00:25Z at the latest\n"))
      << WhyText(facts, forecast);
}

TEST(WhyReport, AJobThatHasItsNoticeDoesNotRun) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Preempted";
  const json::SharedValue waits = facts.job.pods[1];
  facts.job.pods = {StoppingPod("mnist-master-0"), StoppingPod("mnist-worker-0")};
  EXPECT_TRUE(
      WhyText(facts, {}).starts_with("mnist is being stopped: 2 pods have until "
                                     "2026-01-01T01:00:25Z to save and end, 4 GPUs held"))
      << WhyText(facts, {});
  facts.job.pods[1] = waits;
  EXPECT_TRUE(WhyText(facts, {}).starts_with("mnist waits for ")) << WhyText(facts, {});
}

TEST(WhyReport, TellsUsersWithoutTheClusterWhatTheyCannotSee) {
  WhyFacts facts = WaitingJob();
  facts.hidden = true;
  EXPECT_EQ(WhyText(facts, {}),
            "mnist waits for 4 GPUs in 2 pods of 2, submitted 30m ago.\n"
            "Why:      no node has 2 free GPUs\n"
            "Only users who can read the whole cluster see what uses the nodes and what would "
            "start the job.\n");
  EXPECT_EQ(json::GetString(WhyJson(facts, {}), {"start"}),
            "Only users who can read the whole cluster see what uses the nodes and what would "
            "start the job.");
}

TEST(WhyReport, AJobWhoseMembersKeepFailingDoesNotRun) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Running";
  facts.job.waits.clear();
  api::Failure failure{.member = "mnist-worker-0", .container = "c", .role = "container"};
  failure.exit_code = 3;
  failure.waits = "CrashLoopBackOff";
  failure.said = "broken";
  facts.job.failure = failure;
  for (json::SharedValue& pod : facts.job.pods) {
    json::Value placed = *pod;
    json::Set(placed, {"spec", "nodeName"}, "node-1");
    json::Set(placed, {"status", "phase"}, "Running");
    pod = std::make_shared<const json::Value>(std::move(placed));
  }
  EXPECT_EQ(
      WhyText(facts, {}),
      "mnist keeps failing: CrashLoopBackOff, 4 GPUs held.\n"
      "Failure:  mnist-worker-0 failed and starts again: container c exited with 3; its last line: "
      "\"broken\"\n");
  EXPECT_EQ(json::GetString(WhyJson(facts, {}), {"failure", "member"}), "mnist-worker-0");
  facts.job.failure->settles = kNow;
  facts.job.failure->restarts = 1;
  EXPECT_TRUE(WhyText(facts, {}).starts_with(
      "mnist runs again after a failure: 2 of 2 pods, 4 GPUs held.\n"))
      << WhyText(facts, {});
}

// One of its pods has a place, and its image is not there; the other waits for room.
TEST(WhyReport, WhatHasToBeCorrectedStandsBeforeWhatPasses) {
  WhyFacts facts = WaitingJob();
  api::Failure failure{.member = "mnist-master-0", .container = "c", .role = "container"};
  failure.which = api::FailureClass::kCannotStart;
  failure.reason = failure.waits = "ErrImagePull";
  failure.advice = "check the image of container c";
  facts.job.failure = failure;
  json::Value placed = *facts.job.pods[0];
  json::Set(placed, {"spec", "nodeName"}, "node-1");
  facts.job.pods[0] = std::make_shared<const json::Value>(std::move(placed));
  StartForecast forecast;
  forecast.changes = {"1 more node like node-1"};
  EXPECT_EQ(WhyText(facts, forecast),
            "mnist cannot start: ErrImagePull, 2 GPUs held.\n"
            "Failure:  mnist-master-0 cannot start: container c waits with ErrImagePull; check the "
            "image of container c\n");
  EXPECT_TRUE(std::string(json::GetString(WhyJson(facts, forecast), {"reason"}))
                  .starts_with("mnist-master-0 cannot start"));
  // A crash may be a matter of the data: the room still counts.
  facts.job.failure->which = api::FailureClass::kUnknown;
  facts.job.failure->exit_code = 3;
  const std::string text = WhyText(facts, forecast);
  EXPECT_NE(text.find("Why:      no node has 2 free GPUs\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1 more node like node-1"), std::string::npos) << text;
}

TEST(WhyReport, SaysWhenAJobThatFailedAtOnceStartsAgain) {
  WhyFacts facts = WaitingJob();
  facts.job.pods.clear();
  facts.job.status = "Restarting";
  json::Value job = *facts.job.object;
  json::Set(job, {"metadata", "annotations", "swell.dev/starts-from"}, "2026-01-01T01:00:40Z");
  json::Set(job, {"status", "conditions"},
            json::Array{json::Object{{"type", "Restarting"},
                                     {"status", "True"},
                                     {"message", "PyTorchJob mnist starts again. It broke"}}});
  facts.job.object = std::make_shared<const json::Value>(std::move(job));
  facts.trouble = "an older event";
  EXPECT_EQ(WhyText(facts, {}),
            "mnist waits for its next start.\n"
            "Why:      PyTorchJob mnist starts again. It broke\n"
            "Again:    it starts again in 40s, at 2026-01-01T01:00:40Z, and holds no GPUs until "
            "then\n");
  facts.now = facts.now + std::chrono::minutes(1);
  EXPECT_EQ(WhyText(facts, {}).find("Again:"), std::string::npos) << WhyText(facts, {});
}

TEST(WhyReport, AProgramThatNeverRanHasNoLog) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Failed";
  api::Failure failure{.member = "mnist-master-0", .container = "c", .role = "container"};
  failure.which = api::FailureClass::kUserError;
  failure.reason = "StartError";
  failure.exit_code = 127;
  facts.job.failure = failure;
  EXPECT_TRUE(std::string(json::GetString(WhyJson(facts, {}), {"next"}))
                  .starts_with("correct what the message names: its program never ran"));
}

TEST(WhyReport, AJobThatItsControllerRefusedHasNoLog) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Failed";
  facts.job.pods.clear();
  const auto next = [&facts](const char* reason) {
    json::Value job = json::Object{{"kind", "PyTorchJob"}};
    json::Set(
        job, {"status", "conditions"},
        json::Array{json::Object{{"type", "Failed"}, {"status", "True"}, {"reason", reason}}});
    facts.job.object = std::make_shared<const json::Value>(std::move(job));
    const json::Value why = WhyJson(facts, {});
    return std::string(json::GetString(why, {"next"}));
  };
  EXPECT_TRUE(next("InvalidSpec").starts_with("correct what the message names: its program never"));
  EXPECT_TRUE(next("BackoffLimitExceeded").starts_with("swell logs mnist -n team shows"));
  EXPECT_EQ(next("DeadlineExceeded"),
            "submit it again with more time (--time-limit, activeDeadlineSeconds)");
}

TEST(WhyReport, AJobThatRunsAgainTellsWhatItLostBefore) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Running";
  facts.job.waits.clear();
  const auto told = [&facts](std::string_view annotation) {
    for (json::SharedValue& pod : facts.job.pods) {
      json::Value running = *pod;
      json::Set(running, {"status", "phase"}, "Running");
      json::Set(running, {"metadata", "annotations"}, json::Object{{annotation, "x"}});
      pod = std::make_shared<const json::Value>(std::move(running));
    }
    return WhyText(facts, {});
  };
  const std::string all_is_well = told("note");
  facts.job.object = std::make_shared<const json::Value>(json::Object{
      {"status",
       json::Object{{"attempts", json::Array{json::Object{{"result", "Failed"},
                                                          {"ended", "2026-01-01T00:59:00Z"},
                                                          {"message", "w-0 failed"}}}}}}});
  EXPECT_EQ(told("note"),
            all_is_well + "Earlier:  1 attempt failed, the last 60s ago: w-0 failed\n");
  EXPECT_EQ(json::GetString(WhyJson(facts, {}), {"earlier"}),
            "1 attempt failed, the last 60s ago: w-0 failed");
  EXPECT_EQ(json::Find(WhyJson(facts, {}), {"saves"}), nullptr);
  facts.job.group = std::make_shared<const json::Value>(json::Object{
      {"status", json::Object{{"lastPreemption", json::Object{{"rule", "preempt"}}}}}});
  EXPECT_NE(told("note").find("Saves:    it reports no checkpoint"), std::string::npos);
  EXPECT_TRUE(json::GetString(WhyJson(facts, {}), {"saves"}).starts_with("it reports no"));
  EXPECT_EQ(told(api::keys::kCheckpointTime).find("Saves: "), std::string::npos);
}

TEST(WhyReport, DescribesJobsThatDoNotWait) {
  WhyFacts facts = WaitingJob();
  facts.job.status = "Suspended";
  EXPECT_EQ(WhyText(facts, {}), "mnist is suspended; swell resume mnist -n team.\n");
  const auto next = [&facts] {
    const json::Value why = WhyJson(facts, {});
    return std::string(json::GetString(why, {"next"}));
  };
  EXPECT_EQ(next(), "swell resume mnist -n team lets it run again");
  facts.job.status = "Failed";
  facts.job.message = "The worker failed.";
  EXPECT_EQ(WhyText(facts, {}),
            "mnist is over: Failed. The worker failed.\n"
            "Next:     swell logs mnist -n team shows what it printed. It does not start again: "
            "submit a new job when the cause is removed\n");
  facts.job.failure = api::Failure{.member = "mnist-worker-0", .container = "c"};
  EXPECT_TRUE(next().starts_with("swell logs mnist-worker-0 -n team shows")) << next();
  facts.job.failure->advice = "correct the program; more is in: swell logs mnist-worker-0 -n team";
  EXPECT_TRUE(next().starts_with("It does not start again: ")) << next();
  facts.job.failure->HasNoLog();
  EXPECT_TRUE(next().starts_with("It does not start again: ")) << next();
  facts.job.failure.reset();
  facts.job.on_preemption = "Fail";
  EXPECT_TRUE(next().starts_with("swell logs mnist -n team shows")) << next();
  // Its pods and its group may be gone: the job itself says how it ended.
  const json::SharedValue before = facts.job.object;
  json::Value preempted = *before;
  json::Set(preempted, {"status", "conditions"},
            json::Array{json::Object{{"type", "Failed"},
                                     {"status", "True"},
                                     {"reason", "Preempted"},
                                     {"message", "a job came first"}}});
  facts.job.object = std::make_shared<const json::Value>(std::move(preempted));
  EXPECT_EQ(next(),
            "submit it with --on-preemption requeue, so that it waits and continues when it is "
            "preempted");
  EXPECT_TRUE(WhyText(facts, {}).starts_with("mnist is over: Failed: Preempted. ")) << next();
  facts.job.object = before;
  facts.job.status = "Succeeded";
  EXPECT_EQ(next(), "");
  facts.tree.projects = {TeamsProject()};
  facts.job.project = "team";
  EXPECT_EQ(WhyText(facts, {}).find("Quota:"), std::string::npos) << WhyText(facts, {});
  facts.tree.projects.clear();
  facts.job.status = "Pending";
  facts.job.pods.clear();
  facts.trouble = "exceeded quota";
  EXPECT_EQ(WhyText(facts, {}), "mnist has no pods yet.\nWhy:      exceeded quota\n");
}

GoodputView Goodput(const std::string& name, int64_t members, int64_t next) {
  GoodputView view{.name = name, .unit = "records", .members = members, .wanted = 4};
  view.next_percent = next;
  view.sizes = {{1, 100, 1, "measured"}, {2, 190, 1.9, "measured"}, {4, 340, 3.4, "optimistic"}};
  view.fit = "within 3 % of 2 measured sizes";
  view.decision = "Asks for 4 members instead of 2: +79 % goodput expected";
  return view;
}

TEST(GoodputView, KnowsWhetherTheJobIsOver) {
  const auto over = [](const std::string& conditions) {
    const auto job = json::Parse(
        StrCat(R"({"metadata":{"name":"t"},"spec":{"autoscaling":{"mode":"Goodput"}},"status":{)",
               R"("goodput":{"members":2},"conditions":[)", conditions, "]}}"));
    EXPECT_TRUE(job.ok()) << job.status().message();
    return GoodputOf(*job)->over;
  };
  EXPECT_FALSE(over(R"({"type":"Running","status":"True"},{"type":"Failed","status":"False"})"));
  EXPECT_TRUE(over(R"({"type":"Succeeded","status":"True"})"));
  EXPECT_TRUE(over(R"({"type":"Failed","status":"True"})"));
}

TEST(WhyReport, TellsWhatAJobMakesOfItsGpus) {
  WhyFacts facts = WaitingJob();
  facts.goodput = Goodput("mnist", 2, 45);
  GoodputView over = Goodput("over", 3, 60);
  over.over = true;
  facts.others = {Goodput("mnist", 2, 45), over, Goodput("flat", 1, 4), Goodput("scales", 3, 30)};
  const std::string text = WhyText(facts, StartForecast{});
  EXPECT_NE(text.find("Goodput:  2 members make 190 records per second, 1.90 times what 1 makes; "
                      "it tries 4: not measured yet\n"
                      "Curve:    100 records per second with 1, 190 with 2 (now), 340 with 4 "
                      "(assumed, not tried)\n"
                      "Model:    within 3 % of 2 measured sizes\n"
                      "Next GPU: worth +45 % here; scales with 3: +30 %, flat with 1: +4 %\n"
                      "Decided:  Asks for 4 members instead of 2: +79 % goodput expected\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(GoodputTable(*facts.goodput),
            "  MEMBERS  RECORDS/S  SPEEDUP  SOURCE\n"
            "  1        100        1.00     measured\n"
            "  2 (now)  190        1.90     measured\n"
            "  4        340        3.40     assumed, not tried\n"
            "  Next GPU: worth +45 % here\n"
            "  Model:    within 3 % of 2 measured sizes\n"
            "  Decided:  Asks for 4 members instead of 2: +79 % goodput expected\n");
}

TEST(WhyReport, TellsWhyAJobHasItsTypeOfGpu) {
  WhyFacts facts = WaitingJob();
  facts.goodput = Goodput("mnist", 2, 45);
  EXPECT_EQ(WhyText(facts, StartForecast{}).find("GPU type:"), std::string::npos)
      << "there may be one type only";
  facts.goodput->type_decision = "Moved from 2 T4 to 2 A100: +60 % goodput measured";
  constexpr std::string_view kLine =
      "GPU type: Moved from 2 T4 to 2 A100: +60 % goodput measured\n";
  EXPECT_NE(WhyText(facts, StartForecast{}).find(kLine), std::string::npos)
      << WhyText(facts, StartForecast{});
  EXPECT_NE(GoodputTable(*facts.goodput).find(kLine), std::string::npos);
}

TEST(WhyReport, TellsWhereAJobIsOnItsCurve) {
  GoodputView view = Goodput("t", 2, 45);
  view.wanted = view.measured_at = 2;
  view.sizes = {{1, 100, 1, "measured"}, {2, 190, 1.9, "measured"}, {3, 192, 1.92, "measured"}};
  constexpr std::string_view kHere =
      "2 members make 190 records per second, 1.90 times what 1 makes; ";
  EXPECT_EQ(GoodputSentence(view), StrCat(kHere, "it asks for no more: 3 make 1 % more"));
  view.sizes[2] = {3, 180, 1.8, "fitted"};
  EXPECT_EQ(GoodputSentence(view), StrCat(kHere, "it asks for no more: 3 would make 5 % less"));
  view.most = 2;
  EXPECT_EQ(GoodputSentence(view), StrCat(kHere, "that is its maximum"));
  EXPECT_EQ(NextGpuText(view, {}), "worth nothing here");
  view.most = 8;
  view.measured_at = 1;
  view.sizes = {{1, 100, 1, "measured"}, {2, 200, 2, "optimistic"}};
  view.next_percent.reset();
  EXPECT_EQ(GoodputSentence(view),
            "2 members may make 200 records per second, 2.00 times what 1 "
            "makes; this size is being measured");
  EXPECT_EQ(NextGpuText(view, {}), "not known before this size is measured");
  view.members = view.measured_at = 1;
  view.next_percent = 100;
  EXPECT_EQ(GoodputSentence(view),
            "1 member makes 100 records per second; it tries 2: not measured yet");
  EXPECT_EQ(NextGpuText(view, {}), "not tried; worth at best +100 % here");
}

TEST(WhyReport, TellsWhatTheRecordsOfALargerBatchAreWorth) {
  WhyFacts facts = WaitingJob();
  GoodputView view = Goodput("t", 2, 12);
  EXPECT_EQ(NoiseText(view), "") << "all count in full";
  view.wanted = view.measured_at = 2;
  view.noise = 90;
  view.sizes = {{1, 100, 1, "measured", 100},
                {2, 190, 1.35, "measured", 71},
                {4, 340, 1.42, "optimistic", 42}};
  facts.goodput = view;
  EXPECT_NE(WhyText(facts, StartForecast{})
                .find("Goodput:  2 members make 190 records per second, 1.35 times the goodput of "
                      "1; it asks for no more: 4 would make 5 % more goodput\n"
                      "Curve:    100 records per second with 1, 190 with 2 (now; efficiency 71 %), "
                      "340 with 4 (assumed, not tried; efficiency 42 %)\n"
                      "Noise:    90 records: in the batch of 2 members a record is worth 71 % of "
                      "one in that of 1\n"),
            std::string::npos)
      << WhyText(facts, StartForecast{});
  EXPECT_TRUE(GoodputTable(view).starts_with(
      "  MEMBERS  RECORDS/S  EFFICIENCY  GOODPUT  SOURCE\n"
      "  1        100        100 %       1.00     measured\n"
      "  2 (now)  190        71 %        1.35     measured\n"
      "  4        340        42 %        1.42     assumed, not tried\n"
      "  Noise:    90 records: in the batch of 2 members a record is worth 71 % of one in that of "
      "1\n"))
      << GoodputTable(view);
}

TEST(WhyReport, NamesAFewSizesOfALongCurve) {
  GoodputView view = Goodput("t", 10, 5);
  view.wanted = 12;
  view.sizes.clear();
  for (int64_t members = 1; members <= 20; ++members) {
    view.sizes.push_back({members, 10.0 * static_cast<double>(members), 1, "measured"});
  }
  const std::string text = GoodputCurveText(view);
  for (const char* part :
       {"10 records per second with 1,", "100 with 10 (now)", "120 with 12", "200 with 20"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), ','), 7) << text;
}

TEST(WhyReport, ReadsGoodputFromTheStatusOfAJob) {
  const auto job =
      json::Parse(R"({"metadata":{"name":"t"},"spec":{"autoscaling":{"mode":"Goodput"}},
      "status":{"goodput":{"unit":"steps","members":1,"wanted":2,"nextPercent":80,
      "curve":[{"members":1,"perSecond":2.5,"relative":1,"source":"Measured"}]}}})");
  ASSERT_TRUE(job.ok());
  const auto view = GoodputOf(*job);
  ASSERT_TRUE(view);
  EXPECT_EQ(GoodputSentence(*view), "1 member makes 2.50 steps per second; it asks for 2");
  EXPECT_EQ(NextGpuText(*view, {}), "worth +80 % here");
  EXPECT_EQ(GoodputModeText(*view), "Goodput");
  EXPECT_FALSE(GoodputOf(*json::Parse(R"({"status":{"goodput":{}}})")));
  // A default that was given up, and a job that names another mode.
  EXPECT_FALSE(GoodputOf(*json::Parse(R"({"spec":{"autoscaling":{"mode":"None"}},
      "status":{"goodput":{"defaultOf":"the cluster"}}})")));
  const auto by_default =
      GoodputOf(*json::Parse(R"({"status":{"goodput":{"defaultOf":"project team-a"}}})"));
  ASSERT_TRUE(by_default);
  EXPECT_EQ(GoodputModeText(*by_default), "Goodput (default of project team-a)");
}

}  // namespace
}  // namespace swell::cli
