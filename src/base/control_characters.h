// ControlBytes: the characters of a text that show nothing themselves, and change how a terminal
// shows others.
// - Threads: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace swell {

// The bytes, from `at` on, of such a character; 0: it is another one.
inline size_t ControlBytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned { return static_cast<unsigned char>(text[at + i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  const size_t left = text.size() - at;
  // U+0080 to U+009F: to many terminals U+009B is what ESC [ is.
  if (byte(0) == 0xc2 && left >= 2 && (byte(1) & 0xe0) == 0x80) return 2;
  // What turns the direction of a line, so that it is read from right to left, or begins a new one.
  if (byte(0) != 0xe2 || left < 3) return 0;
  const bool separators_and_embeddings = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return separators_and_embeddings || isolates ? 3 : 0;
}

}  // namespace swell
