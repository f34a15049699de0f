// How many files, sockets and pipes this process may have open.
// - Threads: any thread.
#pragma once

#include <cstddef>

namespace swell {

size_t DescriptorLimit();

// A server takes more than the thousand that a login shell leaves it: as many as the system lets
// it, but no more than `wanted`, for some programs that it starts look at each of them. Returns the
// limit that holds now.
size_t RaiseDescriptorLimit(size_t wanted = 65536);

}  // namespace swell
