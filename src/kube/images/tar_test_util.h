// Tar files of any content, for tests: also such as no tool would write.
// - Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace swell::images {

// `type`: '0' file, '1' hard link, '2' symbolic link, '3' device, '5' directory, 'x' pax header.
inline std::string TarItem(std::string_view path,
                           char type = '0',
                           std::string_view data = {},
                           std::string_view link = {},
                           int mode = 0644) {
  char head[512] = {};
  std::snprintf(head, 100, "%.*s", static_cast<int>(path.size()), path.data());
  std::snprintf(head + 100, 8, "%07o", mode);
  std::snprintf(head + 108, 8, "%07o", 0);
  std::snprintf(head + 116, 8, "%07o", 0);
  std::snprintf(head + 124, 12, "%011zo", data.size());
  std::snprintf(head + 136, 12, "%011o", 1000);
  head[156] = type;
  std::snprintf(head + 157, 100, "%.*s", static_cast<int>(link.size()), link.data());
  std::copy_n("ustar\00000", 8, head + 257);
  std::memset(head + 148, ' ', 8);
  unsigned sum = 0;
  for (unsigned char c : head) sum += c;
  std::snprintf(head + 148, 8, "%06o", sum);
  std::string out(head, sizeof head);
  out += data;
  out.append((512 - data.size() % 512) % 512, '\0');
  return out;
}

inline std::string TarEnd() { return std::string(1024, '\0'); }

}  // namespace swell::images
