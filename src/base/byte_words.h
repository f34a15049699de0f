// Eight bytes at a time: what would call the C library for every few bytes of a text, inline.
// - Threads: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace swell {

static_assert(std::endian::native == std::endian::little, "the first byte is a word's lowest");

inline uint64_t WordAt(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// The first `byte` of the text from `from` on, or npos.
inline size_t FindByte(std::string_view text, char byte, size_t from) {
  constexpr uint64_t kOnes = 0x0101010101010101ULL;
  constexpr uint64_t kHighs = 0x8080808080808080ULL;
  const uint64_t wanted = kOnes * static_cast<unsigned char>(byte);
  size_t i = from;
  for (; i + sizeof(uint64_t) <= text.size(); i += sizeof(uint64_t)) {
    const uint64_t word = WordAt(text.data() + i) ^ wanted;
    // The lowest bit that is set is of the first byte that is zero.
    const uint64_t zeros = (word - kOnes) & ~word & kHighs;
    if (zeros != 0) return i + static_cast<size_t>(std::countr_zero(zeros)) / 8;
  }
  for (; i < text.size(); ++i) {
    if (text[i] == byte) return i;
  }
  return std::string_view::npos;
}

}  // namespace swell
