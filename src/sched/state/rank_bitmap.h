// RankBitmap: a set of small numbers, such as nodes by rank (their place in name order), walked in
// order.
// - Threads: none. Add and Remove are O(1), Next is O(words skipped).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swell::sched {

class RankBitmap {
 public:
  void Reset(int size) { words_.assign((static_cast<size_t>(size) + 63) / 64, 0), count_ = 0; }
  bool empty() const { return count_ == 0; }
  int count() const { return count_; }
  void Add(int rank) {
    if (static_cast<size_t>(rank >> 6) >= words_.size()) words_.resize((rank >> 6) + 1);
    uint64_t& word = words_[rank >> 6];
    const uint64_t bit = uint64_t{1} << (rank & 63);
    if (!(word & bit)) word |= bit, ++count_;
  }
  void Remove(int rank) {
    if (static_cast<size_t>(rank >> 6) >= words_.size()) return;
    uint64_t& word = words_[rank >> 6];
    const uint64_t bit = uint64_t{1} << (rank & 63);
    if (word & bit) word &= ~bit, --count_;
  }
  // The first rank >= from, or -1.
  int Next(int from) const {
    return FindFrom(from, [this](size_t w) { return words_[w]; });
  }
  // The first rank >= from that is not in `but`, or -1.
  int NextBut(const RankBitmap& but, int from) const {
    const size_t size = but.words_.size();
    return FindFrom(from, [&](size_t w) { return words_[w] & ~(w < size ? but.words_[w] : 0); });
  }
  std::vector<int> Members() const {
    std::vector<int> members;
    for (int i = Next(0); i >= 0; i = Next(i + 1)) members.push_back(i);
    return members;
  }

 private:
  template <class Fn>
  int FindFrom(int from, Fn&& word) const {
    if (count_ == 0) return -1;
    size_t w = static_cast<size_t>(from) >> 6;
    if (w >= words_.size()) return -1;
    uint64_t rest = word(w) & (~uint64_t{0} << (from & 63));
    while (rest == 0) {
      if (++w == words_.size()) return -1;
      rest = word(w);
    }
    return static_cast<int>(w * 64) + __builtin_ctzll(rest);
  }

  std::vector<uint64_t> words_;
  int count_ = 0;
};

}  // namespace swell::sched
