#include "base/nearest_word.h"

#include <gtest/gtest.h>

namespace swell {
namespace {

TEST(NearestWord, IsWhatWasMeant) {
  EXPECT_EQ(NearestWord("gte", {"get", "delete", "top"}), "get");
  EXPECT_EQ(NearestWord("desc", {"get", "describe"}), "describe");
  EXPECT_EQ(NearestWord("xyzzy", {"get", "describe"}), "");
  EXPECT_EQ(NearestWord("cron", {"run", "top"}), "") << "two letters of four are another word";
}

TEST(NearestName, IsSpeltAlmostTheSame) {
  const std::vector<std::string> images{"python", "pytorch", "pytorch/pytorch", "etcd", "bash"};
  EXPECT_EQ(NearestName("pytroch/pytorch", images), "pytorch/pytorch");
  EXPECT_EQ(NearestName("pytroch/pytroch", images), "pytorch/pytorch");
  EXPECT_EQ(NearestName("pyhton", images), "python");
  EXPECT_EQ(NearestName("team/python", images), "python");
  EXPECT_EQ(NearestName("py", images), "") << "nobody shortens an image";
  EXPECT_EQ(NearestName("rust", images), "");
  EXPECT_EQ(NearestName("team/trainer", images), "");
}

TEST(NearestName, OrHasTheSameLastPart) {
  const std::vector<std::string> resources{"cpu", "memory", "nvidia.com/gpu"};
  for (const char* typed : {"nvidia.com/gpus", "nvidia/gpu", "gpu", "gpus", "nvidia.co/gpu"}) {
    EXPECT_EQ(NearestName(typed, resources), "nvidia.com/gpu") << typed;
  }
  EXPECT_EQ(NearestName("example.com/dongle", resources), "");
}

}  // namespace
}  // namespace swell
