// Errors for users whose role in a namespace does not suffice, or who have none: they name the
// namespace and what to do.
// - Threads: one thread; asks the server.
#pragma once

#include <optional>
#include <string_view>

#include "cli/session.h"

namespace swell::cli {

// Whether the user has a role in the namespace: every role allows reading the pods there. Empty:
// the server does not answer that.
std::optional<bool> HasRole(Api& api, std::string_view ns);

// If the error came from the lack of a role, or from that of a viewer: an error that names the
// namespace and how to get another role. Every other error comes back unchanged.
Status WithRoleHint(Session& session, const Status& status);

}  // namespace swell::cli
