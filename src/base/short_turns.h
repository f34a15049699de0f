// AskForShortTurns: asks the kernel to schedule this thread in short slices, so that it runs soon
// after it wakes. That is for threads that others wait for, and that have little to do each time.
// Their share of the processor stays what it is.
// - Threads: any thread, for itself.
#pragma once

namespace swell {

// From here on the calling thread's turns are short, and so are those of threads and processes that
// it starts afterwards. Kernels before Linux 6.12 ignore it.
void AskForShortTurns();

}  // namespace swell
