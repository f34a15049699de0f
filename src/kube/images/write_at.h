// WriteAt: writes all of the bytes at a place of a file.
// - Threads: pure function over the file.
#pragma once

#include <cstdint>
#include <string_view>

namespace swell::images {

// False with errno set when not all bytes could be written. The bytes from `offset` on then are
// undefined.
bool WriteAt(int fd, std::string_view bytes, int64_t offset);

}  // namespace swell::images
