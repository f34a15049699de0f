#include "lab/trace/trace.h"

#include <gtest/gtest.h>

namespace swell::lab {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto read = ParseTrace("t.csv", text);
  return read.ok() ? "" : read.status().message();
}

TEST(Trace, ReadsPolluxWorkloads) {
  const auto trace = ParseTrace("dir/w.csv",
                                "name,time,application,num_replicas,batch_size\n"
                                "cifar10-0,53,cifar10,6,2048\n"
                                "bert-1,100.5,bert,2,24\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->name, "w.csv");
  EXPECT_EQ(trace->format, "pollux");
  ASSERT_EQ(trace->jobs.size(), 2u);
  const TraceJob& job = trace->jobs[0];
  EXPECT_EQ(job.name, "cifar10-0");
  EXPECT_EQ(job.application, "cifar10");
  EXPECT_EQ(job.submitted_s, 53);
  EXPECT_EQ(job.gpus, 6);
  EXPECT_EQ(job.batch, 2048);
  EXPECT_EQ(trace->jobs[1].submitted_s, 101) << "not before it came";
}

TEST(Trace, ReadsRubicksWorkloads) {
  const std::string header =
      "name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,"
      "is_sla\n";
  const auto trace = ParseTrace("w.csv", header +
                                             "vit-0,10,3163.09,vit,2,16,0,zero-dp,37239,1\n"
                                             "llama30-1,1639.5,0.04,llama30,48,384,1.25,344,1,0\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->format, "rubick");
  ASSERT_EQ(trace->jobs.size(), 2u);
  const TraceJob& job = trace->jobs[0];
  EXPECT_EQ(job.name, "vit-0");
  EXPECT_EQ(job.application, "vit");
  EXPECT_EQ(job.submitted_s, 10);
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(job.plan, "zero-dp");
  EXPECT_EQ(job.steps, 37239);
  EXPECT_EQ(job.tenant, "guaranteed");
  EXPECT_EQ(trace->jobs[1].tenant, "best-effort");
  EXPECT_EQ(trace->jobs[1].submitted_s, 1640) << "not before it came";
  EXPECT_EQ(trace->jobs[1].plan, "344");
  const auto alike = ParseTrace("w.csv", header + "vit-0,10,3,vit,2,16,0,ga,3,0\n");
  ASSERT_TRUE(alike.ok());
  EXPECT_EQ(alike->jobs[0].tenant, "") << "no job of the file has a guarantee";
  EXPECT_EQ(ErrorOf(header + "vit-0,10,3,vit,2,16,0,ga,0,0\n"),
            "t.csv:2: steps \"0\": expected a number, at least 1");
}

TEST(Trace, ReadsPhillyInTheOrderOfSubmission) {
  const auto trace = ParseTrace("p.csv",
                                "timestamp,duration,num_gpus,gpu_time,cluster\r\n"
                                "2017-10-09 07:01:55,66.4,1,66.4,11cb48\r\n"
                                "2017-10-09 06:13:03,2951.0,8,23608.0,6214e9\r\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs[0].tenant, "6214e9");
  EXPECT_EQ(trace->jobs[0].submitted_s, 0);
  EXPECT_EQ(trace->jobs[0].gpus, 8);
  EXPECT_EQ(trace->jobs[0].duration_s, 2951);
  EXPECT_EQ(trace->jobs[1].submitted_s, 48 * 60 + 52);
  EXPECT_EQ(trace->jobs[1].duration_s, 66);
}

TEST(Trace, ReadsOpenbsPodsThatHadGpusAndEnded) {
  const std::string header =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
      "deletion_time,scheduled_time\n";
  const auto trace = ParseTrace("o.csv", header +
                                             "a,6000,12288,1,460,,LS,Running,500,900,520\n"
                                             "b,8000,16384,8,1000,V100,BE,Failed,100,4000,130\n"
                                             "c,8000,16384,0,0,,LS,Succeeded,0,50,10\n"
                                             "d,8000,16384,1,1000,,LS,Pending,0,50,\n"
                                             "e,8000,16384,1,1000,,LS,Running,0,4000,10\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->format, "openb");
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs[0].name, "b");
  EXPECT_EQ(trace->jobs[0].submitted_s, 0);
  EXPECT_EQ(trace->jobs[0].gpus, 8);
  EXPECT_EQ(trace->jobs[0].duration_s, 3870);
  EXPECT_EQ(trace->jobs[1].submitted_s, 400);
  EXPECT_EQ(trace->jobs[1].duration_s, 380);
  EXPECT_EQ(trace->left_out, 3) << "c has no GPU, d was never scheduled, e still runs";
  EXPECT_EQ(trace->began_s, 0) << "its seconds are of no calendar";

  EXPECT_EQ(ErrorOf(header + "a,1,1,1,460,,LS,Failed,500,900,400\n"),
            "t.csv:2: scheduled_time \"400\": expected a time between creation and deletion");
  EXPECT_EQ(ErrorOf(header + "a,1,1,-1,460,,LS,Failed,5,9,6\n"),
            "t.csv:2: num_gpu \"-1\": expected 0 to 1000000");
}

TEST(Trace, InstantsAreReadAndWritten) {
  for (const char* text : {"2017-10-09 07:01:55", "1970-01-01 00:00:00", "2028-02-29 23:59:59"}) {
    EXPECT_EQ(InstantText(*ParseInstant(text)), text);
  }
}

TEST(Trace, OfSwellMayKnowTheLeastGpusAndThePriority) {
  const auto trace = ParseTrace("s.csv",
                                "job,tenant,submit_s,gpus,gpus_max,duration_s,gpus_min,priority\n"
                                "a,vision,0,4,8,100,2,75\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->jobs[0].gpus_min, 2);
  EXPECT_EQ(trace->jobs[0].priority, 75);
  const auto older =
      ParseTrace("s.csv", "job,tenant,submit_s,gpus,gpus_max,duration_s\na,vision,0,4,8,100\n");
  ASSERT_TRUE(older.ok()) << older.status().message();
  EXPECT_EQ(older->jobs[0].gpus_min, 0);
  EXPECT_EQ(older->jobs[0].priority, 0);
  const auto wrong = ParseTrace("s.csv",
                                "job,tenant,submit_s,gpus,gpus_max,duration_s,gpus_min\n"
                                "a,vision,0,4,8,100,5\n");
  EXPECT_EQ(wrong.status().message(), "s.csv:2: gpus_min \"5\": expected at most that of gpus");
}

TEST(Trace, ReadsWhatSacctPrintsAndLeavesOutWhatHasNoDuration) {
  const auto trace = ParseTrace(
      "sacct.txt",
      "JobID|Account|Submit|Start|End|NNodes|AllocTRES|State\n"
      "17|vision|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T11:05:00|1|"
      "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1|COMPLETED\n"
      "17.batch|vision|2026-03-01T10:05:00|2026-03-01T10:05:00|2026-03-01T11:05:00|1|"
      "cpu=8,gres/gpu=4|COMPLETED\n"
      "18|vision|2026-03-01T10:00:30|2026-03-01T10:05:00|2026-03-01T10:06:00|1|cpu=8|COMPLETED\n"
      "19|speech|2026-03-01T10:01:00|Unknown|Unknown|1||PENDING\n"
      "20|speech|2026-03-01T10:02:00|2026-03-01T10:02:10|2026-03-01T10:02:40|1|"
      "gres/gpu:a100=1,gres/gpu:v100=2|FAILED\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs[0].name, "17");
  EXPECT_EQ(trace->jobs[0].tenant, "vision");
  EXPECT_EQ(trace->jobs[0].gpus, 4);
  EXPECT_EQ(trace->jobs[0].duration_s, 3600);
  EXPECT_EQ(trace->jobs[1].name, "20");
  EXPECT_EQ(trace->jobs[1].submitted_s, 120);
  EXPECT_EQ(trace->jobs[1].gpus, 3) << "typed GPUs where there is no sum";
  EXPECT_EQ(trace->jobs[1].duration_s, 30);
  EXPECT_EQ(trace->left_out, 2) << "18 had no GPU, 19 never began";
}

TEST(Trace, WhatSacctCannotHavePrintedIsRefused) {
  const std::string header = "JobID|Submit|Start|End|AllocTRES\n";
  EXPECT_EQ(ErrorOf(header + "1|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T10:04:00|"
                             "gres/gpu=1\n"),
            "t.csv:2: End \"2026-03-01T10:04:00\": expected an end after the start");
  EXPECT_EQ(ErrorOf(header + "1|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T10:06:00|"
                             "gres/gpu=x\n"),
            "t.csv:2: AllocTRES \"gres/gpu=x\": expected gres/gpu=N, N from 0 to 1000000");
}

TEST(Trace, AByteOrderMarkIsNoPartOfTheHeader) {
  const auto trace = ParseTrace(
      "t.csv", "\xEF\xBB\xBFname,time,application,num_replicas,batch_size\na,1,bert,1,12\n");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->jobs.size(), 1u);
}

TEST(Trace, ErrorsNameFileLineAndField) {
  const std::string header = "name,time,application,num_replicas,batch_size\n";
  EXPECT_EQ(ErrorOf(header + "a,soon,bert,1,12\n"), "t.csv:2: time \"soon\": expected a number");
  EXPECT_EQ(ErrorOf(header + "a,1,bert,1,12\n\nb,1,bert,0,12\n"),
            "t.csv:4: num_replicas \"0\": expected 1 to 1000000");
  EXPECT_EQ(ErrorOf(header + "a,1,bert\n"), "t.csv:2: 3 fields, but the header has 5");
  EXPECT_EQ(ErrorOf(header + "a,1,bert,1,12\na,2,bert,1,12\n"), "t.csv: two jobs are named \"a\"");
  EXPECT_EQ(ErrorOf(header), "t.csv: has no job that used GPUs and ended");
  EXPECT_EQ(ErrorOf(""), "t.csv: is empty");
  EXPECT_EQ(ErrorOf("name,time,application\na,1,b\n"),
            "t.csv: has no column \"num_replicas\", only \"name, time, application\"");
  EXPECT_EQ(ErrorOf(header + "a\n"), "t.csv:2: 1 field, but the header has 5");
  for (const char* other : {"a,b\n1,2\n", "root:x:0:0\na,b,c\n", "\n\na,b\n1\n"}) {
    EXPECT_EQ(ErrorOf(other).substr(0, 21), "t.csv: unknown format") << other;
  }
}

TEST(Trace, InstantsAreCalendarDays) {
  EXPECT_EQ(*ParseInstant("1970-01-02 00:00:01"), 86401);
  EXPECT_EQ(*ParseInstant("2024-02-29T12:00:00"), 1709208000);
  for (const char* wrong : {"", "Unknown", "2023-02-29T12:00:00", "2024-02-01T24:00:00",
                            "2024-0a-01T20:00:00", "2024-02-01"}) {
    EXPECT_FALSE(ParseInstant(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace swell::lab
