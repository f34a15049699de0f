// Quantity: Kubernetes' resource amounts ("100m", "4Gi", "1e3"), exact.
// - Threads: values.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace swell::api {

class Quantity {
 public:
  // Nanos in precision (finer is rounded away from zero) and capped at 2^63-1 units, as Kubernetes
  // does.
  // Numbers in JSON ("cpu: 1") are accepted through FromJson.
  static Result<Quantity> Parse(std::string_view text);
  static Result<Quantity> FromJson(const json::Value& value);

  int64_t Value() const;       // rounded up to whole units, saturating
  int64_t MilliValue() const;  // rounded up to thousandths, saturating
  // Canonical text, as Kubernetes stores it: the form (Ki, M, exponent) is kept.
  std::string ToString() const;
  bool negative() const { return nanos_ < 0; }
  bool zero() const { return nanos_ == 0; }
  // The sum keeps the form of whichever side is not zero, the left one first. Saturates.
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);
  std::strong_ordering operator<=>(const Quantity& other) const { return nanos_ <=> other.nanos_; }
  bool operator==(const Quantity& other) const { return nanos_ == other.nanos_; }

 private:
  enum class Format { kDecimalSi, kBinarySi, kDecimalExponent };
  __int128 nanos_ = 0;
  Format format_ = Format::kDecimalSi;
};

}  // namespace swell::api
