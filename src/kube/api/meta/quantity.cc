#include "kube/api/meta/quantity.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace swell::api {
namespace {

constexpr __int128 kNano = 1'000'000'000;
// Kubernetes caps larger amounts at the largest int64.
constexpr __int128 kMaxNanos = static_cast<__int128>(INT64_MAX) * kNano;

struct Suffix {
  std::string_view text;
  int exponent;  // of 10, or of 2 for the binary ones
};
constexpr std::array kDecimal = {
    Suffix{"n", -9}, Suffix{"u", -6}, Suffix{"m", -3}, Suffix{"", 0},   Suffix{"k", 3},
    Suffix{"M", 6},  Suffix{"G", 9},  Suffix{"T", 12}, Suffix{"P", 15}, Suffix{"E", 18},
};
constexpr std::array kBinary = {
    Suffix{"Ki", 10}, Suffix{"Mi", 20}, Suffix{"Gi", 30},
    Suffix{"Ti", 40}, Suffix{"Pi", 50}, Suffix{"Ei", 60},
};

template <class Table>
const Suffix* FindSuffix(const Table& table, std::string_view text) {
  for (const Suffix& suffix : table) {
    if (suffix.text == text) return &suffix;
  }
  return nullptr;
}

Status Malformed(std::string_view text) {
  return Status(Code::kBadRequest, StrCat("quantity ", Quote(text),
                                          ": quantities must match the regular expression "
                                          "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"));
}

// Most amounts have no more digits: whatever their suffix, they fit an __int128 in nanos.
constexpr size_t kShort = 10;

// As below, of at most kShort digits without a fraction, with the exponent of a suffix.
__int128 ScaleShort(std::string_view whole, int shift, int binary) {
  __int128 nanos = 0;
  for (char c : whole) nanos = nanos * 10 + (c - '0');
  for (int i = -9; i < shift; ++i) nanos *= 10;
  return std::min(nanos << binary, kMaxNanos);
}

// whole.fraction (digits only) × 10^shift × 2^binary, in nanos, rounded away from zero, capped.
__int128 Scale(std::string whole, std::string fraction, int shift, int binary) {
  // Beyond this the answer is 0, one nano or the cap anyway.
  shift = std::clamp(shift, -300, 300);
  if (shift > 0) {
    fraction.append(static_cast<size_t>(std::max(0, shift - static_cast<int>(fraction.size()))),
                    '0');
    whole += fraction.substr(0, static_cast<size_t>(shift));
    fraction.erase(0, static_cast<size_t>(shift));
  } else if (shift < 0) {
    size_t digits = static_cast<size_t>(-shift);
    if (whole.size() < digits) whole.insert(0, digits - whole.size(), '0');
    fraction.insert(0, whole, whole.size() - digits, digits);
    whole.erase(whole.size() - digits);
  }
  const __int128 unit = static_cast<__int128>(1) << binary;
  __int128 units = 0;
  for (char c : whole) {
    units = units * 10 + (c - '0');
    if (units * unit > INT64_MAX) return kMaxNanos;
  }
  // Fraction from its last digit: floor of floors is the floor of the whole.
  __int128 part = 0;
  bool inexact = false;
  for (size_t i = fraction.size(); i-- > 0;) {
    part += (fraction[i] - '0') * unit * kNano;
    inexact = inexact || part % 10 != 0;
    part /= 10;
  }
  return std::min(units * unit * kNano + part + (inexact ? 1 : 0), kMaxNanos);
}

int64_t DivideUp(__int128 nanos, __int128 by) {
  __int128 quotient = nanos / by;
  if (nanos % by != 0) quotient += nanos < 0 ? -1 : 1;
  if (quotient > INT64_MAX) return INT64_MAX;
  if (quotient < INT64_MIN) return INT64_MIN;
  return static_cast<int64_t>(quotient);
}

std::string Decimal(__int128 n) {
  if (n == 0) return "0";
  std::string out;
  bool negative = n < 0;
  for (; n != 0; n /= 10) {
    int digit = static_cast<int>(n % 10);
    out.insert(out.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
  }
  return negative ? "-" + out : out;
}

}  // namespace

Result<Quantity> Quantity::Parse(std::string_view text) {
  if (text.empty() || text.size() > 256) return Malformed(text.substr(0, 64));
  std::string_view rest = text;
  bool negative = rest[0] == '-';
  if (negative || rest[0] == '+') rest.remove_prefix(1);
  auto digits = [&rest] {
    size_t n = 0;
    while (n < rest.size() && rest[n] >= '0' && rest[n] <= '9') ++n;
    const std::string_view out = rest.substr(0, n);
    rest.remove_prefix(n);
    return out;
  };
  const std::string_view whole = digits();
  std::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = digits();
  }
  if (whole.empty() && fraction.empty()) return Malformed(text);

  Quantity quantity;
  int shift = 0;
  int binary = 0;
  if (const Suffix* decimal = FindSuffix(kDecimal, rest)) {
    shift = decimal->exponent;
  } else if (const Suffix* two = FindSuffix(kBinary, rest)) {
    binary = two->exponent;
    quantity.format_ = Format::kBinarySi;
  } else if (rest[0] == 'e' || rest[0] == 'E') {
    rest.remove_prefix(1);
    if (!rest.empty() && rest[0] == '+' && rest.find('-') == std::string_view::npos) {
      rest.remove_prefix(1);
    }
    auto exponent = ParseInt(rest);
    if (!exponent || *exponent > INT32_MAX || *exponent < INT32_MIN) return Malformed(text);
    shift = static_cast<int>(*exponent);
    quantity.format_ = Format::kDecimalExponent;
  } else {
    return Malformed(text);
  }
  const bool plain = quantity.format_ != Format::kDecimalExponent && fraction.empty();
  const __int128 magnitude = plain && whole.size() <= kShort
                                 ? ScaleShort(whole, shift, binary)
                                 : Scale(std::string(whole), std::string(fraction), shift, binary);
  quantity.nanos_ = negative ? -magnitude : magnitude;
  return quantity;
}

Result<Quantity> Quantity::FromJson(const json::Value& value) {
  if (value.is_string()) return Parse(json::View(value.get_string()));
  if (value.is_number()) return Parse(json::Print(value));
  if (value.is_null()) return Quantity();
  return Malformed(json::Print(value).substr(0, 64));
}

int64_t Quantity::Value() const { return DivideUp(nanos_, kNano); }
int64_t Quantity::MilliValue() const { return DivideUp(nanos_, kNano / 1000); }

Quantity& Quantity::operator+=(const Quantity& other) {
  if (nanos_ == 0) format_ = other.format_;
  nanos_ = std::clamp(nanos_ + other.nanos_, -kMaxNanos, kMaxNanos);
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) {
  Quantity negated = other;
  negated.nanos_ = -other.nanos_;
  return *this += negated;
}

std::string Quantity::ToString() const {
  if (nanos_ == 0) return "0";
  bool whole = nanos_ % kNano == 0;
  __int128 units = nanos_ / kNano;
  // Small or fractional amounts have no exact binary form that people would recognize.
  if (format_ == Format::kBinarySi && whole && (units >= 1024 || units <= -1024)) {
    size_t step = 0;
    while (step < kBinary.size() && units % 1024 == 0) {
      units /= 1024;
      ++step;
    }
    return Decimal(units) + std::string(step == 0 ? "" : kBinary[step - 1].text);
  }
  __int128 mantissa = nanos_;
  size_t step = 0;
  while (step + 1 < kDecimal.size() && mantissa % 1000 == 0) {
    mantissa /= 1000;
    ++step;
  }
  if (format_ == Format::kDecimalExponent) {
    int exponent = kDecimal[step].exponent;
    return Decimal(mantissa) + (exponent == 0 ? "" : StrCat('e', exponent));
  }
  return Decimal(mantissa) + std::string(kDecimal[step].text);
}

}  // namespace swell::api
