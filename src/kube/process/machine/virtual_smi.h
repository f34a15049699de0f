// The nvidia-smi of pods with virtual GPUs: a shell script, and the file that it reads.
//
//   DIR/devices    a line for each GPU of the container: "index|name|uuid|total|busy|used"
//   DIR/share      the thousandths of a processor that the container holds
//   DIR/nvidia-smi the script; it reads /run/swell/gpu/devices, without a network
//
// A virtual GPU has no counters: it is as busy as its container keeps the processors that it holds,
// and as full as the container's part of the machine's memory.
//
// - Threads: functions over the file system; blocking, a few small files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/node/runtime.h"

namespace swell::edge {

// Where containers see it.
inline constexpr std::string_view kGpuDir = "/run/swell/gpu";
inline constexpr std::string_view kSmiPath = "/usr/bin/nvidia-smi";

std::string_view VirtualSmiScript();

// Whether all GPUs that the container sees are virtual, and it sees some.
bool HasVirtualGpus(const node::ContainerSpec& spec);

// Makes `dir` with its files, idle. `node` makes the ids of the GPUs unique.
Status MakeVirtualGpus(const std::string& dir,
                       const std::string& node,
                       const node::ContainerSpec& spec);
// Writes what the container uses. No effect where MakeVirtualGpus made nothing.
Status UpdateVirtualGpus(const std::string& dir, const node::ContainerUsage& usage);

}  // namespace swell::edge
