#include "lab/trace/shockwave.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::lab {
namespace {

constexpr std::string_view kSpeeds = R"json({"v100": {
  "('LM (batch size 40)', 1)": {"null": 20},
  "('LM (batch size 80)', 1)": {"null": 20},
  "('Transformer (batch size 100)', 2)": {"null": 5},
  "('ResNet-18 (batch size 250)', 1)": {"null": 2},
  "('ResNet-18 (batch size 256)', 1)": {"null": 4}}})json";

std::string LineOf(std::string_view application, int64_t steps, int gpus, std::string_view mode) {
  return StrCat(application, "\tpython3\tfolder\t--steps\t1\t", steps, "\t", gpus, "\t", mode,
                "\t1\t-1.000000\t100\t7\n");
}

std::string DurationOf(const std::string& line) {
  const auto trace = ParseShockwave("t.trace", line, kSpeeds);
  if (!trace.ok()) return trace.status().message();
  return StrCat(trace->jobs[0].duration_s, " s on ", trace->jobs[0].gpus);
}

TEST(Shockwave, AJobIsAsLongAsItsEpochs) {
  // 100 steps of an epoch, at 5 a second.
  EXPECT_EQ(DurationOf(LineOf("Transformer (batch size 100)", 300, 2, "static")), "60 s on 2");
  EXPECT_EQ(DurationOf(LineOf("Transformer (batch size 100)", 301, 2, "static")), "80 s on 2")
      << "epochs are whole";
  EXPECT_EQ(DurationOf(LineOf("Transformer (batch size 100)", 300, 2, "accordion")), "60 s on 2")
      << "its batch does not grow";
}

TEST(Shockwave, TheBatchGrowsByTheNoiseScale) {
  // 12 epochs of 1,492 steps: 74.59 s an epoch at batch 40; from the twelfth on at batch 80, and
  // half of that.
  EXPECT_EQ(DurationOf(LineOf("LM (batch size 40)", 17904, 1, "gns")), "858 s on 1");
  EXPECT_EQ(DurationOf(LineOf("LM (batch size 40)", 17904, 1, "static")), "895 s on 1");
}

TEST(Shockwave, AccordionTrainsWithTheLargestBatchOutsideOfCriticalEpochs) {
  // 12 or 10 epochs of 200 steps: 100 s each, from the eleventh on 195.3125 steps of 0.25 s.
  EXPECT_EQ(DurationOf(LineOf("ResNet-18 (batch size 250)", 2400, 1, "accordion")), "1098 s on 1");
  EXPECT_EQ(DurationOf(LineOf("ResNet-18 (batch size 250)", 2000, 1, "accordion")), "1000 s on 1");
}

TEST(Shockwave, ErrorsNameTheLine) {
  EXPECT_EQ(DurationOf("a\tb\n"), "t.trace:1: expected 12 fields between tabs");
  EXPECT_EQ(DurationOf(LineOf("LM", 1, 1, "gns")), "t.trace:1: expected NAME (batch size N)");
  EXPECT_EQ(DurationOf(LineOf("A3C (batch size 4)", 1, 1, "gns")),
            "t.trace:1: unknown application \"A3C\"");
  EXPECT_EQ(DurationOf(LineOf("LM (batch size 5)", 1, 1, "static")),
            "t.trace:1: no speed of LM with batch 5 on 1 GPUs in tacc_throughputs.json");
  EXPECT_EQ(DurationOf(LineOf("LM (batch size 40)", 1, 1, "dynamic")),
            "t.trace:1: expected static, accordion or gns");
  EXPECT_EQ(DurationOf(LineOf("LM (batch size 40)", 0, 1, "gns")),
            "t.trace:1: expected steps, at least 1");
}

TEST(Shockwave, SpeedsLieBesideTheTrace) {
  const TempDir dir;
  const std::string file = StrCat(dir.path(), "/t.trace");
  ASSERT_TRUE(
      WriteFileAtomically(file, LineOf("Transformer (batch size 100)", 300, 2, "gns")).ok());
  const auto without = ReadTrace(file);
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.status().message().find("needs tacc_throughputs.json beside it"),
            std::string::npos);
  ASSERT_TRUE(
      WriteFileAtomically(StrCat(dir.path(), "/tacc_throughputs.json"), std::string(kSpeeds)).ok());
  const auto trace = ReadTrace(file);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->format, "shockwave");
  EXPECT_EQ(trace->name, "t.trace");
  ASSERT_EQ(trace->jobs.size(), 1u);
  EXPECT_EQ(trace->jobs[0].submitted_s, 7);
  EXPECT_EQ(trace->jobs[0].duration_s, 60);
}

}  // namespace
}  // namespace swell::lab
