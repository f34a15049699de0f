// Server-side apply: who manages which field.
//
// Managers are kept in metadata.managedFields as Kubernetes writes them (FieldsV1), from an
// object's first write on.
//
// - Threads: pure functions, except for the core's clock.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Records what a write other than an apply has changed. `old` null: the object is new. Runs when
// defaults are set and before admission adds what nobody asked for.
void TrackManager(const Call& call, json::Value& object, const json::Value* old);

// The object that results when `config` (in the call's version, with no managedFields) is applied
// over `live`, managedFields included. kConflict with a FieldManagerConflict cause per field that
// another manager has set otherwise, unless forced. `live` null: the object is new.
Result<json::Value> ApplyConfiguration(const Call& call,
                                       const json::Value& config,
                                       const json::Value* live,
                                       std::string_view manager,
                                       bool force);

}  // namespace swell::apiserver
