// Timelines of jobs: the same after a restart, bounded, and closed where nobody watched.
#include "ui/state/member_log.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "ui/state/eviction_counts.h"

namespace swell::ui {
namespace {

constexpr WallTime kStart{1'767'225'600'000'000'000};  // 2026-01-01
constexpr Duration kMinute = std::chrono::minutes(1);

json::Value Pod(const std::string& uid,
                const std::string& phase,
                const std::string& job = "job-uid") {
  return json::Parse(StrCat(R"({"metadata":{"name":"job-worker-0","uid":")", uid,
                            R"(","creationTimestamp":"2026-01-01T00:00:00Z","ownerReferences":[)",
                            R"({"kind":"Job","name":"job","controller":true,"uid":")", job,
                            R"("}]},"spec":{"nodeName":"n"},"status":{"phase":")", phase, R"("}})"))
      .value();
}

// "a running 1..3 b starting 4..": pods, states and minutes.
std::string Text(const MemberLog& log, const std::string& job = "job-uid") {
  const JobLog* found = log.Find(job);
  if (found == nullptr) return "unknown";
  std::vector<std::string> words;
  const auto minutes = [](WallTime at) { return (at - kStart) / kMinute; };
  for (const MemberSpan& span : found->spans) {
    words.push_back(StrCat(span.uid, " ", span.state, " ", minutes(span.from), "..",
                           span.to ? StrCat(minutes(*span.to)) : ""));
  }
  return Join(words, ", ");
}

MemberLog Restarted(const MemberLog& before) {
  MemberLog after;
  after.Restore("job-uid", TextOf(*before.Find("job-uid")));
  return after;
}

TEST(MemberLog, IsTheSameAfterARestart) {
  MemberLog log;
  log.OnPod(Pod("a", "Pending"), kStart + kMinute);
  log.OnPod(Pod("a", "Running"), kStart + kMinute * 2);
  log.OnPodGone(Pod("a", "Running"), kStart + kMinute * 5);
  log.OnPod(Pod("b", "Pending"), kStart + kMinute * 6);
  EXPECT_EQ(Text(log), "a starting 1..2, a running 2..5, b starting 6..");
  EXPECT_EQ(Text(Restarted(log)), Text(log));
}

// The pod of a job that was preempted before, without a place so far.
json::Value WaitingAgain(const std::string& uid, const std::string& member) {
  json::Value pod = Pod(uid, "Pending");
  json::Set(pod, {"metadata", "name"}, member);
  json::Set(pod, {"metadata", "annotations", "swell.dev/preemptions-before"}, "1");
  json::Set(pod, {"spec", "nodeName"}, "");
  return pod;
}

TEST(MemberLog, OnlyAMemberThatHadAPlaceWasPreempted) {
  MemberLog log;
  log.OnPod(Pod("a", "Running"), kStart);
  log.OnPodGone(Pod("a", "Running"), kStart + kMinute * 2);
  log.OnPod(WaitingAgain("b", "job-worker-0"), kStart + kMinute * 2);
  log.OnPod(WaitingAgain("c", "job-worker-1"), kStart + kMinute * 2);
  // A member that never ran is made anew, and still never ran.
  log.OnPodGone(WaitingAgain("c", "job-worker-1"), kStart + kMinute * 3);
  log.OnPod(WaitingAgain("d", "job-worker-1"), kStart + kMinute * 3);
  EXPECT_EQ(Text(log), "a running 0..2, b preempted 0.., c queued 0..3, d queued 0..");
}

// The pod of a ReplicaSet, with the hash of its Deployment's template.
json::Value Replica(const std::string& uid, const std::string& hash) {
  json::Value pod = Pod(uid, "Running", "set-" + hash);
  json::Set(pod, {"metadata", "namespace"}, "vision");
  json::Set(pod, {"metadata", "labels", "pod-template-hash"}, hash);
  json::Value& owner = json::FindMutable(pod, {"metadata", "ownerReferences"})->get_array()[0];
  json::Set(owner, {"kind"}, "ReplicaSet");
  json::Set(owner, {"name"}, StrCat("bert-", hash));
  return pod;
}

TEST(MemberLog, AnUpdateOfADeploymentContinuesItsLog) {
  MemberLog log;
  log.OnPod(Replica("a", "5f"), kStart);
  log.OnPod(Replica("b", "7c"), kStart + kMinute);
  log.OnPodGone(Replica("a", "5f"), kStart + kMinute * 2);
  EXPECT_EQ(Text(log, DeploymentLogKey("vision", "bert")), "a running 0..2, b running 1..");
  // A set that no Deployment made is itself what the pods belong to.
  json::Value alone = Replica("c", "9d");
  alone.at_pointer("/metadata").as_object().erase("labels");
  log.OnPod(alone, kStart);
  EXPECT_EQ(Text(log, "set-9d"), "c running 0..");
}

TEST(MemberLog, APodThatIsStillThereContinues) {
  MemberLog log;
  log.OnPod(Pod("a", "Pending"), kStart + kMinute);
  MemberLog after = Restarted(log);
  after.OnPod(Pod("a", "Pending"), kStart + kMinute * 9);
  after.CloseUnseen({"a"}, kStart + kMinute * 3);
  EXPECT_EQ(Text(after), "a starting 1..");
  after.OnPod(Pod("a", "Running"), kStart + kMinute * 10);
  EXPECT_EQ(Text(after), "a starting 1..10, a running 10..");
}

TEST(MemberLog, APodThatWentWhileNobodyWatchedEndsWhereTheWatchEnded) {
  MemberLog log;
  log.OnPod(Pod("a", "Pending"), kStart + kMinute);
  MemberLog after = Restarted(log);
  EXPECT_TRUE(after.TakeChanged().empty());
  after.OnPod(Pod("b", "Pending"), kStart + kMinute * 9);
  after.CloseUnseen({"b"}, kStart + kMinute * 3);
  EXPECT_EQ(Text(after), "a starting 1..3, b starting 9..");
  EXPECT_EQ(after.TakeChanged(), std::set<std::string>{"job-uid"});
  EXPECT_TRUE(after.TakeChanged().empty());
}

TEST(MemberLog, TheQuietestJobGivesWayAndThatIsAChange) {
  MemberLog log;
  for (size_t i = 0; i <= MemberLog::kJobsMax; ++i) {
    log.OnPod(Pod("a", "Running", StrCat("job-", i)), kStart + kMinute * static_cast<int64_t>(i));
  }
  EXPECT_EQ(Text(log, "job-0"), "unknown");
  EXPECT_TRUE(log.TakeChanged().contains("job-0"));
}

TEST(MemberLog, NonsenseInAFileIsLeftOut) {
  for (const char* text :
       {"", "x", "[]", R"({"spans":[1,[],[0,0,"running",1,2]]})",
        R"({"names":["p","u"],"spans":[[0,9,"running",1,2],[-1,1,"running",1,2],)"
        R"([0,1,"flying",1,2],[0,1,"running",-5,2],[0,1,"running","x",2],[0,1,7,1,2]]})",
        R"({"names":[1,{}],"spans":[[0,1,"running",1,2]],"checkpoints":[[1],["a",2],7]})"}) {
    MemberLog log;
    log.Restore("job-uid", text);
    EXPECT_EQ(Text(log), "unknown") << text;
  }
  JobLog huge;
  for (size_t i = 0; i < MemberLog::kSpansMax + 10; ++i) {
    huge.spans.push_back({"m", StrCat(i), "running", kStart, kStart});
  }
  EXPECT_EQ(JobLogOf(TextOf(huge)).spans.size(), MemberLog::kSpansMax);
}

TEST(EvictionCounts, APodCountsOnceUnderItsRule) {
  const auto group = [](const std::string& records) {
    return json::Parse(StrCat(R"({"status":{"evicted":[)", records, "]}}")).value();
  };
  const auto pod = [](const std::string& uid, const std::string& rule) {
    return json::Parse(StrCat(R"({"metadata":{"uid":")", uid,
                              R"(","annotations":{"swell.dev/preempted-rule":")", rule, R"("}}})"))
        .value();
  };
  const WallTime always;
  EvictionCounts counts;
  counts.OnPod(pod("old", "shrink"), kStart);
  counts.OnPod(pod("old", "shrink"), always);
  counts.OnPod(pod("untouched", ""), always);
  EXPECT_TRUE(counts.by_rule().empty());
  counts.OnGroup(group(R"({"rule":"reclaim","pods":["a","b"]})"), always);
  counts.OnGroup(group(R"({"rule":"reclaim","pods":["b"]},{"rule":"preempt","pods":["c"]})"),
                 always);
  counts.OnPod(pod("a", "reclaim"), always);
  counts.OnPod(pod("d", "shrink"), always);
  EXPECT_EQ(counts.by_rule(),
            (std::map<std::string, int64_t>{{"preempt", 1}, {"reclaim", 2}, {"shrink", 1}}));
  for (int i = 0; i < 100; ++i) counts.OnPod(pod(StrCat("x", i), StrCat("r", i)), always);
  EXPECT_LE(counts.by_rule().size(), EvictionCounts::kRulesMax + 1);
}

TEST(EvictionCounts, ContinuesWhereAnEarlierProcessEnded) {
  EvictionCounts counts;
  counts.Restore("reclaim", 7);
  counts.Restore("preempt", 0);
  counts.OnGroup(json::Parse(R"({"status":{"evicted":[
      {"rule":"reclaim","time":"2025-12-31T23:59:59Z","pods":["counted"]},
      {"rule":"reclaim","time":"2026-01-01T00:00:01Z","pods":["meanwhile","also"]}]}})")
                     .value(),
                 kStart);
  counts.OnPod(json::Parse(R"({"metadata":{"uid":"marked","annotations":
      {"swell.dev/preempted-rule":"shrink"}},"status":{"conditions":[{"type":"DisruptionTarget",
      "status":"True","lastTransitionTime":"2026-01-01T00:00:02Z"}]}})")
                   .value(),
               kStart);
  EXPECT_EQ(counts.by_rule(), (std::map<std::string, int64_t>{{"reclaim", 9}, {"shrink", 1}}));
}

}  // namespace
}  // namespace swell::ui
