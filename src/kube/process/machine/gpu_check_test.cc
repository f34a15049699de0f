// The health of GPUs, by a fake of NVIDIA's management library.
#include "kube/process/machine/gpu_check.h"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/process/machine/fake_nvml.h"

namespace swell::process {
namespace {

class GpuCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* function = ::dlsym(::dlopen(SWELL_FAKE_NVML, RTLD_NOW), "fake_nvml");
    ASSERT_NE(function, nullptr);
    nvml_ = reinterpret_cast<FakeNvml* (*)()>(function)();
    *nvml_ = {};
    std::strcpy(nvml_->gpus[0].uuid, "GPU-a");
    std::strcpy(nvml_->gpus[1].uuid, "GPU-b");
    for (FakeGpu& gpu : nvml_->gpus) gpu.links_up = 0xF;
    check_.Run();
  }
  // "True", or "XidError79 GPU 1: …".
  std::string Run() {
    const node::HealthReport report = check_.Run();
    if (report.verdict == node::Verdict::kGood) return "True";
    std::string text = report.reason;
    for (const node::GpuFault& gpu : report.gpus) {
      text += StrCat(" GPU ", gpu.index, ": ", gpu.message);
    }
    return text;
  }
  FakeNvml* nvml_ = nullptr;
  struct TestClock final : Clock {
    WallTime Now() const override { return {}; }
    SteadyTime Steady() const override { return now; }
    SteadyTime now;
  };
  TestClock clock_;
  GpuCheck check_{clock_, {"GPU-a", "GPU-b"}, SWELL_FAKE_NVML};
};

TEST_F(GpuCheckTest, GpusWithoutAFaultAreGood) {
  EXPECT_EQ(Run(), "True");
  // Slowed because it is idle, or by its own power limit: as they should be.
  nvml_->gpus[0].throttle = 0x1 | 0x4;
  EXPECT_EQ(Run(), "True");
}

TEST_F(GpuCheckTest, EachFaultNamesTheGpu) {
  struct Case {
    std::function<void(FakeGpu&)> set;
    std::string_view says;
  };
  const Case cases[] = {
      {[](FakeGpu& g) { g.handle_code = 15; }, "GpuLost GPU 1: the driver lost it: NVML error 15"},
      {[](FakeGpu& g) { g.ecc_errors = 3; },
       "EccErrors GPU 1: 3 uncorrectable memory errors since the driver was loaded"},
      {[](FakeGpu& g) { g.remap_failed = 1; },
       "RowRemapFailed GPU 1: a memory row could not be remapped"},
      {[](FakeGpu& g) { g.remap_pending = 1; },
       "RowRemapPending GPU 1: a memory row waits for a reset of the GPU to be remapped"},
      {[](FakeGpu& g) { g.throttle = 0x40; },
       "ThermalSlowdown GPU 1: its clocks are slowed by heat"},
      {[](FakeGpu& g) { g.throttle = 0x80; },
       "PowerBrake GPU 1: its clocks are slowed by the power supply"},
      {[](FakeGpu& g) { g.links_up = 0x3; }, "NvLinkDown GPU 1: 2 of its NVLinks went down"}};
  for (const Case& one : cases) {
    const FakeGpu good = nvml_->gpus[1];
    one.set(nvml_->gpus[1]);
    EXPECT_EQ(Run(), one.says);
    nvml_->gpus[1] = good;
    EXPECT_EQ(Run(), "True");
  }
}

TEST_F(GpuCheckTest, ASeriousXidCountsForAWhileAndOthersDoNot) {
  nvml_->gpus[0].xid = 13;  // an error of the program
  EXPECT_EQ(Run(), "True");
  nvml_->gpus[0].xid = 79;
  EXPECT_EQ(Run(), "XidError79 GPU 0: the driver reported XID 79, it has fallen off the bus");
  EXPECT_EQ(Run(), "XidError79 GPU 0: the driver reported XID 79, it has fallen off the bus");
  EXPECT_TRUE(check_.Run().certain);
  clock_.now = clock_.now + GpuCheck::kXidTime;
  EXPECT_EQ(Run(), "True") << "no other check finds fault with it";
}

TEST_F(GpuCheckTest, AGpuWithOneSeriousXidAfterAnotherIsBadUntilItIsReset) {
  for (int i = 0; i < 3; ++i) {
    nvml_->gpus[0].xid = 109;
    EXPECT_NE(Run(), "True");
    clock_.now = clock_.now + std::chrono::hours(1);
  }
  clock_.now = clock_.now + std::chrono::hours(100);
  EXPECT_EQ(Run(),
            "XidError109 GPU 0: the driver reported XID 109, context switch timeout; 3 serious "
            "errors within a day: it needs a reset, or an agent that starts again");
  nvml_->gpus[0].handle_code = 16;
  EXPECT_NE(Run(), "True");
  nvml_->gpus[0].handle_code = 0;
  EXPECT_EQ(Run(), "True");
}

TEST_F(GpuCheckTest, XidsThatAreDaysApartDoNotAddUp) {
  for (int i = 0; i < 5; ++i) {
    nvml_->gpus[0].xid = 109;
    EXPECT_NE(Run(), "True");
    clock_.now = clock_.now + std::chrono::hours(20);
    EXPECT_EQ(Run(), "True");
  }
}

TEST_F(GpuCheckTest, ADriverThatDoesNotAnswerMakesAllGpusBad) {
  nvml_->init_code = 9;
  GpuCheck other(clock_, {"GPU-a", "GPU-b"}, SWELL_FAKE_NVML);
  const node::HealthReport report = other.Run();
  EXPECT_EQ(report.reason, "DriverFailed");
  ASSERT_EQ(report.gpus.size(), 2U);
  EXPECT_EQ(report.gpus[1].message, "the NVIDIA driver does not answer: NVML error 9");
  nvml_->init_code = 0;
  EXPECT_EQ(other.Run().verdict, node::Verdict::kGood);
}

TEST_F(GpuCheckTest, AGpuThatTheDriverDoesNotListIsLost) {
  GpuCheck other(clock_, {"GPU-a", "GPU-gone"}, SWELL_FAKE_NVML);
  const node::HealthReport report = other.Run();
  ASSERT_EQ(report.gpus.size(), 1U);
  EXPECT_EQ(report.gpus[0].index, 1);
  EXPECT_EQ(report.reason, "GpuLost");
}

}  // namespace
}  // namespace swell::process
