// Tests of the vocabulary: statuses, strings, virtual time, files.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "base/result.h"
#include "base/sim_executor.h"
#include "base/strings.h"

namespace swell {
namespace {

using std::chrono::seconds;

TEST(Status, MapsToKubernetesReasonsAndBack) {
  Status status(Code::kNotFound, "pods \"x\" not found");
  EXPECT_EQ(HttpStatus(status.code()), 404);
  EXPECT_EQ(Reason(status.code()), "NotFound");
  EXPECT_EQ(CodeFromReason("AlreadyExists", 409), Code::kAlreadyExists);
  EXPECT_EQ(CodeFromReason("", 409), Code::kAlreadyExists);
  EXPECT_EQ(CodeFromReason("SomethingNew", 503), Code::kUnavailable);
  EXPECT_EQ(status.WithContext("bind").message(), "bind: pods \"x\" not found");
}

TEST(SimExecutor, TimersOfOneInstantRunInTheOrderTheyWereSet) {
  SimExecutor executor;
  std::string order;
  executor.After(seconds(2), [&] { order += 'c'; });
  executor.After(seconds(1), [&] { order += 'a'; });
  TimerId cancelled = executor.After(seconds(1), [&] { order += 'x'; });
  executor.After(seconds(1), [&] { executor.Post([&] { order += 'b'; }); });
  executor.Cancel(cancelled);
  executor.Advance(seconds(3));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(executor.Steady().ns, 3'000'000'000);
}

TEST(SimExecutor, RunUntilStopsAtTheLimit) {
  SimExecutor executor;
  EXPECT_FALSE(executor.RunUntil([] { return false; }, seconds(5)));
  EXPECT_EQ(executor.Steady().ns, 5'000'000'000);
}

TEST(Strings, Base64RoundTripsEveryLength) {
  Random random(7);
  for (size_t length = 0; length < 50; ++length) {
    std::string bytes;
    for (size_t i = 0; i < length; ++i) bytes += static_cast<char>(random.Next());
    EXPECT_EQ(Base64Decode(Base64Encode(bytes)), bytes);
  }
  EXPECT_FALSE(Base64Decode("a==="));
  EXPECT_FALSE(Base64Decode("ab=c"));
}

TEST(Strings, QuoteKeepsHostileTextOnOneLine) {
  EXPECT_EQ(Quote("a\"b\n\x1b[31m"), "\"a\\\"b\\n\\x1b[31m\"");
  EXPECT_EQ(Quote("\xff\xc3\xa9"), "\"\\xff\xc3\xa9\"");
}

TEST(Strings, Utf8RejectsOverlongAndSurrogates) {
  EXPECT_TRUE(IsValidUtf8("h\xc3\xa9llo \xf0\x9f\x98\x80"));
  EXPECT_FALSE(IsValidUtf8("\xc0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xed\xa0\x80"));
  EXPECT_FALSE(IsValidUtf8("\xf4\x90\x80\x80"));
}

TEST(File, WriteIsWholeAndReadBack) {
  std::string dir = testing::TempDir() + "swell_file_test";
  ASSERT_TRUE(MakeDirs(dir + "/a/b").ok());
  ASSERT_TRUE(WriteFileAtomically(dir + "/a/b/f", "hello").ok());
  EXPECT_EQ(ReadFile(dir + "/a/b/f").value(), "hello");
  EXPECT_EQ(ReadFile(dir + "/nope").status().code(), Code::kNotFound);
  EXPECT_EQ(ListDir(dir + "/a/b").value(), std::vector<std::string>{"f"});
  EXPECT_TRUE(RemoveTree(dir).ok());
  EXPECT_FALSE(FileExists(dir));
}

}  // namespace
}  // namespace swell
