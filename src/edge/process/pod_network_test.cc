#include "edge/process/pod_network.h"

#include <gtest/gtest.h>

namespace swell::edge {
namespace {

TEST(OnlyNameServers, KeepsTheRestOfTheFile) {
  const char kFile[] =
      "# ours\nsearch example.com\nnameserver 10.0.0.53\nnameserver\t10.0.0.1 \noptions ndots:2\n";
  EXPECT_EQ(OnlyNameServers(kFile, {"10.0.0.1"}),
            "# ours\nsearch example.com\nnameserver\t10.0.0.1 \noptions ndots:2\n");
  EXPECT_EQ(OnlyNameServers(kFile, {}), "# ours\nsearch example.com\noptions ndots:2\n");
  EXPECT_EQ(OnlyNameServers("", {}), "");
}

}  // namespace
}  // namespace swell::edge
