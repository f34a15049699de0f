#include "lab/model/rules.h"

#include <algorithm>
#include <array>
#include <string>

namespace swell::lab {
namespace {

struct Row {
  std::string_view application;
  ApplicationCosts costs;
};

constexpr int64_t kRubickResize = 260;

// SOSP'23, section 4 and its artefact.
constexpr std::array<Row, 7> kSia{{{"bert", {120, 1.2, 120}},
                                   {"cifar10", {50, 1.8, 30}},
                                   {"deepspeech2", {25, 1.2, 25}},
                                   {"gpt_pmp", {30, 1.0, 30}},
                                   {"imagenet", {250, 1.2, 250}},
                                   {"ncf", {15, 1.5, 30}},
                                   {"yolov3", {80, 1.2, 45}}}};

}  // namespace

ApplicationCosts CostsOf(Rules rules, std::string_view application) {
  if (rules == Rules::kPollux) return {};
  if (rules == Rules::kRubick) return {.resize_s = kRubickResize};
  const auto found = std::find_if(kSia.begin(), kSia.end(), [application](const Row& row) {
    return row.application == application;
  });
  return found == kSia.end() ? ApplicationCosts{} : found->costs;
}

int64_t LocalBatchMax(Rules rules,
                      std::string_view application,
                      std::string_view gpu_type,
                      int64_t measured) {
  if (rules == Rules::kPollux) {
    // Half of what was measured.
    return application == "yolov3" ? std::min<int64_t>(measured, 8) : measured;
  }
  if (rules == Rules::kRubick) return measured;
  const bool small_memory = application == "deepspeech2" && gpu_type == "rtx";
  return small_memory ? std::min<int64_t>(measured, 57) : measured;
}

}  // namespace swell::lab
