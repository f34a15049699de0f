#include "goodput/type_move.h"

#include <cmath>

#include <gtest/gtest.h>

namespace swell::goodput {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// A job that makes 100 and has run for long, and whose restart takes 10 s.
MoveTerms Terms() { return {.goodput = 100, .lasts = minutes(10), .restart = seconds(10)}; }

TEST(TypeMove, GoesWhereMostIsGained) {
  const MoveChoice choice = ChooseMove(
      {{"A100", 4, 161, false}, {"H100", 2, 190, false}, {"K80", 8, 60, false}}, Terms());
  EXPECT_EQ(choice.offer, 1);
  EXPECT_TRUE(choice.pays);
  EXPECT_NEAR(choice.gain, 0.9, 1e-9);
  EXPECT_EQ(choice.why_not, "");
}

TEST(TypeMove, StaysWhereNothingIsFaster) {
  const MoveChoice choice = ChooseMove({{"K80", 8, 60, false}, {"P4", 4, 100, false}}, Terms());
  EXPECT_EQ(choice.offer, -1);
  EXPECT_EQ(choice.why_not, "");
  EXPECT_EQ(ChooseMove({}, Terms()).offer, -1);
}

TEST(TypeMove, StaysForALittleMore) {
  EXPECT_EQ(ChooseMove({{"A100", 4, 109, false}}, Terms()).why_not, "a move pays from +10 % on");
  EXPECT_TRUE(ChooseMove({{"A100", 4, 111, false}}, Terms()).pays);
}

TEST(TypeMove, TrustsTheRatioOfOthersLess) {
  EXPECT_EQ(ChooseMove({{"A100", 4, 120, true}}, Terms()).why_not,
            "a move pays from +25 % on, where the job has never run");
  EXPECT_TRUE(ChooseMove({{"A100", 4, 130, true}}, Terms()).pays);
}

TEST(TypeMove, StaysWithoutRoom) {
  const MoveChoice choice = ChooseMove({{"H100", 0, 300, false}, {"A100", 4, 161, false}}, Terms());
  EXPECT_EQ(choice.offer, 1) << "another type has room";
  EXPECT_TRUE(choice.pays);
  EXPECT_EQ(ChooseMove({{"H100", 0, 300, false}}, Terms()).why_not, "there is no room for it now");
}

TEST(TypeMove, MustGainSeveralTimesItsCost) {
  MoveTerms terms = Terms();
  terms.restart = seconds(122);  // 0.61 × 600 s is 366 s
  EXPECT_TRUE(ChooseMove({{"A100", 4, 161.1, false}}, terms).pays);
  terms.restart = seconds(123);
  EXPECT_EQ(ChooseMove({{"A100", 4, 161.1, false}}, terms).why_not,
            "it must gain 3 times what the restart of 123 s costs");
  // A job that is nearly done gains nothing any more.
  terms = Terms();
  terms.lasts = seconds(20);
  EXPECT_FALSE(ChooseMove({{"A100", 4, 161, false}}, terms).pays);
}

TEST(TypeMove, DoesNotGoToAndFro) {
  MoveTerms terms = Terms();
  terms.moves = 1;
  terms.since_move = minutes(9);
  EXPECT_EQ(ChooseMove({{"A100", 4, 161, false}}, terms).why_not,
            "it stays for 10 min after a move");
  terms.since_move = minutes(10);
  EXPECT_TRUE(ChooseMove({{"A100", 4, 161, false}}, terms).pays);
  terms.moves = 3;
  EXPECT_EQ(ChooseMove({{"A100", 4, 161, false}}, terms).why_not,
            "it stays for 40 min after a move");
  EXPECT_EQ(StaysFor(1000), StaysFor(7)) << "it grows to ten hours and a half";
}

TEST(TypeMove, CopesWithNonsense) {
  MoveTerms terms = Terms();
  terms.goodput = 0;
  EXPECT_EQ(ChooseMove({{"A100", 4, 161, false}}, terms).offer, -1);
  EXPECT_EQ(ChooseMove({{"A100", 4, std::nan(""), false}}, Terms()).offer, -1);
}

}  // namespace
}  // namespace swell::goodput
