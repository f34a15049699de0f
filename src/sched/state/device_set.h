// DeviceSet: the GPUs of one node that a pod holds, as bits.
// - Threads: a value. Bounded: nodes have at most kDevicesMax devices; more are not used.
#pragma once

#include <cstdint>
#include <vector>

namespace swell::sched {

inline constexpr int kDevicesMax = 128;

struct DeviceSet {
  uint64_t words[2] = {0, 0};

  bool operator==(const DeviceSet&) const = default;
  bool Empty() const { return (words[0] | words[1]) == 0; }
  bool Has(int i) const { return (words[i >> 6] >> (i & 63)) & 1u; }
  void Add(int i) { words[i >> 6] |= uint64_t{1} << (i & 63); }
  int Count() const { return __builtin_popcountll(words[0]) + __builtin_popcountll(words[1]); }
  // Calls fn(index) in ascending order.
  template <class Fn>
  void ForEach(Fn&& fn) const {
    for (int w = 0; w < 2; ++w) {
      for (uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
        fn(w * 64 + __builtin_ctzll(rest));
      }
    }
  }
  std::vector<int> ToVector() const {
    std::vector<int> out;
    ForEach([&out](int i) { out.push_back(i); });
    return out;
  }
  // Indices outside [0, kDevicesMax) are dropped.
  static DeviceSet From(const std::vector<int>& indices) {
    DeviceSet set;
    for (int i : indices) {
      if (i >= 0 && i < kDevicesMax) set.Add(i);
    }
    return set;
  }
};

}  // namespace swell::sched
