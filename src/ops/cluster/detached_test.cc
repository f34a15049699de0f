#include "ops/cluster/detached.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"

namespace swell::ops {
namespace {

class DetachedTest : public ::testing::Test {
 protected:
  // Children of the test end with it.
  void TearDown() override {
    while (::wait(nullptr) > 0) {
    }
  }
  std::string Log() const { return ReadFile(log_, 1 << 16).value(); }

  TempDir folder_;
  const std::string log_ = folder_.File("swell.log");
};

TEST_F(DetachedTest, ReturnsWhenTheChildIsReadyAndLeavesItRunning) {
  PipeEnds pipe = MakePipe().value();
  const auto outcome = RunDetached(log_, [&](const StartReport& report) {
    pipe.write.Reset();
    report(std::string("https://127.0.0.1:6443"));
    report(Status(Code::kInternal, "only the first report counts"));
    char byte;
    return ::read(pipe.read.get(), &byte, 1) == 0 ? 0 : 1;  // until the test lets it end
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(*outcome, "https://127.0.0.1:6443");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), 0) << "it runs";
  pipe.write.Reset();
  int status = -1;
  ASSERT_GT(::wait(&status), 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(DetachedTest, SaysWhyTheChildFailed) {
  const auto outcome = RunDetached(log_, [](const StartReport& report) {
    report(Status(Code::kConflict, "port 6443 is taken"));
    return 1;
  });
  EXPECT_EQ(outcome.status().message(), "port 6443 is taken");
}

TEST_F(DetachedTest, AChildThatEndsWithoutAReportLeavesItsLog) {
  const auto outcome = RunDetached(log_, [](const StartReport&) {
    std::fputs("it fell over\n", stderr);
    return 3;
  });
  EXPECT_EQ(outcome.status().message(),
            StrCat("the cluster ended before it was ready; see ", log_));
  int status = -1;
  ASSERT_GT(::wait(&status), 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(Log(), "it fell over\n");
}

TEST_F(DetachedTest, TheChildHasNoTerminal) {
  const auto outcome = RunDetached(log_, [](const StartReport& report) {
    char byte;
    const bool no_input = ::read(STDIN_FILENO, &byte, 1) == 0;
    report(StrCat(::getsid(0) == ::getpid() ? "own session" : "shared", ", ",
                  no_input ? "no input" : "input"));
    return 0;
  });
  EXPECT_EQ(*outcome, "own session, no input");
}

}  // namespace
}  // namespace swell::ops
