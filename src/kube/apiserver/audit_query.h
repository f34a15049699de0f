// AuditQuery: which events of the audit log somebody wants to see: GET /swell/v1/audit.
//
//   user, verb, resource, namespace, name   exact; resource is the plural
//   refused=true                            only what was not answered with success
//   since, until                            RFC 3339
//   limit                                   1 to 2000, 200 if it is not given
//
// - Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "json/value.h"

namespace swell::apiserver {

struct AuditQuery {
  static constexpr size_t kLimitUsual = 200;
  static constexpr size_t kLimitMost = 2000;

  // The query of a request's target; kBadRequest names the parameter.
  static Result<AuditQuery> Parse(std::string_view query);

  bool Matches(const json::Value& event) const;
  // Whether an event with this text, one line of the log, may match. Cheap.
  bool MayMatch(std::string_view line) const;

  std::string user, verb, resource, ns, name;
  bool refused = false;
  std::optional<WallTime> since, until;
  size_t limit = kLimitUsual;
};

// When the event was written.
std::optional<WallTime> AuditTime(const json::Value& event);

}  // namespace swell::apiserver
