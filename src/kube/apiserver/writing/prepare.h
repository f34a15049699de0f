// The way of an object into the store, apart from the writing: metadata, defaults, hooks,
// validation. Shared by create, update, patch and the server's own writes.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// From a request's version into the one in which it is handled.
Status ToHandled(Core& core, Call& call, json::Value& object);
// And from there into the one in which it is stored.
Status ToStored(Core& core, Call& call, json::Value& object);
// The entry's object as it is handled.
Result<json::SharedValue> HandledObject(Core& core, Call& call, const store::Entry& entry);

// Completes and checks a new object, webhooks included. The name is chosen here when it is to be
// generated.
Status PrepareCreate(Admission& admission, json::Value& object);
// Completes and checks a new state of `old`.
Status PrepareUpdate(Admission& admission, json::Value& object, const json::Value& old);

// namespaces "x" not found; or being terminated, for a create.
Status CheckNamespace(Admission& admission);

// Creates an object on the server's own behalf, in its storage version. Existing ones are fine.
void CreateInternally(Core& core,
                      std::string_view group,
                      std::string_view plural,
                      json::Value object,
                      std::function<void(const Status&)> done);

}  // namespace swell::apiserver
