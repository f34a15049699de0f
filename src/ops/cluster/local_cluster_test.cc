// What `swell status` says of a cluster that this process runs.
#include <unistd.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"
#include "json/value.h"
#include "kube/net/reactor/reactor.h"
#include "kube/process/hosted_runtime.h"
#include "ops/commands.h"
#include "ops/data_dir.h"
#include "ops/nodes/machine_limits.h"
#include "ops/nodes/pod_runtime.h"

namespace swell::ops {
namespace {

class LocalClusterTest : public cli::CliTest {
 protected:
  void SetUp() override { ASSERT_TRUE(PrepareDataDir(dir_).ok()); }

  int RunStatus(std::vector<std::string> flags = {}) {
    std::vector<std::string> argv{"swell", "status", "--data-dir", dir_.path};
    argv.insert(argv.end(), flags.begin(), flags.end());
    out_.clear();
    return cli::RunCli(argv, env_, {StatusCommand()});
  }

  TempDir temp_;
  const DataDir dir_{temp_.File("cluster")};
};

TEST_F(LocalClusterTest, StatusTellsWhereThePagesAreWhileTheClusterRuns) {
  ASSERT_TRUE(WritePagesUrl(dir_, "http://127.0.0.1:24072/").ok());
  EXPECT_EQ(RunStatus(), 3);
  EXPECT_EQ(out_.find("24072"), std::string::npos) << out_;

  ASSERT_TRUE(LockDataDir(dir_).ok());
  EXPECT_EQ(RunStatus(), 0);
  EXPECT_NE(out_.find("\nPages       http://127.0.0.1:24072/\n"), std::string::npos) << out_;
  EXPECT_EQ(RunStatus({"-o", "json"}), 0);
  const auto answer = json::Parse(out_);
  ASSERT_TRUE(answer.ok()) << out_;
  EXPECT_EQ(json::GetString(*answer, {"pages"}), "http://127.0.0.1:24072/");
  EXPECT_EQ(json::GetInt(*answer, {"pid"}), ::getpid());
}

TEST_F(LocalClusterTest, StatusOfAClusterWithoutPagesHasNoSuchLine) {
  ASSERT_TRUE(WritePagesUrl(dir_, "").ok());
  ASSERT_TRUE(LockDataDir(dir_).ok());
  EXPECT_EQ(RunStatus(), 0);
  EXPECT_EQ(out_.find("Pages"), std::string::npos) << out_;
  EXPECT_EQ(RunStatus({"-o", "json"}), 0);
  EXPECT_EQ(out_.find("pages"), std::string::npos) << out_;
}

// An agent whose pods are simulated names a directory that a cluster may be running in.
TEST_F(LocalClusterTest, OnlyWhoHasLockedTheDirectoryForgetsTheMachinesLimits) {
  ASSERT_TRUE(process::WriteLimits(dir_.path, {"cgroups: not writable"}).ok());
  RealClock clock;
  net::Reactor core;
  ASSERT_TRUE(PodRuntime::Make("simulated", core, clock, {.data_dir = dir_.path}).ok());
  EXPECT_EQ(MachineLimits(dir_), std::vector<std::string>{"cgroups: not writable"});
  ForgetMachineLimits(dir_);
  EXPECT_TRUE(MachineLimits(dir_).empty());
}

}  // namespace
}  // namespace swell::ops
