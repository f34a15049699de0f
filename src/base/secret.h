// RandomSecret: 256 bits that nobody can guess, as text: ids of sessions and one-time codes.
// - Threads: any.
#pragma once

#include <string>

namespace swell {

// 64 hexadecimal digits from the operating system's entropy.
std::string RandomSecret();

}  // namespace swell
