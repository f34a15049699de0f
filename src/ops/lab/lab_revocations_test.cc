#include "ops/lab/lab_revocations.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::ops {
namespace {

// "TIMES in ten days, NOTICE, AWAY, SAVE, EVERY", in seconds; "nodes stay"; or an error's words.
std::string Read(const std::vector<std::string>& arguments) {
  LabRevocations revocations;
  cli::Flags flags;
  revocations.Declare(flags);
  std::vector<std::string> words;
  const Status parsed = flags.Parse(arguments, &words);
  EXPECT_TRUE(parsed.ok()) << parsed.message();
  const Status checked = revocations.Check();
  if (!checked.ok()) return checked.message();
  const auto options = revocations.Options(7);
  EXPECT_EQ(options.has_value(), revocations.given());
  if (!options) return "nodes stay";
  EXPECT_EQ(options->seed, 7u);
  return StrCat(std::llround(options->per_node_day * 10), " in ten days, ", options->notice_s, ", ",
                options->away_s, ", ", options->save_s ? StrCat(*options->save_s) : "as a resize",
                ", ", options->save_every_s);
}

TEST(LabRevocations, HaveTheirTimesFromFlags) {
  EXPECT_EQ(Read({}), "nodes stay");
  EXPECT_EQ(Read({"--revoke", "5"}), "50 in ten days, 30, 1800, as a resize, 600");
  EXPECT_EQ(
      Read({"--revoke=0.5", "--notice=0s", "--away=1m", "--save-time=1h", "--save-every=90s"}),
      "5 in ten days, 0, 60, 3600, 90");
}

TEST(LabRevocations, AMisuseNamesTheFlagAndWhatItExpects) {
  EXPECT_EQ(Read({"--away", "1h"}), "--away needs --revoke");
  EXPECT_EQ(Read({"--revoke=5", "--away=0s"}), "--away \"0s\": expected 1s to 365d");
  for (const char* rate : {"often", "-1", "1001", "nan", "5x"}) {
    EXPECT_EQ(
        Read({StrCat("--revoke=", rate)}),
        StrCat("--revoke \"", rate, "\": expected 0 to 1000 times a day for each node, 5 or 0.5"));
  }
}

}  // namespace
}  // namespace swell::ops
