#include "kube/client/work_queue.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/sim_executor.h"

namespace swell::client {
namespace {

TEST(WorkQueue, VainLooksInBetweenDoNotPutOffTheNextTry) {
  SimExecutor executor;
  int tries = 0;
  WorkQueue queue(executor, nullptr, "test", 1, [&](const std::string&, WorkQueue::Done done) {
    ++tries;
    done(Status(Code::kInternal, "not yet"));
  });
  queue.Add("a");
  executor.RunPosted();
  for (int i = 0; i < 20; ++i) {
    queue.Add("a");
    executor.RunPosted();
  }
  EXPECT_EQ(tries, 21);
  executor.Advance(std::chrono::milliseconds(10));
  EXPECT_EQ(tries, 22);
}

TEST(WorkQueue, FailuresInTheirTurnWaitTwiceAsLongEachTime) {
  SimExecutor executor;
  std::vector<int64_t> at_ms;
  SteadyTime start = executor.Steady();
  WorkQueue queue(executor, nullptr, "test", 1, [&](const std::string&, WorkQueue::Done done) {
    at_ms.push_back((executor.Steady().ns - start.ns) / 1'000'000);
    done(Status(Code::kInternal, "not yet"));
  });
  queue.Add("a");
  executor.Advance(std::chrono::milliseconds(200));
  EXPECT_EQ(at_ms, (std::vector<int64_t>{0, 10, 30, 70, 150}));
}

}  // namespace
}  // namespace swell::client
