// SWELL_CHECK: invariants of our own code, always on. A failed check prints and aborts.
//
// Bytes from outside (network, disk, children, users) never reach a check: they get a Status.
#pragma once

#include <string_view>

namespace swell {

[[noreturn]] void CheckFailed(const char* file,
                              int line,
                              const char* condition,
                              std::string_view message = {});

}  // namespace swell

#define SWELL_CHECK(condition)                       \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::swell::CheckFailed(__FILE__, __LINE__, #condition))
#define SWELL_CHECK_MSG(condition, message)          \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::swell::CheckFailed(__FILE__, __LINE__, #condition, message))
