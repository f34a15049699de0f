// What is said of a wrong request for GPUs, in the words of the one who wrote it.
#include "sched_inputs/gpu_request.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::sched_inputs {
namespace {

std::string MessageOf(std::string_view annotations) {
  const auto pod = json::Parse(StrCat(R"({"metadata":{"annotations":)", annotations, "}}"));
  EXPECT_TRUE(pod.ok()) << annotations;
  return ValidateGpuRequest(*pod).message();
}

TEST(GpuRequest, AWrongPartIsNamedByTheKeyThatWasWritten) {
  EXPECT_EQ(MessageOf(R"({"swell.dev/gpu-fraction":"0.5"})"), "");
  EXPECT_EQ(MessageOf(R"({"gpu-fraction":"0.5"})"), "");
  EXPECT_EQ(MessageOf(R"({"swell.dev/gpu-fraction":"1.5"})"),
            "metadata.annotations[swell.dev/gpu-fraction]: Invalid value: \"1.5\": must be a part "
            "of a GPU, at least 0.01 and at most 1");
  for (const char* written :
       {R"({"gpu-fraction":"1.5"})", R"({"gpu-fraction":"1.5","swell.dev/gpu-fraction":"1.5"})"}) {
    EXPECT_EQ(MessageOf(written),
              "metadata.annotations[gpu-fraction]: Invalid value: \"1.5\": must be a part of a "
              "GPU, at least 0.01 and at most 1");
  }
}

TEST(GpuRequest, NextToNothingOfAGpuIsRefused) {
  EXPECT_EQ(MessageOf(R"({"gpu-fraction":"0.01"})"), "");
  EXPECT_EQ(MessageOf(R"({"gpu-fraction":"0.000001"})"),
            "metadata.annotations[gpu-fraction]: Invalid value: \"0.000001\": must be a part of a "
            "GPU, at least 0.01 and at most 1");
}

TEST(GpuRequest, AmountsOfATemplateAreNeitherNegativeNorBeyondCounting) {
  auto wrong = [](std::string_view resource, std::string_view amount) {
    const auto pods = json::Parse(StrCat(R"({"spec":{"containers":[{"resources":{"requests":{")",
                                         resource, R"(":")", amount, R"("}}}]}})"));
    EXPECT_TRUE(pods.ok()) << amount;
    return CheckTemplateAsks(*pods, "template.").message();
  };
  EXPECT_EQ(wrong("memory", "5Gi"), "");
  EXPECT_EQ(wrong("cpu", "-1"),
            "template.spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must not "
            "be negative");
  EXPECT_EQ(wrong("memory", "9e99"),
            "template.spec.containers[0].resources.requests[memory]: Invalid value: \"9e99\": is "
            "too large: at most 1Ei");
}

TEST(GpuRequest, KaisOtherKeysAreCheckedToo) {
  EXPECT_NE(MessageOf(R"({"gpu-memory":"much"})").find("annotations[gpu-memory]"),
            std::string::npos);
  EXPECT_NE(MessageOf(R"({"gpu-fraction-num-devices":"2"})")
                .find("annotations[gpu-fraction-num-devices]"),
            std::string::npos);
}

}  // namespace
}  // namespace swell::sched_inputs
