// The nvidia-smi of virtual GPUs: its figures, its script by itself, and in a real container.
#include "kube/process/machine/virtual_smi.h"

#include <sys/wait.h>

#include <cstdio>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/process_testing.h"

namespace swell::process {
namespace {

using std::chrono::milliseconds;

ContainerSpec TwoGpus() {
  ContainerSpec spec;
  spec.gpus = {"1", "3"};
  spec.cpu_limit_milli = 2000;
  spec.env = {{"SWELL_GPU_NAME", "H100 (virtual)"}, {"SWELL_GPU_TOTAL_MIB", "8192"}};
  return spec;
}

class VirtualSmiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/swell-smi-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = StrCat(name, "/gpu");
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_.substr(0, dir_.rfind('/'))).ok()); }

  // Output and, in code_, the exit code.
  std::string Smi(const std::string& args, const std::string& visible = "") {
    const std::string line = StrCat("SWELL_VISIBLE_GPUS=", visible, " SWELL_GPU_DEVICES=", dir_,
                                    "/devices ", dir_, "/nvidia-smi ", args, " 2>&1");
    FILE* pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) return "cannot run it";
    std::string out;
    char part[512];
    for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) out.append(part, n);
    code_ = WEXITSTATUS(::pclose(pipe));
    return out;
  }
  void Use(Duration cpu, Duration window, int64_t bytes) {
    node::ContainerUsage usage;
    usage.window = window;
    usage.window_cpu = cpu;
    usage.memory_bytes = bytes;
    ASSERT_TRUE(UpdateVirtualGpus(dir_, usage).ok());
  }

  std::string dir_;
  int code_ = 0;
};

TEST_F(VirtualSmiTest, QueriesSayWhatTheContainerUses) {
  ASSERT_TRUE(MakeVirtualGpus(dir_, "node-0", TwoGpus()).ok());
  EXPECT_EQ(Smi("--query-gpu=index,utilization.gpu --format=csv,noheader"), "0, 0 %\n1, 0 %\n");
  Use(milliseconds(10'000), milliseconds(10'000), 600 << 20);  // one of its two processors
  EXPECT_EQ(Smi("--query-gpu=index,name,utilization.gpu,memory.used,memory.total --format=csv"),
            "index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
            "0, H100 (virtual), 50 %, 300 MiB, 8192 MiB\n"
            "1, H100 (virtual), 50 %, 300 MiB, 8192 MiB\n");
  EXPECT_EQ(Smi("-i 1 --query-gpu=uuid,memory.free,power.draw --format=csv,noheader,nounits"),
            "GPU-virtual-node-0-3, 7892, [N/A]\n");
  Use(milliseconds(90'000), milliseconds(10'000), int64_t{64} << 30);
  EXPECT_EQ(Smi("--query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits -i 0"),
            "100, 8192\n");
}

TEST_F(VirtualSmiTest, TablesAreMarkedAsVirtualAndStraight) {
  ASSERT_TRUE(MakeVirtualGpus(dir_, "node-0", TwoGpus()).ok());
  EXPECT_EQ(Smi("-L"),
            "GPU 0: H100 (virtual) (UUID: GPU-virtual-node-0-1)\n"
            "GPU 1: H100 (virtual) (UUID: GPU-virtual-node-0-3)\n");
  const std::string table = Smi("");
  EXPECT_NE(table.find("VIRTUAL"), std::string::npos);
  for (std::string_view line : Split(table, '\n')) {
    if (line.starts_with('|')) {
      EXPECT_EQ(line.size(), 79u) << line;
    }
  }
  EXPECT_NE(Smi("-q").find("Used                              : 0 MiB"), std::string::npos);
}

TEST_F(VirtualSmiTest, ATaskSeesTheGpusThatItHas) {
  ASSERT_TRUE(MakeVirtualGpus(dir_, "node-0", TwoGpus()).ok());
  EXPECT_EQ(Smi("-L", "1"), "GPU 1: H100 (virtual) (UUID: GPU-virtual-node-0-3)\n");
  EXPECT_EQ(Smi("--query-gpu=index,count --format=csv,noheader", "1"), "1, 1\n");
  EXPECT_EQ(Smi("--query-gpu=index,count --format=csv,noheader", "0,1"), "0, 2\n1, 2\n");
  EXPECT_EQ(Smi("-L -i 0", "1"), "No devices were found with the id \"0\"\n");
}

TEST_F(VirtualSmiTest, RefusesWhatItDoesNotKnow) {
  ASSERT_TRUE(MakeVirtualGpus(dir_, "node-0", TwoGpus()).ok());
  EXPECT_EQ(Smi("--query-gpu=index,foo --format=csv"),
            "Field \"foo\" is not a valid field to query.\n");
  EXPECT_EQ(code_, 2);
  EXPECT_NE(Smi("--query-gpu=index").find("--format=csv is missing"), std::string::npos);
  EXPECT_EQ(code_, 2);
  EXPECT_NE(Smi("--query-gpu=index --format=xml").find("\"xml\" is not one of"), std::string::npos);
  EXPECT_NE(Smi("--bogus").find("does not know: --bogus"), std::string::npos);
  EXPECT_EQ(code_, 2);
  EXPECT_EQ(Smi("-L -i 7"), "No devices were found with the id \"7\"\n");
  EXPECT_EQ(code_, 6);
  EXPECT_NE(Smi("--loop=soon").find("\"soon\" is not a number of seconds"), std::string::npos);
}

TEST_F(VirtualSmiTest, ANameFromTheManifestCannotBreakTheFile) {
  ContainerSpec spec = TwoGpus();
  spec.env.emplace_back("SWELL_GPU_NAME", "a|b\nc,$(id)");
  spec.env.emplace_back("SWELL_GPU_TOTAL_MIB", "much");
  ASSERT_TRUE(MakeVirtualGpus(dir_, "node-0", spec).ok());
  Use(milliseconds(1), milliseconds(0), 600 << 20);
  EXPECT_EQ(Smi("--query-gpu=name,memory.used,utilization.gpu --format=csv,noheader -i 0"),
            "abc$(id), 0 MiB, 0 %\n");
}

TEST_F(VirtualSmiTest, RealGpusAreNvidias) {
  ContainerSpec spec;
  EXPECT_FALSE(HasVirtualGpus(spec));
  spec.gpus = {"GPU-8f3a"};
  EXPECT_FALSE(HasVirtualGpus(spec));
  EXPECT_TRUE(HasVirtualGpus(TwoGpus()));
  Use(milliseconds(1), milliseconds(1), 1);  // nothing was made: nothing to write
  EXPECT_FALSE(FileExists(dir_));
}

TEST_F(ProcessRuntimeTest, AContainerAsksNvidiaSmiAboutItsVirtualGpus) {
  if (!isolated()) GTEST_SKIP() << "needs mount namespaces";
  Create(Sandbox("pod-a"));
  ContainerSpec spec =
      Shell("pod-a",
            "nvidia-smi -L; nvidia-smi --query-compute-apps=process_name --format=csv,noheader;"
            // Ends when the node has seen that it computes.
            "until [ \"$(nvidia-smi -i 0 --query-gpu=utilization.gpu "
            "--format=csv,noheader,nounits)\" -gt 0 ]; do :; done; echo busy");
  spec.gpus = {"2"};
  spec.cpu_request_milli = 100;
  spec.env = {{"SWELL_GPU_NAME", "Swell virtual GPU"}, {"SWELL_GPU_TOTAL_MIB", "1024"}};
  EXPECT_EQ(Run(spec).code, 0);
  EXPECT_EQ(Log(spec.ref), "GPU 0: Swell virtual GPU (UUID: GPU-virtual-node-0-2)\nsh\nbusy\n");
}

}  // namespace
}  // namespace swell::process
