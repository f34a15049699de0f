// Random: seeded randomness (SplitMix64, Steele et al. 2014). Same seed, same sequence, everywhere.
// - Threads: none; each owner has its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace swell {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next();
  // Uniform in [0, n); n > 0.
  uint64_t Below(uint64_t n);
  // Uniform in [0, 1).
  double Unit();
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // `length` characters that Kubernetes uses for generated names (no vowels, no look-alikes).
  std::string NameSuffix(size_t length);
  // RFC 4122 version 4.
  std::string Uuid();

 private:
  uint64_t state_;
};

// A seed from the operating system's entropy.
uint64_t EntropySeed();
// FNV-1a, 64 bits: a stable hash for trace hashes and derived seeds; not for hash tables.
uint64_t StableHash(std::string_view bytes, uint64_t basis = 0xcbf29ce484222325ULL);

}  // namespace swell
