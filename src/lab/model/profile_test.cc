#include "lab/model/profile.h"

#include <gtest/gtest.h>

#include "lab/lab_test_util.h"

namespace swell::lab {
namespace {

TEST(StepSurface, InterpolatesBetweenNodesGpusAndBatches) {
  const StepSurface surface("toy", {{{1, 2, 8}, {1, 0}},
                                    {{1, 2, 16}, {2, 0}},
                                    {{1, 4, 8}, {2, 0}},
                                    {{1, 4, 16}, {3, 0}},
                                    {{3, 12, 8}, {4, 1}}});
  EXPECT_FALSE(surface.HasPublishedCellsForTest());
  EXPECT_EQ(surface.At(1, 2, 12).step_s, 1.5);
  EXPECT_EQ(surface.At(1, 3, 8).step_s, 1.5);
  EXPECT_EQ(surface.At(2, 8, 8).step_s, 3) << "as dense, half way";
  EXPECT_EQ(surface.At(2, 8, 8).sync_s, 0.5);
  EXPECT_EQ(surface.At(9, 36, 99).step_s, 4) << "the nearest measured";
}

TEST(Profile, PlacementsAreRings) {
  const ProfileLibrary library = ToyProfiles();
  const Profile* toy = library.Find("toy");
  ASSERT_NE(toy, nullptr);
  EXPECT_EQ(toy->Step({2}, 6).step_s, 2.0) << "half way between batches";
  EXPECT_EQ(toy->Step({1, 1}, 4).step_s, 1.75);
  EXPECT_EQ(toy->epochs(), 2);
  EXPECT_EQ(toy->Progress(2), 200);
  EXPECT_EQ(toy->limits().initial, 8);
  EXPECT_EQ(toy->limits().local_max, 8);
}

TEST(Profile, ErrorsNameTheFile) {
  const TempDir dir;
  EXPECT_EQ(ProfileLibrary::Load(dir.path(), {"aws"}).status().message(),
            dir.path() + ": has no APPLICATION/placements-aws.csv");
  WriteToyProfile(dir.path());
  const std::string file = dir.path() + "/toy/placements-aws.csv";
  ASSERT_TRUE(WriteFileAtomically(file, "placement,local_bsz,step_time,sync_time\n1,4,1,1\n").ok());
  EXPECT_EQ(ProfileLibrary::Load(dir.path(), {"aws"}).status().message(),
            file + ":2: step_time \"1\": expected a positive time, longer than sync_time");
}

}  // namespace
}  // namespace swell::lab
