#include "kube/process/state_writer.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_executor.h"

namespace swell::process {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Status kFull(Code::kNoSpace, "3 MiB are missing");

class StateWriterTest : public ::testing::Test {
 protected:
  void Write(const std::string& uid) {
    writer_.Write(
        uid, {"/report/" + uid, "persist.json", "/memory"}, "/checkpoints/" + uid,
        [this](const Status& why) { delays_.push_back(why.message()); },
        [this, uid](const Status& status) { results_.emplace_back(uid, status); });
    sim_.RunPosted();
  }
  size_t Results() const { return results_.size(); }

  SimExecutor sim_;
  Status disk_;  // what it says to a write
  std::vector<std::string> writes_, drops_, delays_;
  std::vector<std::pair<std::string, Status>> results_;
  StateWriter writer_{
      {.executor = sim_,
       .clock = sim_,
       .background = [](const std::function<void()>& work) { work(); },
       .write =
           [this](const LeftState&, const std::string& folder, WriteProgress& progress) {
             progress.bytes = 100;
             progress.written = 40;
             writes_.push_back(folder);
             return disk_;
           },
       .drop = [this](const LeftState& left) { drops_.push_back(left.report_dir); }}};
};

TEST_F(StateWriterTest, AFullDiskIsTriedAgainUntilThereIsRoom) {
  disk_ = kFull;
  Write("a");
  sim_.Advance(minutes(3));
  EXPECT_EQ(Results(), 0u);
  EXPECT_EQ(delays_, std::vector<std::string>{"3 MiB are missing"}) << "told once";
  EXPECT_GT(writes_.size(), 8u);
  EXPECT_LT(writes_.size(), 20u) << "each try may fill the disk of others";
  disk_ = Status::Ok();
  sim_.Advance(seconds(16));
  ASSERT_EQ(Results(), 1u);
  EXPECT_TRUE(results_[0].second.ok());
  EXPECT_TRUE(drops_.empty());
}

TEST_F(StateWriterTest, AStateThatNeverFitsIsDroppedInTheEnd) {
  disk_ = kFull;
  Write("a");
  sim_.Advance(minutes(5) - seconds(1));
  EXPECT_EQ(Results(), 0u);
  sim_.Advance(seconds(1));
  ASSERT_EQ(Results(), 1u);
  EXPECT_EQ(results_[0].second.ToString(), kFull.ToString());
  EXPECT_EQ(drops_, std::vector<std::string>{"/report/a"});
  const size_t tries = writes_.size();
  sim_.Advance(minutes(10));
  EXPECT_EQ(writes_.size(), tries);
}

TEST_F(StateWriterTest, WhatTimeDoesNotMendIsTriedOnce) {
  disk_ = Status(Code::kInvalid, "the copy in memory: it is not whole");
  Write("a");
  ASSERT_EQ(Results(), 1u);
  EXPECT_EQ(results_[0].second.ToString(), disk_.ToString());
  EXPECT_TRUE(delays_.empty());
  EXPECT_EQ(writes_.size(), 1u);
}

TEST_F(StateWriterTest, OthersHaveTheirTurnMeanwhile) {
  disk_ = kFull;
  Write("a");
  disk_ = Status::Ok();
  Write("b");
  ASSERT_EQ(Results(), 1u);
  EXPECT_EQ(results_[0].first, "b");
}

TEST_F(StateWriterTest, SaysHowFarItIs) {
  EXPECT_EQ(writer_.Saving(), SavingStates());
  disk_ = kFull;
  Write("a");
  sim_.Advance(seconds(10));
  Write("b");
  sim_.Advance(seconds(10));
  EXPECT_EQ(writer_.Saving(), (SavingStates{.states = 2,
                                            .bytes = 200,
                                            .written = 80,
                                            .delay = "3 MiB are missing",
                                            .seconds_left = 290}));
}

TEST_F(StateWriterTest, WhoComesLaterHearsTheSame) {
  EXPECT_FALSE(writer_.Join("a", {}, {}));
  disk_ = kFull;
  Write("a");
  std::string delay, done;
  EXPECT_TRUE(writer_.Join(
      "a", [&](const Status& why) { delay = why.ToString(); },
      [&](const Status& status) { done = status.ToString(); }));
  EXPECT_EQ(delay, kFull.ToString());
  EXPECT_EQ(done, "");
  sim_.Advance(minutes(6));
  EXPECT_EQ(done, kFull.ToString());
  EXPECT_EQ(Results(), 1u);
}

TEST_F(StateWriterTest, AClusterThatEndsAtOnceTriesNothingAgain) {
  disk_ = kFull;
  Write("a");
  writer_.WaitNoMore();
  EXPECT_EQ(Results(), 1u);
  Write("b");
  EXPECT_EQ(Results(), 2u);
  EXPECT_EQ(drops_, (std::vector<std::string>{"/report/a", "/report/b"}));
  sim_.Advance(minutes(1));
  EXPECT_EQ(writes_.size(), 2u);
}

}  // namespace
}  // namespace swell::process
