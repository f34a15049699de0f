// Built-in kinds with rules of their own: their hooks, and the handlers of theirs that are not
// generic.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Each adds hooks and what the server keeps of the kinds, and reads what is stored of them.
void RegisterBuiltInKinds(Core& core);     // strategies.cc
void RegisterNewerKinds(Core& core);       // newer_kinds.cc
void RegisterSigningRequests(Core& core);  // signing_requests.cc
void RegisterCustomKinds(Core& core);      // crds.cc
void RegisterEvents(Core& core);           // events.cc: they expire

// PUT namespaces/x/finalize.
void HandleNamespaceFinalize(Core& core, const CallPtr& call);
// Kinds that are made when they are read: component statuses, metrics.
void HandleComputed(Core& core, const CallPtr& call);

}  // namespace swell::apiserver
