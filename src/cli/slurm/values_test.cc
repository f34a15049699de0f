// Slurm's forms of values, as people write them.
#include "cli/slurm/values.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/jobs/gate_request.h"
#include "cli/slurm/batch_flags.h"
#include "cli/slurm/fields.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

std::string TimeOf(std::string_view text) {
  const auto seconds = ParseTimeLimit("--time", text);
  return seconds.ok() ? std::to_string(*seconds) : seconds.status().message();
}

TEST(SlurmValues, TimeLimitsHaveSixForms) {
  EXPECT_EQ(TimeOf("90"), "5400");
  EXPECT_EQ(TimeOf("10:30"), "630");
  EXPECT_EQ(TimeOf("1:00:05"), "3605");
  EXPECT_EQ(TimeOf("2-12"), "216000");
  EXPECT_EQ(TimeOf("1-00:30"), "88200");
  EXPECT_EQ(TimeOf("1-01:01:01"), "90061");
  EXPECT_EQ(TimeOf("UNLIMITED"), "0");
  for (std::string_view wrong : {"", "soon", "1:2:3:4", "-5", "1-", "99999999999", "+3",
                                 "1-99:99:99", "1-24", "1:60", "0:0:60"}) {
    EXPECT_NE(TimeOf(wrong).find("expected"), std::string::npos) << wrong;
  }
}

TEST(SlurmValues, ACountSaysWhichBoundItIsBeyond) {
  EXPECT_EQ(*ParseCount("-c", "4", 1), 4);
  EXPECT_EQ(ParseCount("-c", "0", 1).status().message(),
            "-c \"0\": expected a whole number of at least 1");
  EXPECT_EQ(ParseCount("-c", "99999999999", 1).status().message(),
            "-c \"99999999999\": expected a number of at most 1000000000");
}

TEST(SlurmValues, MemoryIsInMebibytesUnlessItSaysOtherwise) {
  EXPECT_EQ(*ParseMemoryMib("--mem", "512"), 512);
  EXPECT_EQ(*ParseMemoryMib("--mem", "4G"), 4096);
  EXPECT_EQ(*ParseMemoryMib("--mem", "4GB"), 4096);
  EXPECT_EQ(*ParseMemoryMib("--mem", "1T"), 1 << 20);
  EXPECT_EQ(*ParseMemoryMib("--mem", "1K"), 1);
  EXPECT_EQ(ParseMemoryMib("--mem", "4X").status().message(),
            "--mem \"4X\": expected an amount like 4G or 512M");
}

TEST(SlurmValues, GpusHaveACountAndMayHaveAType) {
  EXPECT_EQ(ParseGres("gpu")->count, 1);
  EXPECT_EQ(ParseGres("gpu:4")->count, 4);
  EXPECT_EQ(ParseGres("gpu:a100:2")->count, 2);
  EXPECT_EQ(ParseGres("gpu:a100:2")->type, "a100");
  EXPECT_EQ(ParseGres("gpu:h100")->type, "h100");
  EXPECT_EQ(ParseGpuRequest("--gpus", "a100:8")->count, 8);
  EXPECT_FALSE(ParseGres("fpga:1").ok());
  EXPECT_FALSE(ParseGpuRequest("--gpus", "many").ok());
}

TEST(SlurmValues, ArraysAreRangesStepsAndALimit) {
  EXPECT_EQ(ParseArrayRange("--array", "0-3")->ids, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(ParseArrayRange("--array", "1,7,3-9:3%2")->ids, (std::vector<int64_t>{1, 3, 6, 7, 9}));
  EXPECT_EQ(ParseArrayRange("--array", "0-99%8")->at_once, 8);
  for (std::string_view wrong : {"", "3-1", "a", "0-99999999", "1-5:0", "0-9%0", "0-4000000"}) {
    EXPECT_FALSE(ParseArrayRange("--array", wrong).ok()) << wrong;
  }
}

TEST(SlurmValues, SignalsHaveNamesAndNumbers) {
  EXPECT_EQ(SignalName("SIGUSR1"), "USR1");
  EXPECT_EQ(SignalName("usr2"), "USR2");
  EXPECT_EQ(SignalName("15"), "TERM");
  EXPECT_EQ(SignalName("BOO"), "");
  const auto signal = ParseSignal("B:USR1@90");
  EXPECT_TRUE(signal->shell_only);
  EXPECT_EQ(signal->seconds_before, 90);
  EXPECT_FALSE(ParseSignal("USR1@soon").ok());
}

TEST(SlurmValues, BeginIsATimeOrASpan) {
  const WallTime now = *api::ParseTime("2026-11-25T12:00:00Z");
  const auto at = [now](std::string_view text) {
    const auto time = ParseBegin("--begin", text, now);
    return time.ok() ? api::FormatTime(*time) : time.status().message();
  };
  EXPECT_EQ(at("now+2hours"), "2026-11-25T14:00:00Z");
  EXPECT_EQ(at("now+90"), "2026-11-25T12:01:30Z");
  EXPECT_EQ(at("2026-12-24T18:00:00"), "2026-12-24T18:00:00Z");
  EXPECT_EQ(at("18:30"), "2026-11-25T18:30:00Z");
  EXPECT_EQ(at("08:00"), "2026-11-26T08:00:00Z");
  EXPECT_NE(at("later").find("expected"), std::string::npos);
}

TEST(SlurmValues, TimesAreWrittenAsSlurmWritesThem) {
  using std::chrono::seconds;
  EXPECT_EQ(TimeText(seconds(65)), "1:05");
  EXPECT_EQ(TimeText(seconds(7205)), "2:00:05");
  EXPECT_EQ(TimeText(seconds(90061)), "1-01:01:01");
  EXPECT_EQ(LongTimeText(seconds(65)), "00:01:05");
}

TEST(SlurmValues, NamesOfNodesAreExpandedAndCompressed) {
  EXPECT_EQ(Join(*ExpandNames("-w", "node[1-3,7],head"), " "), "node1 node2 node3 node7 head");
  EXPECT_EQ(Join(*ExpandNames("-w", "n[08-10]"), " "), "n08 n09 n10");
  EXPECT_FALSE(ExpandNames("-w", "node[1-").ok());
  EXPECT_EQ(CompressNames({"node-3", "node-1", "node-2", "head", "node-9"}), "head,node-[1-3,9]");
  EXPECT_EQ(CompressNames({"n08", "n09", "n10"}), "n10,n[08-09]");
}

TEST(SlurmValues, WordsAreTimesOfUtc) {
  const WallTime now = *api::ParseTime("2026-11-26T13:30:00Z");
  const auto at = [now](std::string_view text) {
    const auto time = ParseWord(text, now);
    return time ? api::FormatTime(*time) : std::string("none");
  };
  EXPECT_EQ(at("now-1hours"), "2026-11-26T12:30:00Z");
  EXPECT_EQ(at("now+2min"), "2026-11-26T13:32:00Z");
  EXPECT_EQ(at("today"), "2026-11-26T00:00:00Z");
  EXPECT_EQ(at("tomorrow"), "2026-11-27T00:00:00Z");
  EXPECT_EQ(at("noon"), "2026-11-27T12:00:00Z");
  EXPECT_EQ(at("now+"), "none");
  EXPECT_EQ(at("soon"), "none");
}

TEST(SlurmValues, AFormatHasColumnsOfFixedWidth) {
  std::string unknown;
  const auto format = ParseFormat("-o", "%.6i|%4j|%t%%%z", "ijt", &unknown);
  ASSERT_TRUE(format.ok());
  EXPECT_EQ(FormatRow(*format, [](char c) { return c == 'j' ? "training" : std::string(1, c); }),
            "     i|trai|t%N/A\n");
  EXPECT_EQ(unknown, "%z");
  EXPECT_EQ(ParseFormat("-o", "%", "ij", &unknown).status().message(),
            "-o \"%\": expected a letter after %");
}

TEST(SlurmHeader, EndsWhereTheCommandsBegin) {
  const auto words = HeaderWords(
      "#!/bin/bash\n#SBATCH --job-name=\"my job\" # its name\n\n# a comment\n##SBATCH -N9\n"
      "#SBATCH -N 2\n#SBATCHER -x\necho\n#SBATCH --nodes=4\n");
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(*words, (std::vector<std::string>{"--job-name=my job", "-N", "2"}));
  EXPECT_EQ(HeaderWords("#!/bin/sh\n#SBATCH -J 'x\n").status().message(),
            "line 2 of the script: a quotation mark is not closed");
}

}  // namespace
}  // namespace swell::cli::slurm
