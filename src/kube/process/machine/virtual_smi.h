// The nvidia-smi of pods with virtual GPUs: a shell script, and the file that it reads.
//
//   DIR/devices    a line for each GPU of the container: "index|name|uuid|total|busy|used"
//   DIR/share      the thousandths of a processor that the container holds
//   DIR/nvidia-smi the script; it reads /run/swell/gpu/devices, without a network
//
// `swell nvidia-smi` runs the same script on the lines of a whole node (ops/nodes/node_gpus.h).
//
// A virtual GPU has no counters: it is as busy as its container keeps the processors that it holds,
// and as full as the container's part of the machine's memory.
//
// - Threads: functions over the file system; blocking, a few small files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/spec/pod_spec.h"

namespace swell::process {

// Where containers see it.
inline constexpr std::string_view kGpuDir = "/run/swell/gpu";
inline constexpr std::string_view kSmiPath = "/usr/bin/nvidia-smi";

// $SWELL_GPU_DEVICES names another file of devices. $SWELL_GPU_PROGRAMS names a file of programs, a
// line "index|pid|name|used" for each, in place of those that the script sees itself.
// $SWELL_VISIBLE_GPUS are the indexes of the GPUs that it shows: "0,2"; empty: all.
std::string_view VirtualSmiScript();

struct VirtualGpu {
  std::string index, name, uuid;
  int64_t total_mib = 0;
  int64_t busy_percent = 0;
  int64_t used_mib = 0;
};
// What a container uses of `gpus` devices.
struct VirtualGpuUse {
  double cores = 0;           // processors that it keeps busy
  int64_t held_milli = 1000;  // that it holds
  int64_t memory_bytes = 0;
  size_t gpus = 1;
};

// Idle. `node` and `id` make it unique; `env` is what AddVirtualGpuEnv wrote.
VirtualGpu MakeVirtualGpu(int index,
                          std::string_view node,
                          std::string_view id,
                          const node::EnvList& env);
// Containers that share a device add up, as far as it goes. Returns the MiB of this one.
int64_t AddUse(VirtualGpu& gpu, const VirtualGpuUse& use);
std::string PrintVirtualGpus(const std::vector<VirtualGpu>& gpus);

// Whether all GPUs that the container sees are virtual, and it sees some.
bool HasVirtualGpus(const node::ContainerSpec& spec);

// Makes `dir` with its files, idle. `node` makes the ids of the GPUs unique.
Status MakeVirtualGpus(const std::string& dir,
                       const std::string& node,
                       const node::ContainerSpec& spec);
// Writes what the container uses. No effect where MakeVirtualGpus made nothing.
Status UpdateVirtualGpus(const std::string& dir, const node::ContainerUsage& usage);

}  // namespace swell::process
