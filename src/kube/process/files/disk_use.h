// BytesOnDisk: what the files below a directory take of its disk.
//
// Links are not followed, other file systems not entered, and a file with several names counts
// once. Pods change their directories meanwhile, so the sum is of no one moment.
//
// - Threads: any; it blocks for as long as it takes to look at every file.
#pragma once

#include <cstdint>
#include <string>

namespace swell::process {

// 0 where it cannot be read. Files beyond 5 million are left out, and where more than 256
// directories wait that are deeper than a multiple of 200, the rest of those.
int64_t BytesOnDisk(const std::string& dir);

}  // namespace swell::process
