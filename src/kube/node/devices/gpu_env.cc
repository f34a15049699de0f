#include "kube/node/devices/gpu_env.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::node {
namespace {

// How much of each device is the pod's. Nothing on the device enforces it: frameworks that would
// take all the memory are told to take less.
void AddGpuShareEnv(const json::Value& pod, int64_t device_mib, EnvList& env) {
  double share =
      std::strtod(std::string(api::Annotation(pod, api::keys::kGpuFraction)).c_str(), nullptr);
  int64_t mib = ParseInt(api::Annotation(pod, api::keys::kGpuMemory)).value_or(0);
  if (mib > 0) {
    share = device_mib > 0 ? static_cast<double>(mib) / static_cast<double>(device_mib) : 0;
  } else {
    mib = static_cast<int64_t>(share * static_cast<double>(device_mib));
  }
  auto add = [&env](std::string name, std::string value) {
    const bool set = std::any_of(env.begin(), env.end(),
                                 [&name](const auto& known) { return known.first == name; });
    if (!set) env.emplace_back(std::move(name), std::move(value));
  };
  if (mib > 0) add("SWELL_GPU_MEMORY_MIB", std::to_string(mib));
  if (share <= 0 || share > 1) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", share);
  add("SWELL_GPU_FRACTION", text);
  add("XLA_PYTHON_CLIENT_MEM_FRACTION", text);
  add("TF_FORCE_GPU_ALLOW_GROWTH", "true");
}

}  // namespace

std::vector<std::string> AddGpuEnv(const json::Value& pod,
                                   std::string_view container,
                                   const PodGpus& gpus,
                                   EnvList& env) {
  const std::vector<std::string>& devices = gpus.devices;
  if (devices.empty() && gpus.claimed.empty()) return {};
  size_t first = 0;
  size_t count = 0;
  size_t total = 0;
  for (std::string_view list : {"initContainers", "containers"}) {
    size_t at = 0;
    for (const json::Value& item : json::GetArray(pod, {"spec", list})) {
      Amounts limits = ReadAmounts(json::Find(item, {"resources", "limits"}));
      auto gpu = limits.find(kGpuResource);
      size_t n = gpu == limits.end() ? 0 : static_cast<size_t>(std::max<int64_t>(0, gpu->second));
      total += n;
      if (json::GetString(item, {"name"}) == container) {
        first = at;
        count = n;
      }
      at += n;
    }
  }
  const bool shared = total == 0 && !devices.empty();  // no container requests a whole GPU
  if (shared) count = devices.size();
  if (count == 0 && gpus.claimed.empty()) return {};
  for (const auto& [name, value] : env) {
    // A manifest that hides the devices from the container means it.
    if (name == "NVIDIA_VISIBLE_DEVICES" && (value == "void" || value == "none")) return {};
  }
  std::vector<std::string> visible = gpus.claimed;
  for (size_t i = first; i < std::min(first + count, devices.size()); ++i) {
    visible.push_back(devices[i]);
  }
  env.emplace_back("CUDA_VISIBLE_DEVICES", Join(visible, ","));
  env.emplace_back("NVIDIA_VISIBLE_DEVICES", Join(visible, ","));
  if (shared) AddGpuShareEnv(pod, gpus.memory_mib, env);
  return visible;
}

GpuKind GpuKindOf(const NodeConfig& node, const Amounts& allocatable, int64_t gpus) {
  auto label = [&node](const std::string& key) {
    const auto found = node.labels.find(key);
    return found == node.labels.end() ? std::string() : found->second;
  };
  GpuKind kind{label("nvidia.com/gpu.product"),
               ParseInt(label("nvidia.com/gpu.memory")).value_or(0)};
  const auto memory = allocatable.find("memory");
  if (kind.memory_mib <= 0 && memory != allocatable.end() && gpus > 0) {
    kind.memory_mib = (memory->second >> 20) / gpus;
  }
  const bool is_virtual = node.gpu_device_ids.empty();
  if (kind.model.empty()) {
    kind.model = is_virtual ? "Swell virtual GPU" : "GPU";
  } else if (is_virtual) {
    kind.model += " (virtual)";
  }
  return kind;
}

void AddVirtualGpuEnv(const NodeConfig& node, const Amounts& allocatable, EnvList& env) {
  if (!node.gpu_device_ids.empty()) return;
  const auto gpus = allocatable.find(kGpuResource);
  if (gpus == allocatable.end() || gpus->second <= 0) return;
  const GpuKind kind = GpuKindOf(node, allocatable, gpus->second);
  env.emplace_back("SWELL_GPU_NAME", kind.model);
  env.emplace_back("SWELL_GPU_TOTAL_MIB", std::to_string(kind.memory_mib));
}

}  // namespace swell::node
