#include "kube/cri/grpc_client.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::cri {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// A hook before the stop may take as long as the pod's grace period, which has no bound.
TEST(GrpcTimeout, HasEightDigitsAtMost) {
  EXPECT_EQ(GrpcTimeout(milliseconds(1500)), "1500m");
  EXPECT_EQ(GrpcTimeout(milliseconds(99'999'999)), "99999999m");
  EXPECT_EQ(GrpcTimeout(milliseconds(100'000'000)), "100000S");
  EXPECT_EQ(GrpcTimeout(hours(100'000)), "99999999S");
}

TEST(GrpcClient, ASocketWithoutAProgramIsNamed) {
  TempDir dir;
  const std::string socket = dir.path() + "/engine.sock";
  auto client = GrpcClient::Create(socket);
  ASSERT_TRUE(client.ok()) << client.status().message();
  const auto answer = (*client)->CallAndWait({.method = "runtime.v1.RuntimeService/Version"});
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(answer.status().message(), StrCat("no program answers at the socket ", socket));
}

}  // namespace
}  // namespace swell::cri
