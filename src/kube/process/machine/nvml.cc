#include "kube/process/machine/nvml.h"

#include "kube/process/machine/nvml_library.h"

namespace swell::process {
namespace {

// The parts of NVML's stable C interface that are used here.
using Device = void*;
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

constexpr unsigned kTextMax = 96;
constexpr unsigned kGpusMax = 1024;

}  // namespace

std::vector<GpuInfo> DiscoverGpus(const std::string& name) {
  std::vector<GpuInfo> gpus;
  NvmlLibrary library(name);
  if (!library.loaded() || library.Call("nvmlInit_v2") != 0) return gpus;
  char text[kTextMax] = {};
  unsigned count = 0;
  library.Call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count && i < kGpusMax; ++i) {
    Device device = nullptr;
    if (library.Call("nvmlDeviceGetHandleByIndex_v2", i, &device) != 0) continue;
    GpuInfo gpu;
    gpu.index = static_cast<int>(i);
    if (library.Call("nvmlDeviceGetUUID", device, &text[0], kTextMax) == 0) gpu.uuid = text;
    if (library.Call("nvmlDeviceGetName", device, &text[0], kTextMax) == 0) gpu.name = text;
    Memory memory = {};
    if (library.Call("nvmlDeviceGetMemoryInfo", device, &memory) == 0) {
      gpu.memory_bytes = static_cast<int64_t>(memory.total);
    }
    gpus.push_back(std::move(gpu));
  }
  library.Call("nvmlShutdown");
  return gpus;
}

}  // namespace swell::process
