// Openings: tickets that are good once and soon, and what belongs to one browser and one session.
#include "ui/programs/openings.h"

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"

namespace swell::ui {
namespace {

class OpeningsTest : public ::testing::Test {
 protected:
  Opening Open(const std::string& session, const std::string& service = "board") {
    const auto opening = openings_.Redeem(openings_.Issue(session, "vision", service));
    EXPECT_TRUE(opening.ok()) << opening.status().ToString();
    return opening.ok() ? **opening : Opening{};
  }

  SimExecutor time_;
  int made_ = 0;
  Openings openings_{time_, [this] { return StrCat("secret-", ++made_); }};
};

TEST_F(OpeningsTest, ATicketIsGoodOnce) {
  const std::string ticket = openings_.Issue("s", "vision", "board");
  const auto first = openings_.Redeem(ticket);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->ns, "vision");
  EXPECT_EQ((*first)->service, "board");
  EXPECT_EQ((*first)->session, "s");
  EXPECT_EQ(openings_.Redeem(ticket).status().code(), Code::kUnauthorized);
  EXPECT_EQ(openings_.Redeem("").status().code(), Code::kUnauthorized);
}

TEST_F(OpeningsTest, ATicketIsGoodForSeconds) {
  const std::string early = openings_.Issue("s", "vision", "board");
  const std::string late = openings_.Issue("s", "vision", "board");
  time_.Advance(Openings::kTicketLife);
  EXPECT_TRUE(openings_.Redeem(early).ok());
  time_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(openings_.Redeem(late).status().code(), Code::kUnauthorized);
}

TEST_F(OpeningsTest, APathIsOfOneCookie) {
  const Opening jane = Open("jane");
  const Opening john = Open("john");
  ASSERT_NE(openings_.Find(jane.path, jane.cookie), nullptr);
  EXPECT_EQ(openings_.Find(jane.path, john.cookie), nullptr);
  EXPECT_EQ(openings_.Find(john.path, jane.cookie), nullptr);
  EXPECT_EQ(openings_.Find(jane.path, ""), nullptr);
  EXPECT_EQ(openings_.Find(jane.cookie, jane.path), nullptr);
}

TEST_F(OpeningsTest, WhatASessionHasOpenEndsWithIt) {
  const Opening jane = Open("jane");
  const Opening john = Open("john");
  const std::string ticket = openings_.Issue("jane", "vision", "board");
  EXPECT_EQ(openings_.Sessions(), (std::set<std::string>{"jane", "john"}));
  openings_.EndSession("jane");
  EXPECT_EQ(openings_.Find(jane.path, jane.cookie), nullptr);
  EXPECT_FALSE(openings_.Redeem(ticket).ok());
  EXPECT_NE(openings_.Find(john.path, john.cookie), nullptr);
  EXPECT_EQ(openings_.Sessions(), (std::set<std::string>{"john"}));
}

TEST_F(OpeningsTest, TheLeastUsedOfASessionGivesWay) {
  const Opening other = Open("john");
  const Opening first = Open("jane");
  time_.Advance(std::chrono::seconds(1));
  const Opening second = Open("jane");
  for (size_t i = 2; i < Openings::kPerSession; ++i) Open("jane");
  time_.Advance(std::chrono::seconds(1));
  ASSERT_NE(openings_.Find(first.path, first.cookie), nullptr);
  Open("jane");
  EXPECT_NE(openings_.Find(first.path, first.cookie), nullptr);
  EXPECT_NE(openings_.Find(other.path, other.cookie), nullptr);
  EXPECT_EQ(openings_.size(), Openings::kPerSession + 1);
}

TEST_F(OpeningsTest, TheOldestTicketGivesWay) {
  const std::string oldest = openings_.Issue("s", "vision", "board");
  time_.Advance(std::chrono::seconds(1));
  std::string last;
  for (size_t i = 0; i < Openings::kTicketsMax; ++i) last = openings_.Issue("s", "vision", "board");
  EXPECT_FALSE(openings_.Redeem(oldest).ok());
  EXPECT_TRUE(openings_.Redeem(last).ok());
}

}  // namespace
}  // namespace swell::ui
