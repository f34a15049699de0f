// What a user is told who was refused for having no role in a namespace, and what to do about it.
// - Threads: one thread; asks the server.
#pragma once

#include <optional>
#include <string_view>

#include "cli/session.h"

namespace swell::cli {

// Whether the user has a role in the namespace: each lets its holder read the pods there. Empty:
// the server does not tell.
std::optional<bool> HasRole(Api& api, std::string_view ns);

// The same error, which names the namespace and the way to a role, where it came from the lack of
// one. Every other error as it is.
Status WithRoleHint(Session& session, const Status& status);

}  // namespace swell::cli
