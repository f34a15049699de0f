#include "kube/process/machine/gpu_nodes.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

using Paths = std::vector<std::string>;

class GpuNodesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"null", "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "mem"}) {
      Put(std::string("/dev/") + name, "");
    }
    Describe("0000:01:00.0", "GPU-aaaa", "0");
    Describe("0000:02:00.0", "GPU-bbbb", "1");
  }
  void Put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(MakeDirs(dir_.path() + path.substr(0, path.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileAtomically(dir_.path() + path, text).ok());
  }
  void Describe(const std::string& bus, const std::string& uuid, const std::string& minor) {
    Put("/proc/driver/nvidia/gpus/" + bus + "/information",
        "Model: \t\t NVIDIA H100\nGPU UUID: \t " + uuid + "\nDevice Minor: \t " + minor + "\n");
  }

  TempDir dir_;
};

TEST_F(GpuNodesTest, AContainerSeesItsOwnGpusAlone) {
  EXPECT_EQ(GpuNodes({}, dir_.path()), Paths{});
  EXPECT_EQ(GpuNodes({"GPU-bbbb"}, dir_.path()),
            (Paths{"/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidiactl"}));
  EXPECT_EQ(GpuNodes({"GPU-bbbb", "GPU-aaaa"}, dir_.path()),
            (Paths{"/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"}));
}

TEST_F(GpuNodesTest, PartsOfAGpuBringAllNodes) {
  EXPECT_EQ(GpuNodes({"MIG-cccc"}, dir_.path()),
            (Paths{"/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"}));
}

TEST_F(GpuNodesTest, VirtualGpusHaveNoNodes) {
  EXPECT_EQ(RealGpus({"0", "GPU-aaaa", "3", "MIG-x"}), (Paths{"GPU-aaaa", "MIG-x"}));
}

}  // namespace
}  // namespace swell::process
