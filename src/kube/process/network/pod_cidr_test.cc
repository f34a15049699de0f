#include "kube/process/network/pod_cidr.h"

#include <gtest/gtest.h>

namespace swell::process {
namespace {

TEST(PodCidr, IsANetworkThatHoldsPods) {
  const auto cidr = ParsePodCidr("10.88.3.4/16");
  ASSERT_TRUE(cidr.ok()) << cidr.status().message();
  EXPECT_EQ(cidr->base, 0x0A580000U) << "without the bits beyond the prefix";
  EXPECT_EQ(cidr->bits, 16);
  for (const char* wrong :
       {"", "10.88.0.0", "300.0.0.0/8", "10.0.0.0/7", "10.0.0.0/29", "fd00::/16", "10.0.0.0/x"}) {
    EXPECT_EQ(ParsePodCidr(wrong).status().code(), Code::kInvalid) << wrong;
  }
}

}  // namespace
}  // namespace swell::process
