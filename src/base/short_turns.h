// Threads that others wait for, and that have little to do each time they wake: they ask the kernel
// for short turns on a processor, and it lets them on one at once instead of letting another
// thread finish a longer turn. Their share of the processor stays what it is.
// - Threads: any thread, for itself.
#pragma once

namespace swell {

// From here on the calling thread's turns are short, and so are those of threads and processes that
// it starts afterwards. A kernel before Linux 6.12 knows no such wish.
void AskForShortTurns();

}  // namespace swell
