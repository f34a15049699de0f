#include "elastic/log_metrics.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::elastic {
namespace {

constexpr std::string_view kAt = "2026-01-01T00:00:0";

LogMetrics Default() { return std::move(LogMetrics::Compile("")).value(); }

// Lines with times 1 s, 2 s, ... after the epoch of these tests.
std::string Log(const std::vector<std::string>& lines) {
  std::string out;
  int second = 0;
  for (const std::string& line : lines) out += StrCat(kAt, ++second, "Z ", line, "\n");
  return out;
}

std::vector<double> Read(const std::string& log, int64_t nodes = 1) {
  LogPosition position;
  return Default().Read(log, nodes, position);
}

TEST(LogMetrics, ReadsTheDocumentsLines) {
  EXPECT_EQ(Read(Log({"Epoch: [17][   0/1563]\tTime  5.969 ( 5.969)\tData  0.214 ( 0.214)\tLoss "
                      "2.1565e+00 (2.1565e+00)\tAcc@1  53.12 ( 53.12)\tAcc@5  75.00 ( 75.00)",
                      "Epoch: [3][1550/1563]\tTime  0.258 ( 0.385)\tData  0.155 ( 0.170)",
                      "Epoch: [120][  50/20000]\tTime 12.5 ( 0.385)"})),
            (std::vector<double>{5.969, 0.258, 12.5}));
}

TEST(LogMetrics, LeavesOutWhatIsNoObservation) {
  EXPECT_EQ(Read(Log({"Epoch: [1][", "Epoch: [1][0/3]\tTime x", "Epoch: [1][0/3]\tTime -1.0", "",
                      "Epoch: [][0/3]\tTime 0.1", "Epoch: [1][0/3]\tTime 0.000 (0.1)",
                      std::string("\xff\xfe\0", 3) + " Epoch: [1][1/3]\tTime 0.125"})),
            (std::vector<double>{0.125}));
  EXPECT_TRUE(Read("Epoch: [1][0/3]\tTime 0.1\n").empty()) << "a line without its time";
  EXPECT_TRUE(Read(StrCat(kAt, "1Z Epoch: [1][0/3]\tTime 0.1")).empty()) << "half a line";
}

TEST(LogMetrics, GoesOnWhereItStopped) {
  LogMetrics metrics = Default();
  LogPosition position;
  std::string one = "Epoch: [1][0/3]\tTime 0.1", two = "Epoch: [1][1/3]\tTime 0.2";
  EXPECT_EQ(metrics.Read(Log({one}), 1, position), (std::vector<double>{0.1}));
  EXPECT_EQ(metrics.Read(Log({one, two}), 1, position), (std::vector<double>{0.2}));
  EXPECT_TRUE(metrics.Read(Log({one, two}), 1, position).empty());
}

TEST(LogMetrics, LinesOfOneInstantAllCount) {
  std::string line = StrCat(kAt, "1.5Z Epoch: [1][0/3]\tTime 0.1\n");
  EXPECT_EQ(Read(line + line), (std::vector<double>{0.1, 0.1}));
}

TEST(LogMetrics, OnlyAGroupOfTheRightSizeCounts) {
  LogMetrics metrics = Default();
  LogPosition position;
  std::string step = "Epoch: [1][0/3]\tTime 0.1";
  EXPECT_EQ(metrics.Read(Log({"swell.launch: 1 node trains", step}), 1, position),
            (std::vector<double>{0.1}));
  std::string log = Log({"swell.launch: 1 node trains", step, step});
  EXPECT_TRUE(metrics.Read(log, 2, position).empty()) << "it still trains alone";
  log = Log({"", "", "", "swell.launch: 2 nodes train", "Epoch: [1][0/3]\tTime 0.2"});
  EXPECT_EQ(metrics.Read(log, 2, position), (std::vector<double>{0.2}));
  EXPECT_EQ(position.nodes, 2);
}

TEST(LogMetrics, TakesThePatternOfTheJob) {
  auto metrics = LogMetrics::Compile(R"(step=\d+ took (\d+)ms)");
  ASSERT_TRUE(metrics.ok());
  LogPosition position;
  EXPECT_EQ(metrics->Read(Log({"step=7 took 250ms"}), 1, position), (std::vector<double>{250}));
  EXPECT_EQ(LogMetrics::Compile("took").status().message(),
            "Invalid value: \"took\": must have a group that is the number");
  EXPECT_FALSE(LogMetrics::Compile("(").ok());
  EXPECT_FALSE(LogMetrics::Compile(std::string(5000, 'a')).ok());
}

TEST(LogMetrics, HostilePatternsTakeLinearTime) {
  auto metrics = LogMetrics::Compile("((a+)+)+$([0-9])");
  ASSERT_TRUE(metrics.ok());
  LogPosition position;
  EXPECT_TRUE(metrics->Read(Log({std::string(8000, 'a') + "!"}), 1, position).empty());
}

TEST(LogMetrics, ParsesTimes) {
  EXPECT_EQ(ParseStamp("1970-01-01T00:00:01Z"), 1'000'000'000);
  EXPECT_EQ(ParseStamp("2026-01-01T00:00:00.5Z") - ParseStamp("2026-01-01T00:00:00Z"), 500'000'000);
  EXPECT_EQ(ParseStamp("2026-01-01T08:00:00+08:00"), ParseStamp("2026-01-01T00:00:00Z"));
  EXPECT_EQ(ParseStamp("2026-01-01T00:00:00.123456789012Z") % 1'000'000'000, 123'456'789);
  for (const char* wrong :
       {"", "2026-01-01", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z",
        "2026-01-01T00:00:00.Zx", "x026-01-01T00:00:00Z", "2026-01-01T00:00:00+8:00"}) {
    EXPECT_EQ(ParseStamp(wrong), -1) << wrong;
  }
}

}  // namespace
}  // namespace swell::elastic
