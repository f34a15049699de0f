// Device filter: which devices the processes of a control group may open.
//
// Version 1 has files for it. In version 2 the kernel asks a program of its own kind (BPF), which
// is made of the rules here and goes with the group.
// - Threads: any; blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace swell::process {

// "c 1:3", "b 8:0", "c 136:*": read and write. Nodes may be made of any device, since a node opens
// nothing by itself.
using DeviceRules = std::vector<std::string>;

// The usual devices: null, zero, full, random, urandom, tty, ptmx, pts.
DeviceRules UsualDevices();
// "c 195:0" for a device file; empty for any other.
std::string DeviceRuleOf(const std::string& path);

// From now on; the group is empty.
Status AllowDevices(const std::string& group, const DeviceRules& rules);
// Why the kernel takes no such program.
Status CanFilterDevices();

}  // namespace swell::process
