// Result<T>: a T or the Status that says why it is missing. Mirrors std::expected's reading half,
// which GCC 12 has only in C++23 mode.
#pragma once

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace swell {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): reads well
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor): same
    SWELL_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  T& value() & {
    SWELL_CHECK_MSG(ok(), status_.message());
    return *value_;
  }
  const T& value() const& {
    SWELL_CHECK_MSG(ok(), status_.message());
    return *value_;
  }
  T&& value() && {
    SWELL_CHECK_MSG(ok(), status_.message());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace swell

#define SWELL_CONCAT_INNER(a, b) a##b
#define SWELL_CONCAT(a, b) SWELL_CONCAT_INNER(a, b)

// Returns the error of a Status or Result expression from the calling function.
#define SWELL_RETURN_IF_ERROR(expr)              \
  do {                                           \
    ::swell::Status swell_status = (expr);       \
    if (!swell_status.ok()) return swell_status; \
  } while (false)

// SWELL_ASSIGN_OR_RETURN(auto x, F()); declares or assigns x, or returns F's error.
#define SWELL_ASSIGN_OR_RETURN(lhs, expr) \
  SWELL_ASSIGN_OR_RETURN_IMPL(SWELL_CONCAT(swell_result_, __LINE__), lhs, expr)
#define SWELL_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return tmp.status();               \
  lhs = std::move(tmp).value()
