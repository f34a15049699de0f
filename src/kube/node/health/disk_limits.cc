#include "kube/node/health/disk_limits.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/quantity.h"

namespace swell::node {
namespace {

constexpr std::string_view kEphemeral = "ephemeral-storage";

// A limit above nothing, and its text.
struct Limit {
  int64_t bytes = 0;
  std::string text;
};

std::optional<Limit> ReadLimit(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  const auto quantity = api::Quantity::FromJson(*value);
  if (!quantity.ok() || quantity->Value() <= 0) return std::nullopt;
  return Limit{quantity->Value(), quantity->ToString()};
}

// A volume in memory has its size from the kernel.
std::optional<Limit> VolumeLimit(const json::Value& volume) {
  if (json::GetString(volume, {"emptyDir", "medium"}) == "Memory") return std::nullopt;
  return ReadLimit(json::Find(volume, {"emptyDir", "sizeLimit"}));
}

std::optional<Limit> ContainerLimit(const json::Value& container) {
  return ReadLimit(json::Find(container, {"resources", "limits", kEphemeral}));
}

int64_t UseOf(const std::map<std::string, int64_t>& use, std::string_view name) {
  const auto found = use.find(std::string(name));
  return found == use.end() ? 0 : found->second;
}

// The limit of the pod as a whole: that of its containers together, if each has one.
std::optional<Limit> PodLimit(const json::Value& pod) {
  api::Quantity sum;
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    if (!ContainerLimit(container)) return std::nullopt;
    auto one = api::Quantity::FromJson(*json::Find(container, {"resources", "limits", kEphemeral}));
    if (one.ok()) sum += *one;
  }
  return Limit{sum.Value(), sum.ToString()};
}

}  // namespace

bool HasDiskLimits(const json::Value& pod) {
  const json::Array& volumes = json::GetArray(pod, {"spec", "volumes"});
  const json::Array& containers = json::GetArray(pod, {"spec", "containers"});
  return std::any_of(volumes.begin(), volumes.end(),
                     [](const auto& volume) { return VolumeLimit(volume).has_value(); }) ||
         std::any_of(containers.begin(), containers.end(),
                     [](const auto& container) { return ContainerLimit(container).has_value(); });
}

std::optional<std::string> BeyondDiskLimit(const json::Value& pod, const DiskUse& use) {
  for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
    const std::string_view name = json::GetString(volume, {"name"});
    const auto limit = VolumeLimit(volume);
    if (limit && UseOf(use.volumes, name) > limit->bytes) {
      return StrCat("Usage of EmptyDir volume ", Quote(name), " exceeds the limit ",
                    Quote(limit->text), ".");
    }
  }
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    const std::string_view name = json::GetString(container, {"name"});
    const auto limit = ContainerLimit(container);
    if (limit && UseOf(use.containers, name) > limit->bytes) {
      return StrCat("Container ", name, " exceeded its local ephemeral storage limit ",
                    Quote(limit->text), ".");
    }
  }
  const auto limit = PodLimit(pod);
  int64_t sum = 0;
  for (const auto& [name, bytes] : use.volumes) sum += bytes;
  for (const auto& [name, bytes] : use.containers) sum += bytes;
  if (!limit || limit->bytes <= 0 || sum <= limit->bytes) return std::nullopt;
  return StrCat("Pod ephemeral local storage usage exceeds the total limit of containers ",
                limit->text, ".");
}

}  // namespace swell::node
