// Views: what they show, to whom, and how often they are made.
#include <cmath>

#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/user.h"
#include "kube/client/usage_record.h"
#include "ui/history/history_keeper.h"
#include "ui/ui_test_util.h"

namespace swell::ui {
namespace {

class ViewsTest : public PagesTest {
 protected:
  ViewsTest() {
    Project("vision");
    Project("speech");
    Researcher("jane", "vision");
    Node("node-1", 4);
    Job("vision", "see");
    Pod("vision", "see", 0, "node-1");
    Pod("vision", "see", 1, "node-1");
    Job("speech", "hear", 3);
    Settle();
  }

  // "NAME STATUSTEXT of STATUS; " of each.
  static std::string Failing(const json::Value& overview) {
    std::string text;
    for (const json::Value& one : json::GetArray(overview, {"failing", "rows"})) {
      text += StrCat(json::GetString(one, {"name"}), " ", json::GetString(one, {"statusText"}),
                     " of ", json::GetString(one, {"status"}), "; ");
    }
    return text;
  }
  static int64_t Held(const json::Value& data) { return json::GetInt(data, {"gpus", "held"}, -1); }
};

TEST_F(ViewsTest, AnAdministratorSeesAll) {
  EXPECT_EQ(Names("workloads", "admin-token"), "hear see");
  EXPECT_EQ(Names("projects", "admin-token"), "speech vision");
  const json::Value overview = See("overview", "admin-token");
  EXPECT_EQ(json::GetInt(overview, {"gpus", "total"}), 4);
  EXPECT_EQ(Held(overview), 2);
  EXPECT_EQ(json::GetInt(overview, {"gpus", "free"}), 2);
  // One has pods that run, whatever its status says.
  EXPECT_EQ(json::GetInt(overview, {"jobs", "running"}), 1);
  EXPECT_EQ(json::GetInt(overview, {"jobs", "pending"}), 1);
  EXPECT_EQ(json::Find(overview, {"partial"}), nullptr);
}

TEST_F(ViewsTest, AResearcherSeesTheirProjectsWorkAndThatThereIsMore) {
  EXPECT_EQ(Names("workloads", "jane-token"), "see");
  EXPECT_TRUE(json::GetBool(See("workloads", "jane-token"), {"partial"}));
  // Nodes and projects are everybody's to see; whose pods are on them is not.
  EXPECT_EQ(Names("nodes", "john-token"), "node-1");
  const json::Value nodes = See("nodes", "john-token");
  EXPECT_TRUE(json::GetArray(json::GetArray(nodes, {"rows"})[0], {"pods"}).empty());
  EXPECT_EQ(json::Print(nodes).find("see"), std::string::npos);
  EXPECT_EQ(json::Print(See("overview", "john-token")).find("see"), std::string::npos);
}

TEST_F(ViewsTest, WhatOthersHoldIsNotFreeAndTheirsIsNotNamed) {
  const json::Value nodes = See("nodes", "john-token");
  const json::Value& node = json::GetArray(nodes, {"rows"})[0];
  EXPECT_EQ(json::Print(*json::Find(node, {"gpus"})), R"({"total":4,"held":2,"free":2})");
  std::string shares;
  for (const json::Value& gpu : json::GetArray(node, {"gpuDevices"})) {
    shares += StrCat(json::Print(*json::Find(gpu, {"share"})), " ",
                     json::Print(*json::Find(gpu, {"pod"})), ", ");
  }
  EXPECT_EQ(shares, "1 null, 1 null, 0 null, 0 null, ");
  const json::Value overview = See("overview", "john-token");
  EXPECT_EQ(Held(overview), 2);
  EXPECT_EQ(json::GetInt(overview, {"gpus", "free"}), 2);
  EXPECT_TRUE(json::GetBool(overview, {"partial"}));
}

TEST_F(ViewsTest, WhoSeesTheNodesSeesWhatWasPreemptedAsInTheHistory) {
  client::UsageDay day;
  day.date = client::UsageDate(server_.executor.Now());
  client::UsageRow& row = day.Row("speech", "sam", 0);
  row.preempted = 3;
  row.lost_gpu_s = 120.4;
  const std::string ns(client::kUsageNamespace);
  Create("/api/v1/namespaces", StrCat(R"({"metadata":{"name":")", ns, R"("}})"));
  Create(StrCat("/api/v1/namespaces/", ns, "/configmaps"), json::Print(day.ToConfigMap(ns)));
  Settle();
  for (const char* token : {"admin-token", "jane-token", "john-token"}) {
    const json::Value overview = See("overview", token);
    EXPECT_EQ(json::GetInt(overview, {"preemptionsToday"}), 3) << token;
    EXPECT_EQ(json::GetInt(overview, {"lostGpuSecondsToday"}), 120) << token;
  }
}

TEST_F(ViewsTest, OnlyAdministratorsSeeUsers) {
  EXPECT_EQ(board_.Read("users", {}, RightsOf("jane-token")).status().code(), Code::kForbidden);
  EXPECT_EQ(Names("users", "admin-token"), "");
}

TEST_F(ViewsTest, AProjectsMembersAreItsOwnAndThoseThatWereMadeWithUsers) {
  Patch("/apis/swell.dev/v1/projects/vision",
        R"({"spec":{"members":[{"kind":"Group","name":"leads","role":"viewer"}]}})");
  api::RegisteredUser ada;
  ada.name = "ada";
  ada.role = "researcher";
  ada.projects = {"vision"};
  json::Value secret = ada.ToSecret();
  json::Set(secret, {"metadata", "name"}, "user-ada");
  Create("/api/v1/namespaces/kube-system/secrets", json::Print(secret));
  Settle();
  const auto members = [this](const std::string& token) {
    const json::Value data = See("projects", token);
    std::string text = json::GetBool(data, {"membersPartial"}) ? "partial " : "";
    for (const json::Value& one : json::GetArray(json::GetArray(data, {"rows"})[1], {"members"})) {
      text += StrCat(json::GetString(one, {"name"}), "/", json::GetString(one, {"role"}), " of ",
                     json::GetString(one, {"source"}), " ");
    }
    return text;
  };
  EXPECT_EQ(members("admin-token"), "leads/viewer of Project ada/researcher of User ");
  EXPECT_EQ(members("jane-token"), "partial leads/viewer of Project ");
}

TEST_F(ViewsTest, AProjectTellsWhatItHoldsInEachOfItsPools) {
  Patch("/apis/swell.dev/v1/projects/vision",
        R"({"spec":{"nodePools":[{"name":"a100","resources":{"gpu":{"quota":4}}},)"
        R"({"name":"h100","resources":{"gpu":{"quota":2}}}]}})");
  Status("/apis/swell.dev/v1/projects/vision",
         R"({"status":{"pools":[{"name":"a100","usage":{"gpu":{"quota":4,"allocated":3,)"
         R"("requested":5,"fairShare":4}}}]}})");
  Settle();
  const json::Value data = See("projects", "admin-token");
  const json::Array& pools = json::GetArray(json::GetArray(data, {"rows"})[1], {"pools"});
  ASSERT_EQ(pools.size(), 2u);
  const auto amount = [](const json::Value& pool, std::string_view field) {
    return json::Print(*json::Find(pool, {"gpu", field}));
  };
  EXPECT_EQ(amount(pools[0], "held"), "3");
  EXPECT_EQ(amount(pools[0], "requested"), "5");
  EXPECT_EQ(amount(pools[0], "fairShare"), "4");
  EXPECT_EQ(amount(pools[1], "held"), "null") << "the scheduler has not told it yet";
}

TEST_F(ViewsTest, ANodeTellsWhoHoldsEachGpu) {
  const json::Value nodes = See("nodes", "admin-token");
  std::string text;
  for (const json::Value& gpu :
       json::GetArray(json::GetArray(nodes, {"rows"})[0], {"gpuDevices"})) {
    text += StrCat(json::GetString(gpu, {"job"}, "-"), " ");
  }
  EXPECT_EQ(text, "see see - - ");
}

TEST_F(ViewsTest, HowManyJobsOfAProjectRunIsUnknownToThoseWhoMayNotSeeThem) {
  const auto pending = [this](const std::string& token) {
    std::string text;
    const json::Value data = See("projects", token);
    for (const json::Value& row : json::GetArray(data, {"rows"})) {
      text +=
          StrCat(json::GetString(row, {"name"}), " ", json::Print(*json::Find(row, {"running"})),
                 " ", json::Print(*json::Find(row, {"pending"})), " ");
    }
    return text;
  };
  EXPECT_EQ(pending("admin-token"), "speech 0 1 vision 1 0 ");
  EXPECT_EQ(pending("jane-token"), "speech null null vision 1 0 ");
}

TEST_F(ViewsTest, AnUnhealthyGpuThatAPodHoldsCountsOnceAndIsNamed) {
  Status("/api/v1/nodes/node-1",
         R"({"status":{"allocatable":{"nvidia.com/gpu":"3"},"conditions":[
             {"type":"Ready","status":"True"},{"type":"GpuHealthy","status":"False",
              "reason":"GpuUnhealthy","message":"GPU 1: too hot"}]}})");
  api::RestRequest patch =
      server_.Request("PATCH", "/api/v1/nodes/node-1",
                      R"({"metadata":{"annotations":{"swell.dev/unhealthy-gpus":"1"}}})",
                      "application/merge-patch+json");
  patch.user = {.name = "root", .groups = {"system:masters"}};
  ASSERT_EQ(server_.Send(std::move(patch)).status, 200);
  Settle();
  const json::Value nodes = See("nodes", "admin-token");
  const json::Value& node = json::GetArray(nodes, {"rows"})[0];
  std::string text;
  for (const json::Value& gpu : json::GetArray(node, {"gpuDevices"})) {
    text += StrCat(json::GetString(gpu, {"health"}), " ");
  }
  EXPECT_EQ(text, "Healthy Unhealthy Healthy Healthy ");
  EXPECT_EQ(json::Print(*json::Find(node, {"gpus"})), R"({"total":4,"held":2,"free":2})");
  EXPECT_EQ(json::GetString(node, {"reason"}), "GPU 1: too hot");
  EXPECT_EQ(json::GetInt(See("overview", "admin-token"), {"gpus", "free"}), 2);
}

TEST_F(ViewsTest, AWorkloadTellsItsSizeAndGpus) {
  const json::Value all = See("workloads", "admin-token");
  const json::Value& see = json::GetArray(all, {"rows"})[1];
  EXPECT_EQ(json::Print(*json::Find(see, {"members"})),
            R"({"running":2,"requested":2,"min":2,"max":2})");
  EXPECT_EQ(json::Print(*json::Find(see, {"gpus"})), R"({"requested":2,"held":2})");
  EXPECT_EQ(json::GetString(see, {"project"}), "vision");
  EXPECT_EQ(json::GetString(see, {"plural"}), "pytorchjobs");
}

TEST_F(ViewsTest, WhatIsNotThereIsRefused) {
  EXPECT_EQ(board_.Read("nothing", {}, RightsOf("admin-token")).status().code(), Code::kNotFound);
}

TEST_F(ViewsTest, AViewIsMadeOncePerChangeForAllWhoSeeTheSame) {
  const auto rights = RightsOf("admin-token");
  int heard = 0;
  for (int tab = 0; tab < 10; ++tab) {
    ASSERT_TRUE(board_.Listen("nodes", {}, rights, [&heard](const auto&) { ++heard; }).ok());
  }
  EXPECT_EQ(heard, 10);
  const uint64_t before = board_.made();
  Node("node-2", 8);
  Settle();
  EXPECT_EQ(board_.made() - before, 1U);
  EXPECT_EQ(heard, 20);
}

TEST_F(ViewsTest, ManyChangesAreToldTogether) {
  int heard = 0;
  ASSERT_TRUE(
      board_.Listen("nodes", {}, RightsOf("admin-token"), [&heard](const auto&) { ++heard; }).ok());
  heard = 0;
  for (int i = 0; i < 30; ++i) {
    Node(StrCat("more-", i), 1);
    server_.executor.Advance(std::chrono::milliseconds(10));
  }
  Settle();
  EXPECT_GE(heard, 1);
  EXPECT_LE(heard, 3);
}

TEST_F(ViewsTest, NothingIsMadeWhenNothingChanges) {
  ASSERT_TRUE(board_.Listen("overview", {}, RightsOf("admin-token"), [](const auto&) {}).ok());
  Settle();
  const uint64_t before = board_.made();
  server_.executor.Advance(std::chrono::minutes(30));
  EXPECT_EQ(board_.made(), before);
}

TEST_F(ViewsTest, AJobThatWasStoppedWaitsSinceThen) {
  server_.executor.Advance(std::chrono::minutes(5));
  Status("/apis/kubeflow.org/v1/namespaces/speech/pytorchjobs/hear",
         R"({"status":{"startTime":"2026-01-01T00:00:02Z","conditions":[{"type":"Preempted",)"
         R"("status":"True"}],"attempts":[{"member":"hear-worker-0","uid":"old","attempt":1,)"
         R"("started":"2026-01-01T00:00:02Z","ended":"2026-01-01T00:04:00Z"}]}})");
  Settle();
  const json::Value workloads = See("workloads", "admin-token");
  const json::Value& hear = json::GetArray(workloads, {"rows"})[0];
  EXPECT_EQ(json::GetString(hear, {"waitsSince"}), "2026-01-01T00:04:00Z");
  EXPECT_EQ(json::Print(*json::Find(hear, {"waitSeconds"})), "null");
  EXPECT_EQ(json::GetString(See("overview", "admin-token"), {"jobs", "oldestPendingSince"}),
            "2026-01-01T00:04:00Z");
  const json::Value projects = See("projects", "admin-token");
  EXPECT_EQ(json::GetString(json::GetArray(projects, {"rows"})[0], {"longestPendingSince"}),
            "2026-01-01T00:04:00Z");
}

TEST_F(ViewsTest, AListenerThatWasRemovedHearsNothing) {
  int heard = 0;
  const auto id =
      board_.Listen("nodes", {}, RightsOf("admin-token"), [&heard](const auto&) { ++heard; });
  ASSERT_TRUE(id.ok());
  board_.Forget(*id);
  Node("node-2", 8);
  Settle();
  EXPECT_EQ(heard, 1);
}

TEST_F(ViewsTest, EventsAreFilteredAndBounded) {
  for (int i = 0; i < 5; ++i) {
    Create("/api/v1/namespaces/vision/events",
           StrCat(R"({"metadata":{"name":"e)", i, R"("},"involvedObject":{"kind":"PodGroup",)",
                  R"("namespace":"vision","name":"see"},"reason":")", i == 0 ? "Grown" : "Pulled",
                  R"(","message":"m","type":"Normal","lastTimestamp":"2026-01-01T00:00:0)", i,
                  R"(Z"})"));
  }
  Settle();
  const auto rows = [this](const Params& params) {
    const json::Value data = See("events", "jane-token", params);
    return json::GetArray(data, {"rows"}).size();
  };
  EXPECT_EQ(rows({}), 5U);
  EXPECT_EQ(rows({{"limit", "2"}}), 2U);
  // That there are more is not a matter of rights.
  const json::Value cut = See("events", "admin-token", {{"limit", "2"}});
  EXPECT_EQ(json::GetInt(cut, {"total"}), 5);
  EXPECT_EQ(json::Find(cut, {"partial"}), nullptr);
  EXPECT_EQ(rows({{"filter", "grown"}}), 1U);
  EXPECT_EQ(json::GetArray(See("events", "john-token"), {"rows"}).size(), 0U);
  const json::Value overview = See("overview", "jane-token");
  ASSERT_EQ(json::GetArray(overview, {"decisions"}).size(), 1U);
  EXPECT_EQ(json::GetString(json::GetArray(overview, {"decisions"})[0], {"reason"}), "Grown");
}

TEST_F(ViewsTest, AWorkloadTellsOnceThatItsPodsWereStopped) {
  const auto event = [this](const std::string& name, const std::string& kind, int second) {
    Create("/api/v1/namespaces/vision/events",
           StrCat(R"({"metadata":{"name":")", name, "-", second, R"("},"involvedObject":{"kind":")",
                  kind, R"(","namespace":"vision","name":")", name, R"("},"reason":")",
                  kind == "Pod" ? "Reclaimed" : "Preempted",
                  R"(","message":"m","type":"Warning","firstTimestamp":"2026-01-01T00:00:0)",
                  second, R"(Z","lastTimestamp":"2026-01-01T00:00:0)", second, R"(Z"})"));
  };
  event("see", "PyTorchJob", 5);
  for (int worker = 0; worker < 30; ++worker) event(StrCat("see-worker-", worker), "Pod", 5);
  event("see-worker-0", "Pod", 1);  // when no workload told anything
  event("alone", "Pod", 5);
  Settle();
  std::string decisions;
  const json::Value overview = See("overview", "admin-token");
  for (const json::Value& one : json::GetArray(overview, {"decisions"})) {
    decisions += StrCat(json::GetString(one, {"object", "name"}), " ");
  }
  EXPECT_EQ(decisions, "alone see see-worker-0 ");
}

TEST_F(ViewsTest, AJobsTimelineIsWhatItsPodsDid) {
  const Params job{{"namespace", "vision"}, {"name", "see"}};
  server_.executor.Advance(std::chrono::minutes(1));
  Status("/api/v1/namespaces/vision/pods/see-worker-1", R"({"status":{"phase":"Failed"}})");
  Settle();
  const json::Value data = See("job", "jane-token", job);
  std::string lanes;
  for (const json::Value& lane : json::GetArray(data, {"timeline"})) {
    lanes += StrCat(json::GetString(lane, {"member"}, "job"), " ", json::GetString(lane, {"state"}),
                    json::GetString(lane, {"to"}).empty() ? "... " : " ");
  }
  EXPECT_NE(lanes.find("see-worker-0 running... "), std::string::npos) << lanes;
  EXPECT_NE(lanes.find("see-worker-1 running "), std::string::npos) << lanes;
  EXPECT_NE(lanes.find("job running... "), std::string::npos) << lanes;
  const json::Array& sizes = json::GetArray(data, {"sizes"});
  ASSERT_FALSE(sizes.empty());
  EXPECT_EQ(json::GetInt(sizes.back(), {"members"}), 1);
  EXPECT_EQ(json::GetArray(data, {"members"}).size(), 2U);
}

TEST_F(ViewsTest, AMemberWhosePodsSeemToOverlapCountsOnce) {
  // The first ended within the second in which the next began.
  Status("/apis/kubeflow.org/v1/namespaces/speech/pytorchjobs/hear",
         R"({"status":{"attempts":[{"member":"hear-worker-0","uid":"a","attempt":1,)"
         R"("started":"2026-01-01T00:00:02Z","ended":"2026-01-01T00:00:02Z"},)"
         R"({"member":"hear-worker-0","uid":"b","attempt":2,)"
         R"("started":"2026-01-01T00:00:02Z","ended":"2026-01-01T00:00:05Z"}]}})");
  Settle();
  const json::Value data = See("job", "admin-token", {{"namespace", "speech"}, {"name", "hear"}});
  std::string sizes;
  for (const json::Value& one : json::GetArray(data, {"sizes"})) {
    sizes += StrCat(json::GetInt(one, {"members"}), " ");
  }
  EXPECT_EQ(sizes, "1 0 ");
}

TEST_F(ViewsTest, AJobThatFailedAtOnceTellsItsAttemptAndItsEnd) {
  Job("vision", "crash", 1);
  Settle();
  const std::string began = api::FormatTime(server_.executor.Now());
  server_.executor.Advance(std::chrono::seconds(2));
  const std::string ended = api::FormatTime(server_.executor.Now());
  Pod("vision", "crash", 0, "node-1");
  // It is over before anybody sees that it ran.
  Status("/api/v1/namespaces/vision/pods/crash-worker-0",
         StrCat(R"({"status":{"phase":"Failed","containerStatuses":[{"name":"c","state":)",
                R"({"terminated":{"exitCode":3,"reason":"Error","startedAt":")", began,
                R"(","finishedAt":")", ended, R"("}}}]}})"));
  Status("/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/crash",
         StrCat(R"({"status":{"completionTime":")", ended,
                R"(","conditions":[{"type":"Failed","status":"True","reason":"PyTorchJobFailed",)",
                R"("lastTransitionTime":")", ended, R"("}]}})"));
  Settle();
  const json::Value data = See("job", "jane-token", {{"namespace", "vision"}, {"name", "crash"}});
  std::string lanes;
  for (const json::Value& lane : json::GetArray(data, {"timeline"})) {
    lanes += StrCat(json::GetString(lane, {"member"}, "job"), " ", json::GetString(lane, {"state"}),
                    json::GetString(lane, {"to"}).empty() ? "... " : " ");
  }
  EXPECT_EQ(lanes, "crash-worker-0 running job running ");
  const json::Array& attempts = json::GetArray(data, {"attempts"});
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(json::GetString(attempts[0], {"from"}), began);
  EXPECT_EQ(json::GetString(attempts[0], {"reason"}), "Failed: exit 3");
  const json::Array& marks = json::GetArray(data, {"marks"});
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(json::GetString(marks[0], {"kind"}), "Failed");
  EXPECT_NE(json::GetString(marks[0], {"text"}).find("exited with 3"), std::string_view::npos)
      << json::Print(marks[0]);
  EXPECT_EQ(json::GetString(data, {"summary", "statusText"}), "Failed: exit 3");
}

TEST_F(ViewsTest, AJobTellsItsProgressAndItsHang) {
  const std::string path = "/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/see";
  Status(path, R"({"status":{"progress":{"phase":"step","step":30,"totalSteps":120,)"
               R"("progressPercentage":25,"estimatedRemainingSeconds":90},)"
               R"("conditions":[{"type":"Running","status":"True"}]}})");
  Settle();
  const Params job{{"namespace", "vision"}, {"name", "see"}};
  const auto row = [this] {
    const json::Value all = See("workloads", "jane-token");
    return json::GetArray(all, {"rows"})[0];
  };
  EXPECT_EQ(json::GetInt(row(), {"progress", "percentage"}), 25);
  EXPECT_EQ(json::GetInt(row(), {"progress", "etaSeconds"}), 90);
  EXPECT_EQ(json::GetString(row(), {"progress", "phase"}), "step");
  EXPECT_TRUE(json::Find(See("job", "jane-token", job), {"hang"})->is_null());
  Status(path, R"({"status":{"hang":{"restarts":1,"ranks":[{"rank":0,"pod":"see-worker-0",)"
               R"("stack":"top"},{"rank":1,"suspect":true,"pod":"see-worker-1"}]},"conditions":)"
               R"([{"type":"Hung","status":"True","message":"No rank moves: rank 1."},)"
               R"({"type":"Running","status":"True"}]}})");
  Settle();
  EXPECT_EQ(json::GetString(row(), {"status"}), "Hung");
  EXPECT_TRUE(json::Find(row(), {"progress", "etaSeconds"})->is_null()) << "it does not move";
  const json::Value data = See("job", "jane-token", job);
  EXPECT_EQ(json::GetString(data, {"sentence"}), "The job hangs. No rank moves: rank 1.");
  EXPECT_TRUE(json::GetBool(data, {"hang", "now"}));
  const json::Array& ranks = json::GetArray(data, {"hang", "ranks"});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_FALSE(json::GetBool(ranks[0], {"suspect"}));
  EXPECT_EQ(json::GetString(ranks[0], {"stack"}), "top");
  EXPECT_TRUE(json::GetBool(ranks[1], {"suspect"}));
}

TEST_F(ViewsTest, AJobTellsItsStragglerAndWhatElseIsWrong) {
  Status("/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/see",
         R"({"status":{"conditions":[{"type":"Running","status":"True"},)"
         R"({"type":"CheckpointFailed","status":"False","message":"The last save went well."},)"
         R"({"type":"Straggler","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z",)"
         R"("message":"Much slower than its peers: rank 1 (pod see-worker-1 on node-1)."}]}})");
  Settle();
  const json::Value data = See("job", "jane-token", {{"namespace", "vision"}, {"name", "see"}});
  EXPECT_EQ(json::Print(*json::Find(data, {"warnings"})),
            R"([{"type":"Straggler","message":"Much slower than its peers: rank 1 (pod )"
            R"(see-worker-1 on node-1).","since":"2026-01-01T00:00:05Z"}])");
  const json::Array& members = json::GetArray(data, {"members"});
  ASSERT_EQ(members.size(), 2U);
  EXPECT_FALSE(json::GetBool(members[0], {"straggler"}));
  EXPECT_TRUE(json::GetBool(members[1], {"straggler"}));
}

TEST_F(ViewsTest, LostWorkIsThatOfTheJobsAccountOrNotKnown) {
  const auto lost = [this](const std::string& name) {
    const json::Value data = See("job", "admin-token", {{"namespace", "vision"}, {"name", name}});
    return StrCat(json::Print(*json::Find(data, {"lostGpuSeconds"})), " of ",
                  json::Print(*json::Find(data, {"heldGpuSeconds"})), " as of ",
                  json::GetString(data, {"heldGpuAsOf"}, "-"));
  };
  const std::string see = "/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/see";
  EXPECT_EQ(lost("see"), "0 of 0 as of -");  // it has not started
  Status(see, R"({"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Running",)"
              R"("status":"True"}]}})");
  Settle();
  // Nothing has happened to it since it started, so nothing is written.
  EXPECT_EQ(lost("see"), "0 of 0 as of 2026-01-01T00:00:00Z");
  Status(see, R"({"status":{"gpuTime":{"heldSeconds":120,"lostSeconds":58,)"
              R"("lastUpdateTime":"2026-01-01T00:01:00Z"}}})");
  Settle();
  EXPECT_EQ(lost("see"), "58 of 120 as of 2026-01-01T00:01:00Z");
  Status(see, R"({"status":{"gpuTime":{"heldSeconds":120,"lostSeconds":null}}})");
  Settle();
  EXPECT_EQ(lost("see"), "0 of 120 as of 2026-01-01T00:01:00Z");
}

TEST_F(ViewsTest, AJobThatIsScaledByGoodputTellsItsCurve) {
  const auto goodput = [this] {
    const json::Value data = See("job", "admin-token", {{"namespace", "vision"}, {"name", "grow"}});
    return json::Print(*json::Find(data, {"goodput"}));
  };
  Create("/apis/swell.dev/v1/namespaces/vision/trainingjobs",
         R"({"apiVersion":"swell.dev/v1","kind":"TrainingJob","metadata":{"name":"grow"},)"
         R"("spec":{"autoscaling":{"mode":"Goodput"},"roles":{"worker":{"replicas":1,)"
         R"("elastic":{"minReplicas":1,"maxReplicas":4},"template":{"spec":{"containers":)"
         R"([{"name":"main","image":"img"}]}}}}}})");
  Settle();
  EXPECT_EQ(goodput(), "null");
  Status("/apis/swell.dev/v1/namespaces/vision/trainingjobs/grow",
         R"({"status":{"goodput":{"unit":"records","members":2,"wanted":4,"nextPercent":31,)"
         R"("decision":"Grew from 1 to 2","typeDecision":"Stays on T4","curve":[)"
         R"({"members":1,"perSecond":40,"relative":1,"source":"Measured"},)"
         R"({"members":2,"perSecond":78,"relative":1.95,"source":"Measured"},)"
         R"({"members":4,"perSecond":130,"relative":3.25,"source":"Fitted"}]}}})");
  Settle();
  EXPECT_EQ(goodput(),
            R"({"sentence":"2 members make 78 records per second, 1.95 times what 1 makes; it )"
            R"(asks for 4","next":"worth +31 % here","unit":"records","members":2,"wanted":4,)"
            R"("noise":null,"fit":null,"decision":"Grew from 1 to 2",)"
            R"("typeDecision":"Stays on T4","sizes":[)"
            R"({"members":1,"perSecond":40,"relative":1,"measured":true,"source":"measured"},)"
            R"({"members":2,"perSecond":78,"relative":1.95,"measured":true,)"
            R"("source":"measured"},{"members":4,"perSecond":130,"relative":3.25,)"
            R"("measured":false,"source":"model"}]})");
  // The records of a larger batch are worth less.
  Status("/apis/swell.dev/v1/namespaces/vision/trainingjobs/grow",
         R"({"status":{"goodput":{"noiseRecords":90,"curve":[)"
         R"({"members":1,"perSecond":40,"relative":1,"efficiencyPercent":100,)"
         R"("source":"Measured"},{"members":2,"perSecond":78,"relative":1.38,)"
         R"("efficiencyPercent":71,"source":"Measured"}]}}})");
  Settle();
  const std::string counted = goodput();
  EXPECT_NE(counted.find(R"("noise":"90 records: in the batch of 2 members a record is worth 71 % )"
                         R"(of one in that of 1")"),
            std::string::npos)
      << counted;
  EXPECT_NE(counted.find(R"("relative":1.38,"measured":true,"source":"measured","efficiency":71)"),
            std::string::npos)
      << counted;
}

TEST_F(ViewsTest, ANodeTellsWhichGpusAreBadAndWhy) {
  Annotate("/api/v1/nodes/node-1", "swell.dev/unhealthy-gpus", "1,3");
  Annotate("/api/v1/nodes/node-1", "swell.dev/failures",
           R"([{\"time\":\"2026-01-01T00:00:00Z\",\"pod\":\"vision/see-worker-0\",)"
           R"(\"class\":\"Hardware\",\"weight\":1,\"message\":\"see it fail\"}])");
  Status("/api/v1/nodes/node-1",
         R"({"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"GpuHealthy",)"
         R"("status":"False","reason":"GpuUnhealthy","message":"GPU 1: too hot; GPU 3: its )"
         R"(driver lost it; no answer"},{"type":"DiskHealthy","status":"False",)"
         R"("reason":"ReadOnly","message":"read-only"}]}})");
  Settle();
  const auto row = [this](const std::string& token) {
    const json::Value data = See("nodes", token);
    return json::GetArray(data, {"rows"})[0];
  };
  const json::Value node = row("admin-token");
  std::string text;
  for (const json::Value& gpu : json::GetArray(node, {"gpuDevices"})) {
    text +=
        StrCat(json::GetString(gpu, {"health"}), "(", json::GetString(gpu, {"healthReason"}), ") ");
  }
  EXPECT_EQ(text,
            "Healthy() Unhealthy(too hot) Healthy() "
            "Unhealthy(its driver lost it; no answer) ");
  EXPECT_EQ(json::GetString(node, {"health", "state"}), "Unhealthy");
  EXPECT_EQ(json::GetString(node, {"health", "text"}), "unhealthy: it gets no new pods");
  EXPECT_EQ(json::GetArray(node, {"health", "faults"}).size(), 2U);
  const json::Array& failures = json::GetArray(node, {"health", "failures"});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(json::GetString(failures[0], {"pod"}), "vision/see-worker-0");
  // That a pod failed is the node's; which one is its namespace's.
  const json::Value of_john = row("john-token");
  EXPECT_EQ(json::GetArray(of_john, {"health", "failures"}).size(), 1U);
  EXPECT_EQ(json::Print(of_john).find("see"), std::string::npos);
  const json::Value overview = See("overview", "admin-token");
  const json::Array& squares = json::GetArray(json::GetArray(overview, {"nodes"})[0], {"gpus"});
  EXPECT_FALSE(json::GetBool(squares[0], {"bad"}));
  EXPECT_TRUE(json::GetBool(squares[1], {"bad"}));
}

TEST_F(ViewsTest, AnAttemptEndsWithItsCauseAndNotWithAPodThatWasMadeAnewAndStopped) {
  server_.executor.Advance(std::chrono::minutes(5));
  Status("/apis/kubeflow.org/v1/namespaces/speech/pytorchjobs/hear",
         R"({"status":{"startTime":"2026-01-01T00:00:02Z","attempts":[)"
         R"({"member":"hear-worker-0","uid":"old","attempt":1,"result":"NodeShutdown",)"
         R"("message":"The node went down","started":"2026-01-01T00:00:02Z",)"
         R"("ended":"2026-01-01T00:04:00Z"},)"
         R"({"member":"hear-worker-1","uid":"anew","attempt":1,"result":"Stopped",)"
         R"("started":"2026-01-01T00:04:00Z","ended":"2026-01-01T00:04:00Z"}]}})");
  Settle();
  const json::Value data = See("job", "admin-token", {{"namespace", "speech"}, {"name", "hear"}});
  const json::Array& attempts = json::GetArray(data, {"attempts"});
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(json::GetString(attempts[0], {"reason"}), "The node went down");
}

TEST_F(ViewsTest, TheOverviewNamesTheJobsThatFailOrHang) {
  EXPECT_EQ(json::GetInt(See("overview", "admin-token"), {"failing", "total"}, -1), 0);
  Status("/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/see",
         R"({"status":{"hang":{"ranks":[{"rank":0,"pod":"see-worker-0"}]},"conditions":)"
         R"([{"type":"Hung","status":"True","message":"No rank moves."},)"
         R"({"type":"Running","status":"True"}]}})");
  Status("/apis/kubeflow.org/v1/namespaces/speech/pytorchjobs/hear",
         R"({"status":{"failure":{"member":"hear-worker-0","container":"c","role":"container",)"
         R"("reason":"ImagePullBackOff","waitsWith":"ImagePullBackOff"}}})");
  Settle();
  const json::Value overview = See("overview", "admin-token");
  EXPECT_EQ(json::GetInt(overview, {"failing", "total"}), 2);
  EXPECT_EQ(Failing(overview), "hear ImagePullBackOff of Pending; see Hung of Hung; ");
  EXPECT_EQ(json::GetInt(See("overview", "jane-token"), {"failing", "total"}), 1);
}

TEST_F(ViewsTest, TheOverviewShowsFirstTheJobThatBeganToHangLast) {
  const auto hang = [this](const std::string& job, const std::string& since) {
    Status(
        "/apis/kubeflow.org/v1/namespaces/" + job,
        StrCat(R"({"status":{"conditions":[{"type":"Hung","status":"True","message":"m",)",
               R"("lastTransitionTime":")", since, R"("},{"type":"Running","status":"True"}]}})"));
    Settle();
  };
  hang("vision/pytorchjobs/see", "2026-01-01T05:00:00Z");
  hang("speech/pytorchjobs/hear", "2026-01-01T06:00:00Z");
  EXPECT_EQ(Failing(See("overview", "admin-token")), "hear Hung of Hung; see Hung of Hung; ");
  hang("vision/pytorchjobs/see", "2026-01-01T07:00:00Z");
  EXPECT_EQ(Failing(See("overview", "admin-token")), "see Hung of Hung; hear Hung of Hung; ");
}

TEST_F(ViewsTest, AJobThatRunsAgainAfterOneFailureIsNotSaidToFail) {
  Status("/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/see",
         R"({"status":{"failure":{"member":"see-worker-0","container":"c","role":"container",)"
         R"("exitCode":1,"restarts":1,"waitsWith":"CrashLoopBackOff"}}})");
  const auto sentence_while = [this](const std::string& state) {
    Status("/api/v1/namespaces/vision/pods/see-worker-0",
           StrCat(R"({"status":{"phase":"Running","containerStatuses":[{"name":"c","image":"i",)"
                  R"("imageID":"","ready":true,"restartCount":1,"state":)",
                  state, R"(,"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}})"));
    Settle();
    const json::Value data = See("job", "jane-token", {{"namespace", "vision"}, {"name", "see"}});
    return std::string(json::GetString(data, {"sentence"}));
  };
  const std::string failure = "see-worker-0 failed and starts again (1 restart): ";
  const std::string running = sentence_while(R"({"running":{"startedAt":"2026-01-01T00:00:00Z"}})");
  EXPECT_TRUE(running.starts_with("The job runs again after a failure. " + failure)) << running;
  const std::string waiting = sentence_while(R"({"waiting":{"reason":"CrashLoopBackOff"}})");
  EXPECT_TRUE(waiting.starts_with("The job fails. " + failure)) << waiting;
}

TEST_F(ViewsTest, LogsOfPodsThatAreGoneAreNamedWithThoseThatAreThere) {
  Status("/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/see",
         R"({"status":{"attempts":[{"member":"see-worker-0","uid":"old","node":"node-1",)"
         R"("attempt":1,"result":"Preempted","container":"c","ended":"2026-01-01T00:00:09Z",)"
         R"("containers":[{"name":"c","restarts":1}]}]}})");
  Settle();
  const json::Value data = See("job", "jane-token", {{"namespace", "vision"}, {"name", "see"}});
  std::string logs;
  for (const json::Value& one : json::GetArray(data, {"logs"})) {
    logs += StrCat(json::GetString(one, {"member"}), "#", json::GetInt(one, {"attempt"}), ".",
                   json::GetInt(one, {"start"}), json::GetBool(one, {"live"}) ? "+" : "-",
                   json::GetString(one, {"result"}), " ");
  }
  EXPECT_EQ(logs,
            "see-worker-0#1.1-preempted see-worker-0#1.2-preempted see-worker-0#2.1+ "
            "see-worker-1#1.1+ ");
  EXPECT_EQ(json::GetInt(json::GetArray(data, {"members"})[0], {"attempt"}), 2);
}

TEST_F(ViewsTest, AJobsCurvesAreWhatItsScriptReports) {
  HistoryKeeper keeper(server_.executor, server_.executor, state_, handler_, system_, nullptr);
  keeper.Start();
  Annotate("/api/v1/namespaces/vision/pods/see-worker-0", "swell.dev/metrics",
           R"({\"records_per_second\":640,\"steps_per_second\":10,\"loss\":0.5})");
  Status("/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs/see",
         R"({"status":{"progress":{"phase":"step","step":30,"totalSteps":120,)"
         R"("progressPercentage":25}}})");
  server_.executor.Advance(std::chrono::minutes(1));
  const int64_t now = server_.executor.Now().unix_ns / 1'000'000'000;
  std::string curves;  // in hundredths
  for (const char* name : {"job_throughput", "job_loss", "job_step", "job_progress"}) {
    const auto found =
        keeper.history().Read(name, now - 60, now, 100, [](const auto&) { return true; });
    const double last = found.empty() ? -1 : found[0].points.values.back();
    curves += StrCat(name, "=", std::lround(100 * last), " ");
  }
  EXPECT_EQ(curves, "job_throughput=64000 job_loss=50 job_step=3000 job_progress=25 ");
  // Three workers of speech wait since the test began.
  const auto wait = keeper.history().Read("queue_wait_p95_seconds", now - 60, now, 100,
                                          [](const auto&) { return true; });
  ASSERT_EQ(wait.size(), 1U);
  EXPECT_GT(wait[0].points.values.back(), 0);
}

TEST_F(ViewsTest, AProjectsUseIsSampledWhereAllOfItsPodsAreMeasured) {
  const auto used = [this](const char* measured) {
    const json::Value list = json::Parse(measured).value();
    state_.SetUsage(&list);
    for (const Sample& sample : SampleCluster(state_, server_.executor.Now())) {
      const bool it = sample.series.name == "project_gpu_utilized";
      if (it && sample.series.Label("project") == "vision") return sample.value;
    }
    return -1.0;
  };
  EXPECT_EQ(used(R"({"items":[{"metadata":{"namespace":"vision","name":"see-worker-0"},
      "containers":[{"usage":{"cpu":"500m"}}]}]})"),
            -1)
      << "the other may be busy";
  EXPECT_DOUBLE_EQ(used(R"({"items":[{"metadata":{"namespace":"vision","name":"see-worker-0"},
      "containers":[{"usage":{"cpu":"500m"}}]},{"metadata":{"namespace":"vision",
      "name":"see-worker-1"},"containers":[{"usage":{"cpu":"250m"}}]}]})"),
                   0.75);
}

TEST_F(ViewsTest, WhatWorkWithoutAProjectHoldsIsSampled) {
  const auto held = [this] {
    for (const Sample& sample : SampleCluster(state_, server_.executor.Now())) {
      const bool it = sample.series.name == "project_gpu_held";
      if (it && sample.series.Label("project").empty()) return sample.value;
    }
    return -1.0;
  };
  EXPECT_DOUBLE_EQ(held(), 0);
  Create("/api/v1/namespaces/default/pods",
         R"({"metadata":{"name":"server"},"spec":{"nodeName":"node-1","containers":[{"name":"c",)"
         R"("image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})");
  Settle();
  EXPECT_DOUBLE_EQ(held(), 1);
}

TEST_F(ViewsTest, CpusAndMemoryOfNodesAndPoolsAreSampledAsFarAsTheyAreMeasured) {
  Create("/apis/swell.dev/v1/nodepools",
         R"({"apiVersion":"swell.dev/v1","kind":"NodePool","metadata":{"name":"small"},)"
         R"("spec":{"nodeSelector":{"size":"small"}}})");
  Create("/api/v1/nodes", R"({"metadata":{"name":"cpu-only","labels":{"size":"small"}}})");
  Status("/api/v1/nodes/cpu-only", R"({"status":{"allocatable":{"cpu":"2","memory":"4Gi"}}})");
  Create("/api/v1/namespaces/vision/pods",
         R"({"metadata":{"name":"work"},"spec":{"nodeName":"cpu-only","containers":[{"name":"c",)"
         R"("image":"i","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]}})");
  Settle();
  const auto told = [this] {
    std::string text;
    for (const Sample& sample : SampleCluster(state_, server_.executor.Now())) {
      const std::string& name = sample.series.name;
      const bool of_pool = sample.series.Label("pool") == "small";
      const bool of_node = sample.series.Label("node") == "cpu-only";
      if (of_pool || of_node)
        text += StrCat(name, "=", static_cast<int64_t>(sample.value * 10), " ");
    }
    return text;
  };
  EXPECT_EQ(told(),
            "node_cpu_held=5 node_memory_held=10737418240 cpu_total=20 memory_total=42949672960 "
            "cpu_held=5 memory_held=10737418240 ");
  const json::Value usage =
      json::Parse(
          R"({"items":[{"metadata":{"namespace":"vision","name":"work"},"containers":[{"name":"c",)"
          R"("usage":{"cpu":"300m","memory":"1Mi"}}]}]})")
          .value();
  state_.SetUsage(&usage);
  EXPECT_EQ(told(),
            "node_cpu_held=5 node_memory_held=10737418240 node_cpu_used=3 "
            "node_memory_used=10485760 cpu_total=20 memory_total=42949672960 cpu_held=5 "
            "memory_held=10737418240 cpu_used=3 memory_used=10485760 ");
}

TEST_F(ViewsTest, PreemptionsByRuleContinueAfterARestart) {
  TempDir dir;
  const auto file = [&dir] {
    return std::move(HistoryFile::Open(dir.path() + "/history.db")).value();
  };
  const std::string pod = "/api/v1/namespaces/vision/pods/see-worker-";
  {
    HistoryKeeper keeper(server_.executor, server_.executor, state_, handler_, system_, file());
    keeper.Start();
    Annotate(pod + "0", "swell.dev/preempted-rule", "reclaim");
    server_.executor.Advance(std::chrono::minutes(2));
    // Too late for a sample, not for the end of the process.
    Annotate(pod + "1", "swell.dev/preempted-rule", "reclaim");
    Settle();
  }
  ClusterState later(server_.executor);
  HistoryKeeper keeper(server_.executor, server_.executor, later, handler_, system_, file());
  keeper.Start();
  EXPECT_EQ(later.evictions().by_rule(), (std::map<std::string, int64_t>{{"reclaim", 2}}));
}

TEST_F(ViewsTest, AnotherUsersJobIsNotThere) {
  const Params job{{"namespace", "vision"}, {"name", "see"}};
  EXPECT_EQ(board_.Read("job", job, RightsOf("john-token")).status().code(), Code::kNotFound);
}

TEST_F(ViewsTest, AJobOfTheSameNameHasItsOwnEvents) {
  Create("/api/v1/namespaces/vision/events",
         R"({"metadata":{"name":"old"},"involvedObject":{"kind":"PyTorchJob",)"
         R"("namespace":"vision","name":"see","uid":"of-an-earlier-job"},"reason":"Suspended",)"
         R"("message":"m","type":"Normal"})");
  Settle();
  const json::Value data = See("job", "admin-token", {{"namespace", "vision"}, {"name", "see"}});
  EXPECT_TRUE(json::GetArray(data, {"events"}).empty());
  EXPECT_TRUE(json::GetArray(data, {"marks"}).empty());
}

TEST_F(ViewsTest, TheHistoryIsSampledWithoutAnybodyLooking) {
  HistoryKeeper keeper(server_.executor, server_.executor, state_, handler_, system_, nullptr);
  keeper.Start();
  server_.executor.Advance(std::chrono::minutes(2));
  const int64_t now = server_.executor.Now().unix_ns / 1'000'000'000;
  const auto found =
      keeper.history().Read("gpu_held", now - 120, now, 100, [](const auto&) { return true; });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].points.values, (std::vector<double>(8, 2)));
  EXPECT_EQ(found[0].points.times[1] - found[0].points.times[0], 15);
}

}  // namespace
}  // namespace swell::ui
