#include "base/random.h"

#include <sys/random.h>

#include "base/check.h"

namespace swell {

uint64_t Random::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

uint64_t Random::Below(uint64_t n) {
  SWELL_CHECK(n > 0);
  // Multiply-shift; its bias is below 2^-32 for every n we use.
  return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

std::string Random::NameSuffix(size_t length) {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out(length, ' ');
  for (char& c : out) c = kAlphabet[Below(kAlphabet.size())];
  return out;
}

std::string Random::Uuid() {
  static constexpr char kHex[] = "0123456789abcdef";
  uint64_t words[2] = {Next(), Next()};
  words[0] = (words[0] & ~0xf000ULL) | 0x4000ULL;
  words[1] = (words[1] & ~(3ULL << 62)) | (2ULL << 62);
  std::string out;
  out.reserve(36);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) out += '-';
    out += kHex[(words[i / 16] >> (60 - 4 * (i % 16))) & 0xf];
  }
  return out;
}

uint64_t EntropySeed() {
  uint64_t seed = 0;
  ssize_t n = ::getrandom(&seed, sizeof seed, 0);
  SWELL_CHECK(n == sizeof seed);
  return seed;
}

uint64_t StableHash(std::string_view bytes, uint64_t basis) {
  uint64_t hash = basis;
  for (unsigned char c : bytes) {
    hash ^= c;
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace swell
