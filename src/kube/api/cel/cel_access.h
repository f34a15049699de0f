// CelAccess: the variable `authorizer` of expressions, which asks what somebody may do. Its methods
// put a question together, and check() asks it:
// authorizer.group("").resource("pods").check("list").
// - Threads: pure functions; an authorizer is called by the evaluation that asks it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/cel/cel.h"

namespace swell::api {

struct CelAccessQuestion {
  // The account whose rights are asked about. Empty: the user who made the request.
  std::string account_ns, account;
  std::string verb;
  std::string group, resource, subresource, ns, name;
  std::string path;  // of a request that is about no resource
};

struct CelAccessAnswer {
  bool allowed = false;
  std::string reason;
};

using CelAuthorizer = std::function<CelAccessAnswer(const CelAccessQuestion&)>;

inline constexpr std::string_view kCelAuthorizer = "authorizer";
// What an expression that makes a message may use of these variables.
std::vector<std::string> WithoutCelAuthorizer(std::vector<std::string> variables);
// The variable. `requested` is authorizer.requestResource: what the request is about.
CelValue MakeCelAuthorizer(CelAuthorizer authorizer, CelAccessQuestion requested);

// cel_access.cc: methods of the authorizer and of what they make.
Result<CelValue> CallCelAccess(std::string_view name,
                               const std::vector<CelValue>& args,
                               CelBudget& budget);
// A field of the authorizer.
Result<CelValue> SelectCelAccess(const CelValue& authorizer, std::string_view field);

}  // namespace swell::api
