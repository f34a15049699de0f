// PodsDevice: the interface of this machine that leads to the pods of an engine.
// - Threads: a function over texts.
#pragma once

#include <string>
#include <string_view>

namespace swell::cri {

// By the machine's routes (/proc/net/route): that of the narrowest network that contains the pod's
// address. Other interfaces may have wider ones around it. Empty if no interface leads to the
// whole network: some CNI plug-ins give each pod a link of its own.
std::string PodsDevice(std::string_view routes, const std::string& pod_ip);

}  // namespace swell::cri
