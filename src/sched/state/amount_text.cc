#include "sched/state/amount_text.h"

#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace swell::sched {
namespace {

bool IsPages(std::string_view resource) { return resource.starts_with("hugepages-"); }

}  // namespace

std::string Plural(int64_t count, std::string_view noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string AmountText(int resource, int64_t amount) {
  if (resource == kQueueCpu) return StrCat(amount, "m CPU");
  if (resource == kQueueMemory) return StrCat(amount >> 20, " MiB memory");
  if (amount % kPpm == 0) return Plural(amount / kPpm, "GPU");
  char text[32];
  std::snprintf(text, sizeof text, "%g GPUs", static_cast<double>(amount) / kPpm);
  return text;
}

std::string CoreText(int resource, int64_t amount) {
  if (resource == kGpu) return Plural(amount, "GPU");
  if (resource == kCpu) {
    return amount % 1000 == 0 ? Plural(amount / 1000, "CPU") : StrCat(amount, "m CPU");
  }
  const double gib = static_cast<double>(amount) / (1LL << 30);
  // As exact as what people compare it with: 23.5 GiB are not 24.
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", gib);
  const bool whole = gib >= 10 && std::abs(gib - std::round(gib)) < 0.05;
  return StrCat(whole ? NumberText(gib) : text,
                resource == kMemory ? " GiB of memory" : " GiB of storage");
}

std::string ExtendedText(std::string_view resource, int64_t amount) {
  if (!IsPages(resource) || amount == 0) return StrCat(amount);
  const bool large = amount >= 1LL << 30;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g",
                static_cast<double>(amount) / (large ? 1 << 30 : 1 << 20));
  return StrCat(text, large ? " GiB" : " MiB");
}

std::string ExtendedOfText(std::string_view resource, int64_t amount) {
  return StrCat(ExtendedText(resource, amount), IsPages(resource) ? " of " : " ", resource);
}

std::string NumberText(double value) {
  if (value >= 10 && value < 1e15) return std::to_string(std::llrint(value));
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

std::string RequestText(const State& state, PodId pod, NodeId node) {
  const Shape& shape = state.ShapeOf(pod);
  if (shape.core[kGpu] > 0) return Plural(shape.core[kGpu], "GPU");
  if (shape.Shares()) {
    char text[64];
    std::snprintf(text, sizeof text, "%g of a GPU",
                  static_cast<double>(state.DevicePpm(shape, state.nodes[node])) / kPpm);
    return text;
  }
  if (!shape.extended.empty()) {
    const auto& [resource, amount] = shape.extended[0];
    return ExtendedOfText(state.resource_names[resource], amount);
  }
  return StrCat(shape.core[kCpu], "m CPU");
}

int MainResource(const QueueAmounts& need) {
  for (int r = 0; r < kQueueResources; ++r) {
    if (need[r] > 0) return r;
  }
  return kQueueCpu;
}

}  // namespace swell::sched
