// Volumes as directories of the host: what a VolumeSpec says becomes a path to bind.
// - Threads: pure functions over the file system; blocking.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kube/node/runtime/runtime.h"

namespace swell::process {

// A hostPath that is missing is made by swell itself, or by nobody, who may where everybody may.
enum class HostPathMaker { kSwell, kNobody };

// Makes the volume under `pod_dir` (or `data_dir`, for durable ones) and returns its path on the
// host; for kMemory an empty string: the shim mounts it.
Result<std::string> MakeVolume(const node::VolumeSpec& volume,
                               const std::string& pod_dir,
                               const std::string& data_dir,
                               std::optional<int64_t> fs_group,
                               HostPathMaker maker);

// Replaces a kFiles volume's content. Readers see the old or the new set of files.
Status UpdateFiles(const node::VolumeSpec& volume,
                   const std::string& pod_dir,
                   std::optional<int64_t> fs_group);

// RemoveTree that first gives itself the right to: an overlay's work directory has none at all.
Status RemoveScratch(const std::string& path);

// Letters, digits, '.', '-', '_', and not only dots: usable as one step of a path.
bool IsPlainName(std::string_view name);

}  // namespace swell::process
