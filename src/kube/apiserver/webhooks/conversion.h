// Conversion of objects between versions: of built-in kinds here, of custom ones by the webhook
// that their definition names, else by their apiVersion alone.
//
// What fails with WaitingForCallout() is known when the handler runs again (request/callouts.h).
//
// - Threads: core executor only.
#pragma once

#include <vector>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Whether objects of the kind may need a webhook to be shown in it.
bool HasConverter(const Core& core, const api::KindInfo& kind);
// Rewrites the object for another version of its kind.
Status ConvertObject(const Core& core, Call& call, json::Value& object, const api::KindInfo& to);
// Asks about all entries that are not of the version, in few reviews.
Status ConvertAhead(const Core& core,
                    Call& call,
                    const std::vector<store::EntryPtr>& entries,
                    const api::KindInfo& to);

// Remembers, or forgets, what a definition says about conversion.
void SetConverter(Core& core, const std::string& resource, const json::Value* conversion);

}  // namespace swell::apiserver
