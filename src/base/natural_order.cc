#include "base/natural_order.h"

#include <algorithm>

namespace swell {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

int NaturalBytes::Next() {
  if (rest_.empty()) return -1;
  if (digits_ == 0 && IsDigit(rest_.front())) {
    while (rest_.size() > 1 && rest_[0] == '0' && IsDigit(rest_[1])) rest_.remove_prefix(1);
    while (digits_ < rest_.size() && IsDigit(rest_[digits_])) ++digits_;
    constexpr size_t kLargestByte = 255;
    return static_cast<int>(std::min('0' + digits_, kLargestByte));
  }
  if (digits_ > 0) --digits_;
  const auto byte = static_cast<unsigned char>(rest_.front());
  rest_.remove_prefix(1);
  return byte;
}

std::strong_ordering CompareNatural(std::string_view left, std::string_view right) {
  NaturalBytes a(left), b(right);
  for (;;) {
    const int x = a.Next(), y = b.Next();
    if (x != y) return x <=> y;
    if (x < 0) return left <=> right;  // 7 and 07
  }
}

}  // namespace swell
