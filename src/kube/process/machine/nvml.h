// Nvml: the machine's GPUs, from NVIDIA's management library, loaded at run time. Without the
// library there are no GPUs.
// - Threads: a pure function; loads, asks, unloads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace swell::process {

struct GpuInfo {
  int index = 0;
  std::string uuid;  // "GPU-…"
  std::string name;  // "NVIDIA H200"
  int64_t memory_bytes = 0;
};

std::vector<GpuInfo> DiscoverGpus(const std::string& library = "libnvidia-ml.so.1");

}  // namespace swell::process
