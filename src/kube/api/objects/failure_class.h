// FailureClass: what kind of failure ended a container, read from its exit code, its reason and
// what it said last. The class decides what is advised, and which of several failures is the cause.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace swell::api {

enum class FailureClass : uint8_t {
  kUserError,    // the program, its command or its arguments
  kPreempted,    // the cluster took its place
  kHostMemory,   // more memory than its limit, or than the node has
  kGpuMemory,    // more memory than the GPU has
  kNotANumber,   // the loss or a gradient is NaN or infinite
  kPeerLost,     // another member ended first
  kHardware,     // the GPU or its links
  kCannotStart,  // the node could not start it: an image, a volume, a secret
  kUnknown,
};

// How a container ended, as far as it is known.
struct ContainerEnd {
  int64_t exit_code = 0;
  std::string_view reason;  // the node's word: OOMKilled, Error, StartError
  std::string_view said;    // its termination message, or the end of its log
};

// "UserError", as a job's status has it.
std::string_view FailureClassName(FailureClass which);
// The class of that name; kUnknown for any other text.
FailureClass FailureClassOf(std::string_view name);
FailureClass ClassifyEnd(const ContainerEnd& end);
// The signal behind an exit code of 128 + signal; 0 for other codes.
int SignalOf(int64_t exit_code);
// The signal that ended a process of torchrun, which itself exits with 1, by its report in what the
// container said; 0: there is none.
int LaunchedSignal(std::string_view said);
// "SIGKILL"; empty for a signal that programs rarely end by.
std::string_view SignalName(int signal);
// The line of `said` that says most: the last one that names an error, with the error that it
// follows from, else the last one. Long ones are cut after some 400 bytes in all.
std::string LastWords(std::string_view said);

// Whether the log ends with torchrun's report of processes that failed. It is longer than what is
// kept of a log, and says nothing of the cause.
bool HasLauncherReport(std::string_view log);
// What the processes said before that report, at most bytes_max of it, and the report's first line.
std::string BeforeLauncherReport(std::string_view log, size_t bytes_max);

}  // namespace swell::api
