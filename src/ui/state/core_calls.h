// CoreCalls: the API server, asked from the pages' thread. Requests go to the core thread and
// answers come back by posts, so neither thread waits for the other.
// - Threads: Handle on the pages' executor; sinks are called there.
// - Ownership: both executors and the server outlive it and its calls.
#pragma once

#include <memory>

#include "base/executor.h"
#include "kube/api/rest/rest.h"

namespace swell::ui {

// `core` runs `server`.
std::shared_ptr<api::RestHandler> MakeCoreCalls(Executor& pages,
                                                Executor& core,
                                                std::shared_ptr<api::RestHandler> server);

}  // namespace swell::ui
