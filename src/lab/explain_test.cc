// One job's life in words, to the letter.
#include "lab/explain.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::lab {
namespace {

Trace TwoJobs() {
  Trace trace{"t", "swell", {}};
  trace.jobs.push_back({"long", "red", 0, 4, "", 0, 1000});
  trace.jobs.push_back({"short", "blue", 100, 4, "", 0, 100});
  return trace;
}

std::string Explain(std::string_view policy, const std::string& job) {
  RunOptions options;
  options.shape = {1, 4};
  options.resize_s = 10;
  const auto text = ExplainJob(TwoJobs(), ProfileLibrary(), **FindPolicy(policy), options, job);
  return text.ok() ? *text : text.status().message();
}

TEST(Explain, AJobThatWaitsSaysForWhat) {
  EXPECT_EQ(Explain("fifo", "short"),
            "short of blue requests 4 GPUs, submitted at 100 s, policy fifo\n"
            "at 100 s: waited: 4 GPUs of 1 job in use\n"
            "    why: in the order of submission, submitted at 100 s\n"
            "at 1010 s: started on 4 GPUs\n"
            "    why: in the order of submission, submitted at 100 s\n"
            "at 1120 s: ended, 1020 s after its submission, of which 910 s before its start; "
            "restarts: 0, GPU-hours: 0.12\n");
}

TEST(Explain, APreemptionNamesWhoTookThePlace) {
  EXPECT_EQ(Explain("shortest", "long"),
            "long of red requests 4 GPUs, submitted at 0 s, policy shortest\n"
            "at 60 s: started on 4 GPUs\n"
            "    why: least left to train goes first, it has 1000 s left\n"
            "at 120 s: gave up all of its 4 GPUs\n"
            "    why: least left to train goes first, it has 950 s left\n"
            "    short started on 4 GPUs\n"
            "at 240 s: resumed on 4 GPUs\n"
            "    why: least left to train goes first, it has 950 s left\n"
            "at 1200 s: ended, 1200 s after its submission, of which 60 s before its start; "
            "restarts: 1, GPU-hours: 1.13\n");
}

TEST(Explain, EveryPolicyHasAReason) {
  for (const PolicyKind& kind : Policies()) {
    const std::string text = Explain(kind.name, "long");
    EXPECT_EQ(text.find("why: \n"), std::string::npos) << text;
    EXPECT_NE(text.find("    why: "), std::string::npos) << text;
    EXPECT_NE(text.find(" s: ended, "), std::string::npos) << text;
  }
}

TEST(Explain, TellsTheTimeWhereACalendarIsKnown) {
  Trace trace = TwoJobs();
  trace.began_s = *ParseInstant("2026-11-24 10:00:00");
  trace.jobs[1].name = "blue/short";
  RunOptions options;
  options.shape = {1, 4};
  options.resize_s = 10;
  const auto text = ExplainJob(trace, ProfileLibrary(), **FindPolicy("fifo"), options, "short");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->find("blue/short of blue requests 4 GPUs, submitted at 2026-11-24 10:01:40 "
                       "(+100 s), policy fifo\nat 2026-11-24 10:01:40 (+100 s): waited: "),
            0u)
      << *text;
}

TEST(Explain, GoodputTellsWhatAGpuIsWorthHereAndElsewhere) {
  // Both want all four; the first has had service, and a start costs the second a little.
  const std::string text = Explain("goodput", "short");
  EXPECT_NE(text.find("why: a GPU goes where it adds most: "), std::string::npos) << text;
  EXPECT_NE(text.find(" each, "), std::string::npos) << text;
  EXPECT_NE(text.find("the least that one adds elsewhere is 0."), std::string::npos) << text;
  EXPECT_NE(text.find("; its weight is 1.00 after 0 GPU-seconds\n"), std::string::npos) << text;
}

TEST(Explain, AnotherNameListsTheJobs) {
  EXPECT_EQ(Explain("fifo", "none"), "t has no job \"none\"; its jobs are long, short");
}

}  // namespace
}  // namespace swell::lab
