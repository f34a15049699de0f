// PodView: what people see of a pod: its status in a word, how many of its containers are ready,
// and the GPUs that it requests.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "json/value.h"

namespace swell::cli {

// GPUs that one pod asks for, in thousandths; fractions count. For a request of GPU memory,
// what it was given, and nothing before it is bound.
int64_t MilliGpus(const json::Value& pod_metadata_and_spec);
std::string GpuText(int64_t milli_gpus);   // "4", "0.5"
std::string GpusText(int64_t milli_gpus);  // "4 GPUs", "1 GPU"
// What kubectl shows as a pod's status: Running, Completed, CrashLoopBackOff, Terminating, …
std::string PodStatusWord(const json::Value& pod);
// How to find out why a pod waits.
std::string AskWhy(const json::Value& pod);
std::string PodReady(const json::Value& pod);  // "1/1"

}  // namespace swell::cli
