// LeaseTerm: a time during which nobody else held a Lease, which is a time of leadership.
//
// A leader names its term in the query of every write (`leaseTerm=NS/NAME/UID/TRANSITIONS`). A
// server that knows the parameter refuses what was asked in a term that is over, however late it
// arrives; kube-apiserver does not look at it.
//
// - Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::api {

inline constexpr std::string_view kLeaseTermParameter = "leaseTerm";

struct LeaseTerm {
  std::string ns, name, uid;  // of the Lease
  int64_t transitions = 0;    // how often it has changed hands

  static LeaseTerm Of(const json::Value& lease);
  // Nothing where the text is not a term.
  static std::optional<LeaseTerm> Parse(std::string_view text);
  std::string ToString() const;
  bool operator==(const LeaseTerm&) const = default;
};

}  // namespace swell::api
