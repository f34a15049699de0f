// Sessions: codes that are good once, sessions that end by themselves, bounds.
#include "ui/sessions.h"

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"

namespace swell::ui {
namespace {

class SessionsTest : public ::testing::Test {
 protected:
  SimExecutor time_;
  int made_ = 0;
  Sessions sessions_{time_, [this] { return StrCat("secret-", ++made_); }};

  std::string Begin(const std::string& name) {
    return sessions_.Begin({.bearer_token = "token of " + name}, {.name = name}).id;
  }
};

TEST_F(SessionsTest, ACodeIsGoodOnce) {
  sessions_.AddCode("c", {.bearer_token = "t"});
  const auto first = sessions_.UseCode("c");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->bearer_token, "t");
  EXPECT_EQ(sessions_.UseCode("c").status().code(), Code::kUnauthorized);
  EXPECT_EQ(sessions_.UseCode("").status().code(), Code::kUnauthorized);
}

TEST_F(SessionsTest, ACodeIsGoodForAMinute) {
  sessions_.AddCode("early", {});
  time_.Advance(Sessions::kCodeLife);
  EXPECT_TRUE(sessions_.UseCode("early").ok());
  sessions_.AddCode("late", {});
  time_.Advance(Sessions::kCodeLife + std::chrono::seconds(1));
  EXPECT_FALSE(sessions_.UseCode("late").ok());
}

TEST_F(SessionsTest, TheOldestCodeGivesWay) {
  sessions_.AddCode("oldest", {});
  time_.Advance(std::chrono::seconds(1));
  for (size_t i = 0; i < Sessions::kCodesMax; ++i) sessions_.AddCode(StrCat("c", i), {});
  EXPECT_FALSE(sessions_.UseCode("oldest").ok());
  EXPECT_TRUE(sessions_.UseCode("c0").ok());
}

TEST_F(SessionsTest, AnIdleSessionEnds) {
  const std::string id = Begin("jane");
  time_.Advance(Sessions::kIdle - std::chrono::minutes(1));
  ASSERT_NE(sessions_.Use(id), nullptr);
  time_.Advance(Sessions::kIdle - std::chrono::minutes(1));
  ASSERT_NE(sessions_.Use(id), nullptr);
  time_.Advance(Sessions::kIdle + std::chrono::minutes(1));
  EXPECT_EQ(sessions_.Find(id), nullptr);
  EXPECT_EQ(sessions_.Use(id), nullptr);
  EXPECT_EQ(sessions_.size(), 0U);
}

TEST_F(SessionsTest, ASessionInUseEndsAfterAWeek) {
  const std::string id = Begin("jane");
  EXPECT_EQ(sessions_.Find(id)->expires, time_.Now() + Sessions::kLife);
  for (int hours = 0; hours < 24 * 7; hours += 6) {
    ASSERT_NE(sessions_.Use(id), nullptr) << hours;
    time_.Advance(std::chrono::hours(6));
  }
  time_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(sessions_.Use(id), nullptr);
}

TEST_F(SessionsTest, TheLongestUnusedSessionOfTheUserWithTheMostGivesWay) {
  const std::string jane = Begin("jane");
  const std::string used = Begin("other");
  const std::string unused = Begin("other");
  time_.Advance(std::chrono::seconds(1));
  sessions_.Use(used);
  for (size_t i = 3; i <= Sessions::kSessionsMax; ++i) Begin("other");
  EXPECT_EQ(sessions_.size(), Sessions::kSessionsMax);
  EXPECT_NE(sessions_.Find(jane), nullptr);
  EXPECT_NE(sessions_.Find(used), nullptr);
  EXPECT_EQ(sessions_.Find(unused), nullptr);
}

TEST_F(SessionsTest, CodesOfOneUserPushOutNobodyElses) {
  sessions_.AddCode("hers", {.bearer_token = "jane's"});
  time_.Advance(std::chrono::seconds(1));
  for (size_t i = 0; i <= Sessions::kCodesMax; ++i) {
    sessions_.AddCode(StrCat("c", i), {.bearer_token = "other's"});
  }
  EXPECT_TRUE(sessions_.UseCode("hers").ok());
}

TEST_F(SessionsTest, EachHasItsOwnSecrets) {
  const std::string jane = Begin("jane"), john = Begin("john");
  EXPECT_NE(jane, john);
  EXPECT_NE(sessions_.Find(jane)->csrf, sessions_.Find(john)->csrf);
  EXPECT_EQ(sessions_.Find(jane)->credentials.bearer_token, "token of jane");
  sessions_.End(jane);
  EXPECT_EQ(sessions_.Find(jane), nullptr);
  EXPECT_EQ(sessions_.UsedWithin(std::chrono::seconds(1)), std::vector<std::string>{john});
}

}  // namespace
}  // namespace swell::ui
