#include "elastic/job_master.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "elastic/master_journal.h"

namespace swell::elastic {
namespace {

WallTime At(int64_t s) { return {s * 1'000'000'000}; }

json::Value Parsed(std::string_view text) { return json::Parse(text).value(); }

class JobMasterTest : public testing::Test {
 protected:
  json::Value Post(std::string_view path, std::string_view body, int64_t at = 1) {
    json::Value document = Parsed(body);
    auto answer = master_.Handle(path, document, At(at));
    if (!answer.ok()) return json::Value(answer.status().ToString());
    if (answer->changed) lines_ += MasterJournal::PrintRequest(path, document, At(at));
    return answer->body;
  }
  std::string Ask(std::string_view path, std::string_view body, int64_t at = 1) {
    json::Value answer = Post(path, body, at);
    return answer.is_string() ? std::string(json::View(answer.get_string())) : json::Print(answer);
  }
  void Begin(std::string_view more = {}) {
    Post("/v1/job", StrCat(R"({"records": 40, "recordsPerTask": 20, "shuffle": false,
                               "exactProgress": true)",
                           more, "}"));
  }

  JobMaster master_{1};
  std::string lines_;
};

TEST_F(JobMasterTest, HandsOutRangesAndEnds) {
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a"})"),
            "Conflict: the job is not known yet: send POST /v1/job first");
  Begin();
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a"})"),
            R"({"tasks":[{"id":1,"epoch":0,"start":0,"end":20,"tries":0}]})");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"b","count":5})"),
            R"({"tasks":[{"id":2,"epoch":0,"start":20,"end":40,"tries":0}]})");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"b"})"), R"({"tasks":[],"waitMs":100})");
  EXPECT_EQ(Ask("/v1/progress", R"({"worker":"a","task":1,"done":20})"), "{}");
  EXPECT_EQ(Ask("/v1/progress", R"({"worker":"b","task":2,"done":20})"), R"({"finished":true})");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a"})"), R"({"tasks":[],"finished":true})");
}

TEST_F(JobMasterTest, RefusesNonsenseByField) {
  EXPECT_EQ(Ask("/v1/job", R"({"recordsPerTask": 2})"), "Invalid: records: Required value");
  EXPECT_EQ(Ask("/v1/job", R"({"records":1,"recordsPerTask":2,"gradsToWait":0})"),
            "Invalid: gradsToWait: Invalid value: 0: must be at least 1");
  Begin();
  EXPECT_EQ(Ask("/v1/task", "{}"), "Invalid: worker: Required value");
  EXPECT_EQ(Ask("/v1/progress", R"({"worker":"a","task":"x","done":1})"),
            "Invalid: task: Invalid value: must be a whole number");
  EXPECT_EQ(Ask("/v1/progress", R"({"worker":"a","task":77,"done":1})"),
            "NotFound: task 77 is not held by worker \"a\"");
  EXPECT_EQ(Ask("/v1/what", R"({"worker":"a"})"), "NotFound: there is no /v1/what");
  EXPECT_TRUE(Ask("/v1/job", R"({"records":1,"recordsPerTask":2})").starts_with("Conflict: "));
}

TEST_F(JobMasterTest, CountsGradientsNotWorkers) {
  Begin(R"(, "gradsToWait": 2)");
  Post("/v1/task", R"({"worker":"a"})");
  Post("/v1/task", R"({"worker":"b"})");
  EXPECT_EQ(Ask("/v1/gradient", R"({"worker":"a","task":1,"done":10,"version":0})"),
            R"({"accepted":true,"apply":false,"gradients":1,"version":0})");
  EXPECT_EQ(Ask("/v1/gradient", R"({"worker":"b","task":2,"done":10,"version":0})"),
            R"({"accepted":true,"apply":true,"gradients":2,"version":1})");
  // An older version: refused, and its records are still to be done.
  EXPECT_EQ(Ask("/v1/gradient", R"({"worker":"b","task":2,"done":20,"version":0})"),
            R"({"accepted":false,"apply":false,"version":1})");
  EXPECT_EQ(json::GetInt(master_.State(At(2)), {"done"}), 20);
  // b is gone: a contributes both.
  Post("/v1/leave", R"({"worker":"b","reason":"preempted"})");
  Post("/v1/gradient", R"({"worker":"a","task":1,"done":20,"version":1})");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a"})"),
            R"({"tasks":[{"id":3,"epoch":0,"start":30,"end":40,"tries":0}]})");
  EXPECT_EQ(Ask("/v1/gradient", R"({"worker":"a","task":3,"done":10,"version":1})"),
            R"({"accepted":true,"apply":true,"gradients":2,"version":2,"finished":true})");
}

TEST_F(JobMasterTest, TheLastGradientsAreAppliedEvenWhenTheyAreFewer) {
  Begin(R"(, "gradsToWait": 3)");
  Post("/v1/task", R"({"worker":"a","count":2})");
  Post("/v1/gradient", R"({"worker":"a","task":1,"done":20,"version":0})");
  EXPECT_EQ(Ask("/v1/gradient", R"({"worker":"a","task":2,"done":20,"version":0})"),
            R"({"accepted":true,"apply":true,"gradients":2,"version":1,"finished":true})");
}

TEST_F(JobMasterTest, AGradientAskedTwiceCountsOnce) {
  Begin(R"(, "gradsToWait": 2)");
  Post("/v1/task", R"({"worker":"a"})");
  const std::string gradient = R"({"worker":"a","task":1,"done":10,"version":0,"sequence":7})";
  const std::string first = Ask("/v1/gradient", gradient);
  EXPECT_EQ(first, R"({"accepted":true,"apply":false,"gradients":1,"version":0})");
  EXPECT_EQ(Ask("/v1/gradient", gradient), first);
  EXPECT_EQ(json::GetInt(master_.State(At(2)), {"gradients"}), 1);
}

TEST_F(JobMasterTest, TakesBackWhatAWorkerDoesNotKnowItHolds) {
  Begin();
  Post("/v1/task", R"({"worker":"a"})");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a","holding":[]})"),
            R"({"tasks":[{"id":2,"epoch":0,"start":0,"end":20,"tries":0}]})");
}

TEST_F(JobMasterTest, TakesWhatIsDoneWithTheRequestForMore) {
  Begin();
  Post("/v1/task", R"({"worker":"a"})");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a","completed":[1,77],"holding":[]})"),
            R"({"lost":[77],"tasks":[{"id":2,"epoch":0,"start":20,"end":40,"tries":0}]})");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a","completed":[2]})"),
            R"({"tasks":[],"finished":true})");
}

TEST_F(JobMasterTest, EndsWhenItIsToldThatEnoughIsDone) {
  Begin();
  Post("/v1/end", "{}");
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"a"})"), R"({"tasks":[],"finished":true})");
}

TEST_F(JobMasterTest, TellsWorkersOfEachOther) {
  Begin();
  EXPECT_EQ(Ask("/v1/facts", R"({"facts":{"model":"m:2"}})"), R"({"facts":{"model":"m:2"}})");
  EXPECT_EQ(Ask("/v1/heartbeat", R"({"worker":"a","address":"a:1"})"),
            R"({"rendezvous":{"round":2,"world":1,"rank":0,"leader":"a","leaderAddress":"a:1"},)"
            R"("facts":{"model":"m:2"}})");
  json::Value b = Post("/v1/heartbeat", R"({"worker":"b"})");
  EXPECT_EQ(json::GetInt(b, {"rendezvous", "rank"}), 1);
  Post("/v1/leave", R"({"worker":"a"})");
  b = Post("/v1/heartbeat", R"({"worker":"b"})");
  EXPECT_EQ(json::GetInt(b, {"rendezvous", "rank"}), 0);
  EXPECT_EQ(json::GetInt(b, {"rendezvous", "world"}), 1);
}

TEST_F(JobMasterTest, GoesBackToWhereTheModelWasSaved) {
  Begin(R"(, "gradsToWait": 1)");
  Post("/v1/task", R"({"worker":"a"})");
  Post("/v1/gradient", R"({"worker":"a","task":1,"done":10,"version":0})");
  json::Value saved = master_.Snapshot();
  Post("/v1/gradient", R"({"worker":"a","task":1,"done":20,"version":1})");
  Post("/v1/task", R"({"worker":"a"})");
  EXPECT_EQ(Ask("/v1/restore", json::Print(json::Object{{"snapshot", saved}})),
            R"({"version":1,"done":10})");
  // The lease of the time before is nobody's, and its number is not used again.
  EXPECT_TRUE(Ask("/v1/gradient", R"({"worker":"a","task":1,"done":20,"version":1})")
                  .starts_with("NotFound: "));
  json::Value next = Post("/v1/task", R"({"worker":"a"})");
  EXPECT_EQ(json::Print(*json::Find(next, {"tasks"})),
            R"([{"id":3,"epoch":0,"start":10,"end":20,"tries":0}])");
  EXPECT_EQ(Ask("/v1/restore", R"({"snapshot":null})"), R"({"version":0,"done":0})");
}

TEST_F(JobMasterTest, SilentWorkersAreFoundAndTheirRecordsGoBack) {
  Begin(R"(, "workerTimeoutMs": 5000)");
  Post("/v1/task", R"({"worker":"a"})", 1);
  Post("/v1/heartbeat", R"({"worker":"a"})", 1);
  EXPECT_TRUE(master_.FindExpired(At(6)).is_null());
  json::Value expired = master_.FindExpired(At(7));
  EXPECT_EQ(json::Print(expired), R"({"lost":["a"],"hung":[]})");
  ASSERT_TRUE(master_.Handle("/v1/expire", expired, At(7)).ok());
  EXPECT_EQ(json::GetInt(master_.State(At(7)), {"lost"}), 1);
  EXPECT_EQ(Ask("/v1/task", R"({"worker":"b"})", 8),
            R"({"tasks":[{"id":2,"epoch":0,"start":0,"end":20,"tries":0}]})");
  // A master that was away has heard nobody, and nobody is to blame.
  master_.ForgiveSilence(At(100));
  EXPECT_TRUE(master_.FindExpired(At(104)).is_null());
}

class MasterJournalTest : public JobMasterTest {
 protected:
  void WriteRaw(std::string_view bytes) { ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok()); }
  const TempDir directory_;
  const std::string path_ = directory_.File("journal");
};

TEST_F(MasterJournalTest, ReplaysToTheSameStateAndCutsATornEnd) {
  {
    JobMaster fresh(1);
    auto journal = MasterJournal::Open(path_, fresh);
    ASSERT_TRUE(journal.ok());
    Begin(R"(, "gradsToWait": 2)");
    Post("/v1/task", R"({"worker":"a"})", 5);
    Post("/v1/heartbeat", R"({"worker":"b"})", 6);
    ASSERT_TRUE((*journal)->Append(lines_).ok());
    ASSERT_TRUE((*journal)->Replace(MasterJournal::PrintSnapshot(master_)).ok());
    lines_.clear();
    Post("/v1/gradient", R"({"worker":"a","task":1,"done":10,"version":0})", 7);
    ASSERT_TRUE((*journal)->Append(lines_).ok());
  }
  std::ofstream(path_, std::ios::app) << "0123456789abcdef {\"at\":";
  JobMaster again(1);
  ASSERT_TRUE(MasterJournal::Open(path_, again).ok());
  EXPECT_EQ(json::Print(again.Snapshot()), json::Print(master_.Snapshot()));
  JobMaster third(1);
  ASSERT_TRUE(MasterJournal::Open(path_, third).ok());
  EXPECT_EQ(json::Print(third.Snapshot()), json::Print(master_.Snapshot()));
}

TEST_F(MasterJournalTest, SaysWhichLineIsDamaged) {
  Begin();
  std::string good = lines_;
  good[20] = '#';
  WriteRaw(good + lines_);
  JobMaster fresh(1);
  EXPECT_EQ(MasterJournal::Open(path_, fresh).status().message(), path_ + ": line 1 is damaged");
}

}  // namespace
}  // namespace swell::elastic
