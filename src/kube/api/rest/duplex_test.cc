#include "kube/api/rest/duplex.h"

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "kube/api/rest/rest.h"

namespace swell::api {
namespace {

struct Reader {
  std::string text;
  std::vector<std::string> ends;
  DuplexStream::Callbacks Callbacks() {
    return {[this](const Chunk& bytes) { text += *bytes; },
            [this](const Status& why) { ends.push_back(why.ToString()); }};
  }
};

class DuplexTest : public ::testing::Test {
 protected:
  SimExecutor executor_;
  std::pair<DuplexPtr, DuplexPtr> pipe_ = MakePipe(executor_);
  Reader a_, b_;
};

TEST_F(DuplexTest, APipeCarriesBytesBothWaysAndEndsEachByItself) {
  pipe_.first->Start(a_.Callbacks());
  pipe_.second->Start(b_.Callbacks());
  EXPECT_TRUE(pipe_.first->Write(MakeChunk("to b")));
  EXPECT_EQ(b_.text, "");  // never from inside a call
  pipe_.first->CloseWrite();
  EXPECT_FALSE(pipe_.first->Write(MakeChunk("late")));
  executor_.RunPosted();
  EXPECT_EQ(b_.text, "to b");
  EXPECT_EQ(b_.ends, std::vector<std::string>{"OK"});
  EXPECT_TRUE(pipe_.second->Write(MakeChunk("to a")));
  executor_.RunPosted();
  EXPECT_EQ(a_.text, "to a");
  EXPECT_TRUE(a_.ends.empty());
}

TEST_F(DuplexTest, AClosedEndTakesNothingAndItsPeerSeesTheEnd) {
  pipe_.first->Start(a_.Callbacks());
  pipe_.second->Start(b_.Callbacks());
  pipe_.first->Write(MakeChunk("last words"));
  pipe_.first->Close();
  EXPECT_FALSE(pipe_.second->Write(MakeChunk("x")));
  executor_.RunPosted();
  EXPECT_EQ(b_.text, "last words");
  EXPECT_EQ(b_.ends.size(), 1u);
  EXPECT_TRUE(a_.ends.empty());
}

TEST_F(DuplexTest, DroppingAnEndClosesIt) {
  pipe_.second->Start(b_.Callbacks());
  pipe_.first.reset();
  executor_.RunPosted();
  EXPECT_EQ(b_.ends.size(), 1u);
}

TEST_F(DuplexTest, ASpliceHoldsTheSourceBackAndLosesNothing) {
  auto [c, d] = MakePipe(executor_);
  Splice(pipe_.second, c);
  d->Start(b_.Callbacks());
  d->SetReading(false);
  std::string sent;
  for (int i = 0; i < 40; ++i) {
    std::string piece(64 << 10, static_cast<char>('a' + i % 26));
    sent += piece;
    pipe_.first->Write(MakeChunk(piece));
    executor_.RunPosted();
  }
  // What the reader does not take stays with the writer, who can see it.
  EXPECT_GT(pipe_.first->queued_bytes(), size_t{1} << 20);
  EXPECT_LE(c->queued_bytes(), kDuplexHighWater + (64 << 10));
  pipe_.first->CloseWrite();
  d->SetReading(true);
  executor_.RunPosted();
  EXPECT_TRUE(b_.text == sent) << b_.text.size() << " of " << sent.size();
  EXPECT_EQ(b_.ends.size(), 1u);
  // A splice lives until both sides have ended.
  d->CloseWrite();
  executor_.RunPosted();
}

TEST_F(DuplexTest, EverybodyWhoWaitsHearsThatItDrained) {
  int heard = 0;
  pipe_.first->Write(MakeChunk(std::string(kDuplexHighWater, 'x')));
  pipe_.first->OnDrained([&] { ++heard; });
  pipe_.first->OnDrained([&] { ++heard; });
  executor_.RunPosted();
  EXPECT_EQ(heard, 0);
  pipe_.second->Start(b_.Callbacks());
  executor_.RunPosted();
  EXPECT_EQ(heard, 2);
}

}  // namespace
}  // namespace swell::api
