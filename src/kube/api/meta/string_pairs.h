// StringPairs: sorted pairs of strings, all in one allocation: some are kept beside every object,
// where a vector of pairs takes three times as much.
// - Threads: as std containers.
// - Ownership: what it tells of points into it.
// - Invariants: sorted by the first of each pair, compared by their bytes; a caller
//   that appends keeps the order.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace swell::api {

class StringPairs {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;

  class Iterator {
   public:
    explicit Iterator(std::string_view rest) : rest_(rest) {}
    Pair operator*() const { return {Text(0), Text(kLength + Text(0).size())}; }
    Iterator& operator++() {
      const auto [first, second] = **this;
      rest_.remove_prefix(2 * kLength + first.size() + second.size());
      return *this;
    }
    bool operator!=(const Iterator& other) const { return rest_.size() != other.rest_.size(); }

   private:
    std::string_view Text(size_t at) const {
      Length length;
      std::memcpy(&length, rest_.data() + at, kLength);
      return rest_.substr(at + kLength, length);
    }
    std::string_view rest_;
  };

  StringPairs() = default;
  StringPairs(std::initializer_list<Pair> pairs) { Assign(pairs); }
  // From any range of pairs; takes no more room than they need.
  template <class Pairs>
  static StringPairs Of(const Pairs& pairs) {
    StringPairs packed;
    packed.Assign(pairs);
    return packed;
  }

  Iterator begin() const { return Iterator(packed_); }
  Iterator end() const { return Iterator({}); }
  bool empty() const { return packed_.empty(); }
  bool operator==(const StringPairs&) const = default;

  std::optional<std::string_view> Find(std::string_view first) const {
    for (const auto& [key, value] : *this) {
      if (key == first) return value;
    }
    return std::nullopt;
  }

 private:
  using Length = uint32_t;
  static constexpr size_t kLength = sizeof(Length);

  template <class Pairs>
  void Assign(const Pairs& pairs) {
    size_t size = 0;
    for (const auto& [first, second] : pairs) size += 2 * kLength + first.size() + second.size();
    packed_.reserve(size);
    for (const auto& [first, second] : pairs) {
      Append(first);
      Append(second);
    }
  }
  void Append(std::string_view text) {
    SWELL_CHECK(text.size() <= UINT32_MAX);
    const auto length = static_cast<Length>(text.size());
    packed_.append(reinterpret_cast<const char*>(&length), kLength).append(text);
  }

  std::string packed_;
};

}  // namespace swell::api
