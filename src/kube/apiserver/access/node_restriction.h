// NodeRestriction: a node changes itself, its Lease and the pods that are bound to it, and reads
// the Secrets and ConfigMaps of those pods; nothing of other nodes. Kubernetes has an authorizer
// and an admission plugin for it.
//
// It holds for nodes that speak over the network. The node agents of this process are its own.
//
// - Threads: core executor only.
#pragma once

#include "base/result.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// By what the request's path says; before it is carried out.
Status CheckNodeRequest(const Core& core, const Call& call, std::string_view verb);
// By what a node writes. `old` is null for a new object.
Status CheckNodeWrite(const Admission& admission,
                      const json::Value& object,
                      const json::Value* old);

// A node is given tokens for pods that are bound to it alone. `pod`: the one that the token is to
// be bound to; empty: none.
Status CheckNodeToken(const Core& core, const Call& call, const std::string& pod);

}  // namespace swell::apiserver
