// Amounts in words, for reasons that people read.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "sched/state/state.h"

namespace swell::sched {

// "1 GPU", "3 pods".
std::string Plural(int64_t count, std::string_view noun);
// "4 GPUs", "0.5 GPUs", "1500m CPU", "512 MiB memory"; of a queue's resource.
std::string AmountText(int resource, int64_t amount);
// The same of a pod's or a node's: "2 GPUs", "4 CPUs", "0.5 GiB of memory".
std::string CoreText(int resource, int64_t amount);
// A count of a resource that is not one of Kubernetes' own: "2"; of huge pages: "1.5 GiB".
std::string ExtendedText(std::string_view resource, int64_t amount);
// "2 example.com/nic", "1.5 GiB of hugepages-2Mi".
std::string ExtendedOfText(std::string_view resource, int64_t amount);
// "1.5", "720".
std::string NumberText(double value);
// What a pod asks of a node: "2 GPUs", "0.5 of a GPU", "100m CPU".
std::string RequestText(const State& state, PodId pod, NodeId node);
// The resource that a need is about: GPUs before CPU before memory.
int MainResource(const QueueAmounts& need);

}  // namespace swell::sched
