#include "cli/jobs/expected_end.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

using std::chrono::seconds;

const WallTime kNow = *api::ParseTime("2026-01-01T00:00:00Z");

std::string EndOf(const std::string& annotations, const std::string& started) {
  const json::Value pod =
      json::Parse(StrCat(R"({"metadata":{"annotations":{)", annotations,
                         R"(}},"status":{"phase":"Running","startTime":")", started, R"("}})"))
          .value();
  const auto end = ExpectedEndOf({&pod}, kNow);
  return end ? StrCat(api::FormatTime(end->at), end->estimated ? " by its estimate" : "") : "";
}

std::string Limit(const std::string& value) {
  return StrCat(R"("swell.dev/max-run-seconds":")", value, "\"");
}

// Half of it is done.
std::string Estimate(const std::string& rate, const std::string& changed) {
  return StrCat(R"("swell.dev/progress":"{\"ranks\":[{\"rank\":0,\"phase\":\"step\",\"step\":100,)",
                R"(\"totalSteps\":200,\"stepsPerSecond\":)", rate, R"(,\"changed\":\")", changed,
                R"(\"}]}")");
}

TEST(ExpectedEnd, IsTheLimitOrTheEstimateWhicheverComesFirst) {
  const std::string before = "2025-12-31T23:59:00Z";
  EXPECT_EQ(EndOf("", before), "");
  EXPECT_EQ(EndOf(Limit("90"), before), "2026-01-01T00:00:30Z");
  EXPECT_EQ(EndOf(Limit("30"), before), "") << "it should be over";
  EXPECT_EQ(EndOf(Estimate("1", before), before), "2026-01-01T00:00:40Z by its estimate");
  EXPECT_EQ(EndOf(StrCat(Limit("90"), ",", Estimate("1", before)), before), "2026-01-01T00:00:30Z");
}

TEST(ExpectedEnd, WhatUsersWriteIsNoTimeThatCannotBe) {
  const std::string now = api::FormatTime(kNow), never = "9999-12-31T23:59:59Z";
  const std::string last = api::FormatTime(kNow + seconds(1'000'000'000));
  EXPECT_EQ(EndOf(Limit("9223372036854775807"), now), last);
  EXPECT_EQ(EndOf(Limit("60"), never), "2026-01-01T00:01:00Z");
  EXPECT_EQ(EndOf(Estimate("0.00000002", now), now), "") << "no estimate is so far ahead";
  EXPECT_EQ(EndOf(Estimate("1", never), now), "2026-01-01T00:01:40Z by its estimate");
}

}  // namespace
}  // namespace swell::cli
