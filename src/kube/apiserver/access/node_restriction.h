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

}  // namespace swell::apiserver
