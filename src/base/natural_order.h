// The order of names that people expect: task-9 comes before task-10.
// - Threads: values.
#pragma once

#include <compare>
#include <cstddef>
#include <string_view>

namespace swell {

// A name as bytes whose order is that of the names: a number follows the count of its digits.
class NaturalBytes {
 public:
  explicit NaturalBytes(std::string_view name) : rest_(name) {}
  // -1 at the end.
  int Next();

 private:
  std::string_view rest_;
  size_t digits_ = 0;  // of a number that has begun
};

std::strong_ordering CompareNatural(std::string_view left, std::string_view right);

}  // namespace swell
