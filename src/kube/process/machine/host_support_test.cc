// What is written to the control groups of a container.
#include "kube/process/machine/host_support.h"

#include <gtest/gtest.h>

namespace swell::process {
namespace {

std::string Written(const CgroupSupport& support, int64_t cpu_request_milli, const char* file) {
  ShimSpec spec;
  FillCgroups(support, "id", cpu_request_milli, 0, 0, spec);
  for (const CgroupDir& dir : spec.cgroups) {
    for (const auto& [name, value] : dir.values) {
      if (name == file) return value;
    }
  }
  return "";
}

TEST(Cgroups, AContainerThatRequestsNoCpuHasTheLeastWeight) {
  CgroupSupport old;
  old.version = 1;
  old.cpu_dir = "/cpu";
  EXPECT_EQ(Written(old, 0, "cpu.shares"), "2");
  EXPECT_EQ(Written(old, 1000, "cpu.shares"), "1024");
  CgroupSupport unified;
  unified.version = 2;
  unified.memory_dir = "/all";
  EXPECT_EQ(Written(unified, 0, "cpu.weight"), "1");
  EXPECT_EQ(Written(unified, 1000, "cpu.weight"), "39");
}

}  // namespace
}  // namespace swell::process
