// GpuNodes: the nodes in /dev by which a container uses its GPUs, and no others.
// - Threads: pure functions over the file system; blocking.
#pragma once

#include <string>
#include <vector>

namespace swell::process {

// Devices of the machine, unlike virtual ones, have NVIDIA's ids: "GPU-…", "MIG-…".
std::vector<std::string> RealGpus(const std::vector<std::string>& ids);

// Paths below `root`; none for no ids. A part of a divided GPU brings the nodes of the whole one,
// on which the driver keeps the parts apart. Where the driver does not say which node belongs to
// which id, all of them.
std::vector<std::string> GpuNodes(const std::vector<std::string>& ids,
                                  const std::string& root = "");

}  // namespace swell::process
