// Routes: from a request's method and path to its verb, its kind and its handler.
// - Threads: core executor only.
#pragma once

#include <string>
#include <string_view>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

using RouteHandler = void (*)(Core&, const CallPtr&);

// "get", "list", "watch", "create", …; for a path that is not a resource, the method in lower case.
Result<std::string> VerbOf(const Call& call);
// Finds the kind that the path names.
Status Route(Core& core, Call& call);
// Null: the resource does not support the verb.
RouteHandler HandlerOf(const Call& call, std::string_view verb);
// Handlers that pass on what a node answers choose no form for it themselves.
bool IsStreamed(RouteHandler handler);

}  // namespace swell::apiserver
