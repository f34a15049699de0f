#include "kube/cri/grpc_client.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace swell::cri
