// The type of a node's GPUs, and the type to which a job is held.
// - Threads: constants.
// - Invariants: values are plain text that people may write, so every reader copes with nonsense.
#pragma once

#include <string_view>

namespace swell::api::keys {

// On nodes, as NVIDIA's feature discovery sets it: "Tesla-T4".
inline constexpr std::string_view kGpuProduct = "nvidia.com/gpu.product";

// On jobs: the type of GPU to which their members are held. On pods: the one that their job was
// held to when they were made, by which they were bound to nodes of that type. Pods that name
// another type than their job are stopped, and made anew.
inline constexpr std::string_view kHeldGpuType = "swell.dev/held-gpu-type";

}  // namespace swell::api::keys
