// The views of Crons and CronJobs: when they run, what they started, and to whom they are shown.
#include <gtest/gtest.h>

#include "ui/ui_test_util.h"

namespace swell::ui {
namespace {

// The clock of the tests begins at 2026-01-01T00:00:00Z.
class CronsTest : public PagesTest {
 protected:
  CronsTest() {
    Project("vision");
    Project("speech");
    Cron("vision", "nightly", R"("schedule":"0 22 * * *")");
    CronJob("speech", "hourly", R"("schedule":"0 * * * *","concurrencyPolicy":"Forbid")");
    Settle();
  }

  void Cron(const std::string& ns, const std::string& name, const std::string& spec) {
    Create(StrCat("/apis/apps.kubedl.io/v1alpha1/namespaces/", ns, "/crons"),
           StrCat(R"({"apiVersion":"apps.kubedl.io/v1alpha1","kind":"Cron","metadata":{"name":")",
                  name, R"("},"spec":{)", spec,
                  R"(,"template":{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","workload":)"
                  R"({"spec":{"pytorchReplicaSpecs":{"Master":{"template":{"spec":{"containers":)"
                  R"([{"name":"pytorch","image":"i"}]}}}}}}}}})"));
  }
  void CronJob(const std::string& ns, const std::string& name, const std::string& spec) {
    Create(StrCat("/apis/batch/v1/namespaces/", ns, "/cronjobs"),
           StrCat(R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":")", name,
                  R"("},"spec":{)", spec, R"(,"jobTemplate":)", kJobSpec, "}}"));
  }
  std::string UidOf(const std::string& path) {
    api::RestRequest request = server_.Request("GET", path);
    request.user = {.name = "root", .groups = {"system:masters"}};
    return server_.Send(std::move(request)).Str({"metadata", "uid"});
  }
  // A Job that the CronJob `hourly` started.
  void RunOfHourly(const std::string& name) {
    const std::string uid = UidOf("/apis/batch/v1/namespaces/speech/cronjobs/hourly");
    Create("/apis/batch/v1/namespaces/speech/jobs",
           StrCat(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":")", name,
                  R"(","ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":)",
                  R"("hourly","controller":true,"uid":")", uid, R"("}]},)",
                  std::string_view(kJobSpec).substr(1)));
  }
  // "name state next last-run active": one line for each row.
  std::string Rows(const std::string& token) {
    std::string text;
    const json::Value data = See("crons", token);
    for (const json::Value& row : json::GetArray(data, {"rows"})) {
      text += StrCat(json::GetString(row, {"kind"}), " ", json::GetString(row, {"name"}), " ",
                     json::GetString(row, {"state"}), " ", json::GetString(row, {"next"}, "-"), " ",
                     json::GetString(row, {"lastRun", "name"}, "-"), " ",
                     json::GetInt(row, {"active"}), " ", json::GetString(row, {"project"}), "\n");
    }
    return json::GetBool(data, {"partial"}) ? text + "and more\n" : text;
  }
  json::Value Page(const std::string& ns, const std::string& name, const std::string& kind) {
    return See("cron", "admin-token", {{"namespace", ns}, {"name", name}, {"kind", kind}});
  }

  static constexpr const char* kJobSpec = R"({"spec":{"template":{"spec":{"restartPolicy":"Never",)"
                                          R"("containers":[{"name":"c","image":"i"}]}}}})";
};

TEST_F(CronsTest, TellsWhenEachRunsNextAndWhatItStarted) {
  EXPECT_EQ(Rows("admin-token"),
            "Cron nightly Active 2026-01-01T22:00:00Z - 0 vision\n"
            "CronJob hourly Active 2026-01-01T01:00:00Z - 0 speech\n");
  RunOfHourly("hourly-1");
  Patch("/apis/apps.kubedl.io/v1alpha1/namespaces/vision/crons/nightly",
        R"({"spec":{"suspend":true}})");
  Settle();
  EXPECT_EQ(Rows("admin-token"),
            "Cron nightly Suspended - - 0 vision\n"
            "CronJob hourly Active 2026-01-01T01:00:00Z hourly-1 1 speech\n");
}

TEST_F(CronsTest, AUserSeesThoseThatTheyMayList) {
  EXPECT_EQ(Rows("jane-token"), "and more\n");
  const Params cron{{"namespace", "vision"}, {"name", "nightly"}, {"kind", "Cron"}};
  EXPECT_EQ(board_.Read("cron", cron, RightsOf("jane-token")).status().code(), Code::kNotFound);
}

TEST_F(CronsTest, ThePageHasItsRunsAndItsOwnEvents) {
  RunOfHourly("hourly-1");
  const auto event = [this](const std::string& name, const std::string& uid) {
    Create("/api/v1/namespaces/speech/events",
           StrCat(R"({"metadata":{"name":")", name, R"("},"involvedObject":{"kind":"CronJob",)",
                  R"("namespace":"speech","name":"hourly","uid":")", uid,
                  R"("},"reason":"SuccessfulCreate","message":")", name, R"(","type":"Normal"})"));
  };
  event("its-own", UidOf("/apis/batch/v1/namespaces/speech/cronjobs/hourly"));
  event("of-an-earlier-one", "old");
  Settle();
  const json::Value page = Page("speech", "hourly", "CronJob");
  EXPECT_EQ(json::GetString(page, {"summary", "schedule"}), "0 * * * *");
  EXPECT_EQ(json::GetString(page, {"summary", "policy"}), "Forbid");
  const json::Array& runs = json::GetArray(page, {"runs"});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(json::GetString(runs[0], {"name"}), "hourly-1");
  const json::Array& events = json::GetArray(page, {"events"});
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(json::GetString(events[0], {"message"}), "its-own");
}

TEST_F(CronsTest, OneThatCannotRunSaysWhy) {
  Patch("/apis/apps.kubedl.io/v1alpha1/namespaces/vision/crons/nightly",
        R"({"spec":{"deadline":"2026-01-01T12:00:00Z"}})");
  Settle();
  EXPECT_EQ(Rows("admin-token").substr(0, 27), "Cron nightly Ended - - 0 vi");
  EXPECT_EQ(json::GetString(Page("vision", "nightly", "Cron"), {"summary", "reason"}),
            "nightly starts no more jobs: its deadline, 2026-01-01T12:00:00Z, is before its next "
            "time, 2026-01-01T22:00:00Z");
}

}  // namespace
}  // namespace swell::ui
